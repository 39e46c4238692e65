//! Tests that cannot run here say so.

#![allow(clippy::print_stdout, reason = "`make test` counts the lines that begin with `skipped:`")]

use danki_sys::caps::{Capabilities, probe};
use std::sync::OnceLock;

/// Prints `skipped: <what>: <why>` and returns true if envs cannot be made on this machine.
pub fn skipped(what: &str) -> bool {
    static HERE: OnceLock<Capabilities> = OnceLock::new();
    let missing = HERE.get_or_init(probe).missing();
    let Some(lack) = missing.iter().find(|missing| missing.essential) else { return false };
    println!("skipped: {what}: {}", lack.what);
    true
}
