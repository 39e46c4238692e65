//! `danki-secrets` as functions see it. One binary: linking each file by itself would take longer than running it.

mod captured;
mod clients;
mod faults;
mod lifecycle;
#[path = "../support/mod.rs"]
mod support;
