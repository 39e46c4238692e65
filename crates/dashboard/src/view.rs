//! What a browser is told. `web/src/schema.ts` is generated from this file; `tidy` holds them together.

use serde::Serialize;

/// What there is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Live {
    /// Version of danki.
    pub danki: String,
    /// AWS name of the region.
    pub region: String,
    /// Idle envs are frozen.
    pub freezes: bool,
    /// Start of danki, ms since 1970.
    pub started_epoch_ms: u64,
    /// Facts that were not kept because there were too many at once.
    pub dropped: u64,
    /// By name.
    pub functions: Vec<LiveFunction>,
    /// By id.
    pub envs: Vec<LiveEnv>,
}

/// A function, its versions together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveFunction {
    /// Its name.
    pub name: String,
    /// Runtime of `$LATEST`, as AWS names it.
    pub runtime: String,
    /// Memory size of `$LATEST`, MB.
    pub memory_mb: u32,
    /// State of `$LATEST`: `Active`, `Pending`, `Failed`.
    pub state: String,
    /// Reserved concurrency, if any.
    pub reserved: Option<u32>,
    /// Provisioned concurrency of all its versions, as asked for.
    pub provisioned: u32,
    /// Invocations that ran.
    pub invocations: u64,
    /// Those that failed.
    pub errors: u64,
    /// Invocations that were not taken.
    pub throttles: u64,
}

/// An execution environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveEnv {
    /// Its id.
    pub env: u32,
    /// Its function.
    pub function: String,
    /// Its version.
    pub version: String,
    /// It is one of provisioned concurrency.
    pub provisioned: bool,
    /// `initialising`, `idle`, `allocated` (provisioned, not yet READY), `busy`, `waiting` (for a forced gap) or `ending`.
    pub state: String,
    /// Since when, ms since 1970.
    pub since_epoch_ms: u64,
}

/// An invocation that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveInvocation {
    /// Request id.
    pub id: String,
    /// Its function.
    pub function: String,
    /// Its env.
    pub env: u32,
    /// `cold`, `warm` or `suppressed`.
    pub start: String,
    /// `ok`, `timeout`, or the type of the error.
    pub status: String,
    /// When its answer was there, ms since 1970.
    pub at_epoch_ms: u64,
    /// From dispatch to answer, ms.
    pub span_ms: f64,
    /// `Duration` of the REPORT line, ms.
    pub duration_ms: f64,
    /// `Init Duration`, ms.
    pub init_ms: Option<f64>,
    /// CPU time, ms.
    pub cpu_ms: f64,
    /// Throttled, ms.
    pub throttled_ms: f64,
    /// Memory used at most, MB.
    pub memory_used_mb: u32,
}

/// Invocations that have ended since the last such message.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct News {
    /// Oldest first.
    pub invocations: Vec<LiveInvocation>,
    /// How many more there were that this page was too slow for.
    pub missed: u64,
}
