//! The APIs as runtimes and extensions see them. One binary: linking each file by itself would take longer than running it.

mod bootstraps;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod extensions;
mod php;
mod wire;
