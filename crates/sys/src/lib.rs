//! The kernel, for danki: everything that needs `unsafe`, a namespace, a cgroup, a mount or a clock.

pub mod clock;
pub mod plan;

pub use plan::{EnvPlan, ProcessPlan};
