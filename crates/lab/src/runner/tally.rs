//! What invocations bring, collected from all tasks of a load.

use super::{Progress, Watcher};
use crate::error::Error;
use crate::summarise::Returned;
use danki_host::Outcome;
use danki_load::Fire;
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// Of responses longer than this only the numbers are kept for the summary.
const RESPONSE_MAX: usize = 256 * 1024;

/// What invocations brought.
pub struct Tally {
    watcher: Watcher,
    keep_raw: bool,
    total: Option<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sent: Vec<u32>,
    done: u64,
    dropped: u64,
    returned: Vec<Returned>,
    failure: Option<Error>,
}

impl Tally {
    pub fn new(watcher: Watcher, keep_raw: bool, total: Option<u64>) -> Tally {
        Tally { watcher, keep_raw, total, state: Mutex::default() }
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many of each variant have been sent so far.
    pub fn sent(&self, variants: usize) -> Vec<u32> {
        self.with(|state| {
            state.sent.resize(variants, 0);
            state.sent.clone()
        })
    }

    pub fn fired(&self, fire: Fire) {
        self.with(|state| state.sent[fire.variant] += 1);
    }

    pub fn ended(&self, variant: String, outcome: Outcome) {
        let mut payload: Value = serde_json::from_slice(&outcome.payload).unwrap_or_default();
        let status_code = payload["statusCode"].as_u64().and_then(|code| u16::try_from(code).ok());
        if outcome.payload.len() > RESPONSE_MAX {
            numbers_of(&mut payload);
        }
        let Outcome { invocation, payload: raw, function_error, .. } = outcome;
        let raw = self.keep_raw.then_some(raw);
        let request_id = invocation.request_id;
        let done = self.with(|state| {
            state.returned.push(Returned {
                variant: variant.clone(),
                request_id,
                function_error,
                payload,
                status_code,
                raw,
            });
            state.done += 1;
            state.done
        });
        (self.watcher)(&Progress { done, total: self.total, variant });
    }

    /// One that was not taken is done too.
    pub fn throttled(&self, variant: String) {
        let done = self.with(|state| {
            state.done += 1;
            state.done
        });
        (self.watcher)(&Progress { done, total: self.total, variant });
    }

    /// Packets that the link dropped while the load was on.
    pub fn dropped(&self, packets: u64) {
        self.with(|state| state.dropped += packets);
    }

    /// All of them.
    pub fn all_dropped(&self) -> u64 {
        self.with(|state| state.dropped)
    }

    pub fn failed(&self, error: Error) {
        self.with(|state| state.failure.get_or_insert(error).fault());
    }

    pub fn failure(&self) -> Result<(), Error> {
        self.with(|state| state.failure.take()).map_or(Ok(()), Err)
    }

    pub fn returned(&self) -> Vec<Returned> {
        self.with(|state| std::mem::take(&mut state.returned))
    }
}

/// Keeps what the summary reads: the numbers of an object.
fn numbers_of(payload: &mut Value) {
    match payload {
        Value::Object(fields) => fields.retain(|_, value| value.is_number()),
        other => *other = Value::Null,
    }
}
