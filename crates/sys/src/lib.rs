//! The kernel, for danki: everything that needs `unsafe`, a namespace, a cgroup, a mount or a clock. Mechanisms only; what is made of
//! them is decided by [`plan::EnvPlan`], which `host` writes.
//!
//! [`Keeper::start`] forks the keeper; [`Keeper::create`] makes an env and returns its [`Sandbox`]. Needs Linux 5.12 or later.

pub mod caps;
mod caveat;
mod cgroup;
pub mod clock;
mod disk;
mod error;
mod init;
mod keeper;
mod message;
mod mounts;
mod netlink;
pub mod plan;
mod priority;
mod process;
mod rlimits;
mod run;
mod run_queue;
mod sandbox;
mod scratch;
mod stolen;
mod sweep;
mod system;
mod tick;
mod tun;
mod wait;

pub use cgroup::{Controller, CpuCounters, EnvCgroup, Version};
pub use error::Error;
pub use keeper::Keeper;
pub use plan::{EnvPlan, ProcessPlan};
pub use priority::raise_priority;
pub use run_queue::{RunQueue, behind_shell};
pub use sandbox::{ExitStatus, Sandbox, SandboxEvent, Spawned};
pub use scratch::Scratch;
pub use stolen::Stolen;
pub use sweep::{leftovers, sweep, sweep_in};
pub use system::system_dirs;
