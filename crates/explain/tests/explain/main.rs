//! Facts in, waterfalls, calls and findings out.

mod example;
mod property;
mod support;
mod wait;
