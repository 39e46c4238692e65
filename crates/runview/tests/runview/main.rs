//! What is made of recorded runs. One binary: linking each file by itself would take longer than running it.

mod corpus;
mod exports;
mod page;
#[path = "../support/mod.rs"]
mod support;
