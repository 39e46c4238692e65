//! Facts in, waterfalls, calls and findings out.

mod database;
mod example;
mod property;
mod support;
mod wait;
