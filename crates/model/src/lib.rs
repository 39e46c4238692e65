//! Lambda's words and rules as values and pure functions: no IO, no clock, no async.
//!
//! Everything here is a statement about Lambda (how much CPU a memory size buys, what a log line looks like, what is
//! billed), so each constant names its source. [`assumptions`] lists the mechanisms with how sure each one is;
//! `docs/validity.md` is printed from it.

pub mod assumptions;
pub mod bandwidth;
pub mod billing;
pub mod concurrency;
pub mod cpu;
pub mod crew;
pub mod environment;
mod function;
mod ids;
pub mod lifecycle;
pub mod limits;
pub mod log;
mod logging;
mod memory;
pub mod metrics;
pub mod platform_error;
pub mod shutdown;
pub mod telemetry;
pub mod time;
mod validate;

pub use cpu::{CpuChoice, CpuModel, ScaleError};
pub use function::{FunctionSpec, ImageSpec, InitializationType, Runtime, UnknownRuntime};
pub use ids::{ConnId, EnvId, RequestId};
pub use logging::{AppLevel, LogFormat, Logging, SystemLevel};
pub use memory::{MemoryMb, MemoryOutOfRange, PERIOD_US, VCPU_MB};
pub use platform_error::Exit;
pub use validate::SpecError;
