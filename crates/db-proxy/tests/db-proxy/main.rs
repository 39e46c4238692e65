//! The pooler before real servers.

#![allow(clippy::print_stdout, reason = "a test that skips says so")]

mod batches;
mod lasting;
mod sharing;
mod support;
