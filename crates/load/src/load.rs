//! The load as the user writes it: `[load]` of an experiment file.

use crate::keys::Checked;
use serde::{Deserialize, Serialize};

/// How a variant is invoked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[serde(from = "Checked")]
pub enum Load {
    /// One invocation at a time, with pauses.
    Sequence {
        /// How many.
        count: u32,
        /// Pauses between the end of one and the start of the next, in turn and from the beginning again.
        gaps_ms: Vec<f64>,
    },
    /// One invocation at a time; each variant goes through the same steps.
    Steps {
        /// In order.
        steps: Vec<Step>,
    },
    /// Each client sends its next invocation when its last one has ended.
    Closed {
        /// How many clients.
        clients: u32,
        /// When to end.
        stop: Stop,
    },
    /// Sent at computed times, whether or not earlier ones have ended.
    Open {
        /// Mean arrivals per second.
        rate_per_s: f64,
        /// When to end.
        stop: Stop,
        /// How arrivals are spread.
        arrivals: Arrivals,
        /// Under way at once; at the bound the next one waits, and keeps its intended time.
        max_in_flight: u32,
    },
}

/// One step of a variant's way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// So many invocations, one after the other.
    Invoke(u32),
    /// A pause in ms, from the end of the last invocation. Divided by the time scale.
    WaitMs(f64),
    /// Until the variant's provisioned concurrency is READY; at once where it has none.
    UntilPcReady,
}

/// When a loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this many invocations.
    Count(u32),
    /// After this many seconds.
    Seconds(f64),
}

/// How arrivals of an open loop are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly.
    #[default]
    Uniform,
    /// At random, independent of each other.
    Poisson,
}

impl Default for Load {
    fn default() -> Self {
        Load::Sequence { count: 10, gaps_ms: vec![0.0] }
    }
}

impl Load {
    /// The load with at most `count` invocations and `seconds`: what `--quick` makes of it unless told otherwise.
    pub fn capped(self, count: u32, seconds: f64) -> Load {
        let cap = |stop| match stop {
            Stop::Count(n) => Stop::Count(n.min(count)),
            Stop::Seconds(s) => Stop::Seconds(s.min(seconds)),
        };
        match self {
            Load::Sequence { count: n, gaps_ms } => Load::Sequence { count: n.min(count), gaps_ms },
            Load::Steps { steps } => Load::Steps { steps: first(steps, count) },
            Load::Closed { clients, stop } => Load::Closed { clients, stop: cap(stop) },
            Load::Open { rate_per_s, stop, arrivals, max_in_flight } => {
                Load::Open { rate_per_s, stop: cap(stop), arrivals, max_in_flight }
            }
        }
    }

    /// Invocations of one variant that may be under way at once.
    pub fn concurrency(&self) -> u32 {
        match self {
            Load::Sequence { .. } | Load::Steps { .. } => 1,
            Load::Closed { clients, .. } => *clients,
            Load::Open { max_in_flight, .. } => *max_in_flight,
        }
    }

    /// Invocations of one variant, if the load says it.
    pub fn count(&self) -> Option<u32> {
        match self {
            Load::Sequence { count, .. } => Some(*count),
            Load::Steps { steps } => Some(steps.iter().copied().map(Step::invocations).sum()),
            Load::Closed { stop: Stop::Count(n), .. } | Load::Open { stop: Stop::Count(n), .. } => Some(*n),
            Load::Closed { .. } => None,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "both factors are bounded"
            )]
            Load::Open { rate_per_s, stop: Stop::Seconds(s), .. } => Some((rate_per_s * s).ceil() as u32),
        }
    }
}

impl Step {
    fn invocations(self) -> u32 {
        if let Step::Invoke(n) = self { n } else { 0 }
    }
}

/// The steps up to and with the `count`th invocation.
fn first(steps: Vec<Step>, count: u32) -> Vec<Step> {
    let mut left = count;
    let mut kept = Vec::new();
    for step in steps {
        if left == 0 {
            break;
        }
        let taken = step.invocations().min(left);
        left -= taken;
        kept.push(if let Step::Invoke(_) = step { Step::Invoke(taken) } else { step });
    }
    kept
}
