//! Concurrency as Lambda has it: who may run, where, and what is made ready ahead.
//!
//! [`Fleet`] is the whole of an account's environments as one pure state machine: facts in, actions out, time is an argument. The host
//! performs its actions with real environments; a simulator may perform them with imagined ones. [`Provisioning`] is the part that
//! provisioned concurrency (PC) of one version has. There is no queue: a synchronous invocation that finds no room is throttled.
//!
//! ```text
//! Arrive ─ reserved = 0 ──────────────────────────────────────────────→ Throttle
//!        ├ an idle PC env, PC's request rate not exceeded ────────────→ Run (PC)
//!        ├ concurrency limit of function (reserved) or account reached → Throttle
//!        ├ request rate of function or account exceeded ──────────────→ Throttle
//!        ├ an idle on-demand env ─────────────────────────────────────→ Run (warm)
//!        ├ scaling rate exceeded ─────────────────────────────────────→ Throttle
//!        └────────────────────────────────────────────────────────────→ Create, Run (cold; spillover if the version has PC)
//! ```
//! Sources: AWS developer guide (scaling behaviour, reserved and provisioned concurrency, quotas), the API's model for the reasons.

mod admission;
mod bucket;
mod fleet;
mod life;
mod limits;
mod provisioning;
mod settings;
mod slot;

pub use bucket::Bucket;
pub use fleet::{Action, EndReason, Fleet, Forced, Input, Rules, Ticket, VersionId};
pub use limits::{Account, Refused};
pub use provisioning::{Need, ProvisionStatus, Provisioned, Provisioning, StatusReason};
pub use settings::Held;
pub use slot::{SlotState, SlotView};

/// Environments that an account may run at once, unless raised (AWS docs).
pub const ACCOUNT_LIMIT: u32 = 1_000;
/// Of these, as many must stay outside reservations (AWS docs).
pub const UNRESERVED_MIN: u32 = 100;
/// New environments of one function at once (AWS docs: 1,000 per 10 s, refilled continuously).
pub const SCALING_BURST: u32 = 1_000;
/// New environments of one function per second.
pub const SCALING_PER_S: u32 = 100;
/// Synchronous requests per second for each unit of concurrency (AWS docs, quotas).
pub const REQUESTS_PER_CONCURRENCY: u32 = 10;
/// PC environments of a function that may begin per second (AWS docs: 6,000 per minute).
pub const PROVISION_PER_S: u32 = 100;

/// Why an invocation is not taken: the `Reason` of a 429 answer (the API's model).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Throttle {
    /// The account's unreserved concurrency is used up, or the function grows faster than it may.
    ConcurrentInvocationLimitExceeded,
    /// More requests per second than ten times the account's concurrency.
    FunctionInvocationRateLimitExceeded,
    /// The function's reserved concurrency is used up.
    ReservedFunctionConcurrentInvocationLimitExceeded,
    /// More requests per second than ten times the function's reserved concurrency.
    ReservedFunctionInvocationRateLimitExceeded,
    /// The caller sends control requests too fast. Not produced by the fleet.
    CallerRateLimitExceeded,
    /// Too many snapshots at once. Not produced by the fleet: there is no SnapStart here.
    ConcurrentSnapshotCreateLimitExceeded,
}

impl Throttle {
    /// All six, in the order of the API's model.
    pub const ALL: [Throttle; 6] = [
        Throttle::ConcurrentInvocationLimitExceeded,
        Throttle::FunctionInvocationRateLimitExceeded,
        Throttle::ReservedFunctionConcurrentInvocationLimitExceeded,
        Throttle::ReservedFunctionInvocationRateLimitExceeded,
        Throttle::CallerRateLimitExceeded,
        Throttle::ConcurrentSnapshotCreateLimitExceeded,
    ];

    /// The text of the answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Throttle::ConcurrentInvocationLimitExceeded => "ConcurrentInvocationLimitExceeded",
            Throttle::FunctionInvocationRateLimitExceeded => "FunctionInvocationRateLimitExceeded",
            Throttle::ReservedFunctionConcurrentInvocationLimitExceeded => {
                "ReservedFunctionConcurrentInvocationLimitExceeded"
            }
            Throttle::ReservedFunctionInvocationRateLimitExceeded => {
                "ReservedFunctionInvocationRateLimitExceeded"
            }
            Throttle::CallerRateLimitExceeded => "CallerRateLimitExceeded",
            Throttle::ConcurrentSnapshotCreateLimitExceeded => "ConcurrentSnapshotCreateLimitExceeded",
        }
    }
}

impl std::fmt::Display for Throttle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
