//! The region as its clients see it. One binary: linking each file by itself would take longer than running it.

mod ca;
mod common;
mod conformance;
mod dns;
mod dynamodb;
mod endings;
mod stores;
mod upstream;
mod xray;
