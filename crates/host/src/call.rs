//! An invocation as its caller sees it.

use crate::Error;
use crate::answer::{Answer, Wants};
use crate::invoke::Outcome;
use bytes::Bytes;
use danki_model::RequestId;
use danki_model::concurrency;
use serde::Serialize;
use std::time::Duration;
use tokio::sync::oneshot;

/// An invocation as the caller wants it.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The event.
    pub payload: Bytes,
    /// Ordinal within the variant.
    pub index: u32,
    /// When the schedule wanted it sent, ns of the monotonic clock.
    pub intended_ns: u64,
    /// What the caller says of itself.
    pub caller: Caller,
    /// How the caller takes the answer.
    pub wants: Wants,
    /// In which state it shall find its env; as it comes if absent.
    pub forced: Option<Forced>,
    /// It only keeps its env from idling.
    pub ping: bool,
    /// Nobody waits for the answer: no limit of requests per second applies.
    pub asynchronous: bool,
}

/// What an invocation's caller says besides the event; all of it may be absent.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The id it has already: retries of an asynchronous invocation keep theirs.
    pub request_id: Option<RequestId>,
    /// The ARN that was invoked, with its qualifier; the function's own if absent.
    pub function_arn: Option<String>,
    /// `X-Amzn-Trace-Id`; one that is not sampled if absent.
    pub trace_id: Option<String>,
    /// The client context, JSON.
    pub client_context: Option<String>,
    /// The Cognito identity, JSON.
    pub cognito_identity: Option<String>,
}

/// The state in which an invocation shall find its env. The rules of concurrency hold all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Forced {
    /// A new env, although one is idle.
    Cold,
    /// An idle env; if there is none, one is initialised before the invocation begins.
    Warm,
    /// The idle env ends, as if it had been idle for too long, and a new one serves.
    Expired,
    /// An env that has been idle for at least so long, in real time; the invocation waits for that. At most [`IDLE_GAP_MAX`].
    IdleGap(Duration),
}

/// Longest idle gap that can be forced: a caller waits for it.
pub const IDLE_GAP_MAX: Duration = Duration::from_secs(3_600);

impl Forced {
    pub(crate) fn rule(self) -> Result<concurrency::Forced, Error> {
        match self {
            Forced::Cold => Ok(concurrency::Forced::Cold),
            Forced::Warm => Ok(concurrency::Forced::Warm),
            Forced::Expired => Ok(concurrency::Forced::Expired),
            Forced::IdleGap(gap) if gap > IDLE_GAP_MAX => Err(Error::IdleGap(gap)),
            Forced::IdleGap(gap) => Ok(concurrency::Forced::IdleGap(crate::yard::ns(gap))),
        }
    }
}

/// An invocation under way: the answer comes first, the outcome when the env is free again.
pub struct Pending {
    /// What the caller gets.
    pub answer: oneshot::Receiver<Answer>,
    /// All that is known when the invocation is finished.
    pub outcome: oneshot::Receiver<Result<Outcome, Error>>,
}
