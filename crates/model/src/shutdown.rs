//! How the processes of an env end, in time: facts in, orders out (`lambda-platform.md` §2.4).
//!
//! | registered | budget | order |
//! |---|---|---|
//! | none | 0 | everything is killed |
//! | internal | 500 ms | the runtime gets SIGTERM; at the end of the budget everything is killed |
//! | external | 2,000 ms | the runtime gets SIGTERM and up to 300 ms (500 if it hosts an internal extension); then those that want it get the SHUTDOWN event and the rest of the time, those that do not are killed |
//!
//! AWS docs and source agree on this but for the runtime's share, 300 ms in the docs and 600 in the source: the docs are followed.
//! The runtime is gone before the SHUTDOWN event goes out. The same order holds for a reset after a timeout or a crash.

use crate::crew::{Crew, ExtensionId, ExtensionKind};

/// Everything must be over by then if an external extension is registered.
pub const EXTERNAL_BUDGET_MS: u64 = 2_000;
/// … if only internal ones are; also the share of a runtime that hosts one.
pub const INTERNAL_BUDGET_MS: u64 = 500;
/// The runtime's share of [`EXTERNAL_BUDGET_MS`].
pub const RUNTIME_SHARE_MS: u64 = 300;

/// `shutdownReason` of the SHUTDOWN event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownReason {
    /// The env is not needed any more.
    Spindown,
    /// The function's timeout passed.
    Timeout,
    /// A process ended or something else broke.
    Failure,
}

impl ShutdownReason {
    /// The word on the wire (AWS source: lower case).
    pub fn as_str(self) -> &'static str {
        match self {
            ShutdownReason::Spindown => "spindown",
            ShutdownReason::Timeout => "timeout",
            ShutdownReason::Failure => "failure",
        }
    }
}

/// What the driver reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownFact {
    /// The runtime's process is gone.
    RuntimeGone,
    /// An external extension's process is gone.
    ExtensionGone(ExtensionId),
    /// [`Shutdown::deadline_ms`] has come.
    Elapsed,
}

/// What the driver does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShutdownOrder {
    /// SIGTERM to the runtime's process group.
    TermRuntime,
    /// SIGKILL to the runtime's process group; [`ShutdownFact::RuntimeGone`] follows.
    KillRuntime,
    /// The SHUTDOWN event; these are all that get it.
    Notify(Vec<ExtensionId>),
    /// SIGKILL to these extensions' process groups.
    KillExtensions(Vec<ExtensionId>),
    /// SIGKILL to everything: it is over.
    KillAll,
}

/// A shutdown under way. Times are milliseconds since its beginning.
#[derive(Clone, Debug)]
pub struct Shutdown {
    step: Step,
    budget_ms: u64,
    runtime_share_ms: u64,
    /// External extensions that want the event and still run.
    subscribers: Vec<ExtensionId>,
    others: Vec<ExtensionId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The runtime was asked to end.
    Asked,
    /// The runtime was killed and is not gone yet.
    Killed,
    /// Extensions have the event.
    Notified,
    Over,
}

impl Shutdown {
    /// Begins; `runtime` says whether the runtime's process runs, `running` which external extensions do.
    pub fn begin(crew: &Crew, runtime: bool, running: &[ExtensionId]) -> (Shutdown, Vec<ShutdownOrder>) {
        let external = |shutdown: bool| {
            let wanted = crew
                .members()
                .filter(move |member| member.kind == ExtensionKind::External && member.shutdown == shutdown);
            wanted.map(|member| member.id).filter(|id| running.contains(id)).collect::<Vec<_>>()
        };
        let internal = crew.members().any(|member| member.kind == ExtensionKind::Internal);
        let (budget_ms, runtime_share_ms) = match (crew.externals() > 0, internal) {
            (false, false) => (0, 0),
            (false, true) => (INTERNAL_BUDGET_MS, INTERNAL_BUDGET_MS),
            (true, false) => (EXTERNAL_BUDGET_MS, RUNTIME_SHARE_MS),
            (true, true) => (EXTERNAL_BUDGET_MS, INTERNAL_BUDGET_MS),
        };
        let (subscribers, others) = (external(true), external(false));
        let mut shutdown = Shutdown { step: Step::Asked, budget_ms, runtime_share_ms, subscribers, others };
        let orders = match (budget_ms, runtime) {
            (0, _) => shutdown.over(),
            (_, true) => vec![ShutdownOrder::TermRuntime],
            (_, false) => shutdown.notify(),
        };
        (shutdown, orders)
    }

    /// Takes a fact, returns what to do about it.
    pub fn step(&mut self, fact: ShutdownFact) -> Vec<ShutdownOrder> {
        match (fact, self.step) {
            (ShutdownFact::RuntimeGone, Step::Asked | Step::Killed) => self.notify(),
            (ShutdownFact::ExtensionGone(gone), step) => {
                self.subscribers.retain(|id| *id != gone);
                self.others.retain(|id| *id != gone);
                match step == Step::Notified && self.subscribers.is_empty() {
                    true => self.over(),
                    false => Vec::new(),
                }
            }
            (ShutdownFact::Elapsed, Step::Asked) if self.runtime_share_ms < self.budget_ms => {
                self.step = Step::Killed;
                vec![ShutdownOrder::KillRuntime]
            }
            (ShutdownFact::Elapsed, Step::Asked | Step::Killed | Step::Notified) => self.over(),
            _ => Vec::new(),
        }
    }

    /// When [`ShutdownFact::Elapsed`] is due; `None` when it is over.
    pub fn deadline_ms(&self) -> Option<u64> {
        match self.step {
            Step::Asked => Some(self.runtime_share_ms),
            Step::Killed | Step::Notified => Some(self.budget_ms),
            Step::Over => None,
        }
    }

    /// By when everything must have ended: `deadlineMs` of the SHUTDOWN event, counted from the beginning.
    pub fn budget_ms(&self) -> u64 {
        self.budget_ms
    }

    fn notify(&mut self) -> Vec<ShutdownOrder> {
        if self.subscribers.is_empty() {
            return self.over();
        }
        self.step = Step::Notified;
        let mut orders = vec![ShutdownOrder::Notify(self.subscribers.clone())];
        if !self.others.is_empty() {
            orders.push(ShutdownOrder::KillExtensions(self.others.clone()));
        }
        orders
    }

    fn over(&mut self) -> Vec<ShutdownOrder> {
        self.step = Step::Over;
        vec![ShutdownOrder::KillAll]
    }
}
