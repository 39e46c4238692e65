//! Lambda's words and rules as values and pure functions: no IO, no clock, no async.
//!
//! Everything here is a statement about Lambda (how much CPU a memory size buys, what a log line looks like, what is
//! billed), so each constant names its source. `docs/validity.md` lists the ones that are assumptions.

mod function;
mod ids;
mod memory;

pub use function::{FunctionSpec, InitializationType, Runtime, UnknownRuntime};
pub use ids::{ConnId, EnvId, RequestId};
pub use memory::{MemoryMb, MemoryOutOfRange, PERIOD_US, VCPU_MB};
