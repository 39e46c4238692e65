//! Control groups, version 1 and 2.

mod counters;
mod env;
mod places;
pub(crate) mod refill;
pub(crate) mod remove;
pub(crate) mod tree;
#[cfg(test)]
mod v2_tests;
mod words;

pub use counters::CpuCounters;
pub use env::EnvCgroup;
pub use words::{Controller, Version};
