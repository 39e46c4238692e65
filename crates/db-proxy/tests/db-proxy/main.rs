//! The pooler before real servers.

#![allow(clippy::print_stdout, reason = "a test that skips says so")]

mod lasting;
mod sharing;
mod support;
