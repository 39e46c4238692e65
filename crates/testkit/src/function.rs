//! A deployed function, invoked by calls that block.

use crate::lab::within;
use crate::{Error, Lab};
use bytes::Bytes;
use danki_host::{Call, Forced, Outcome, Provisioned, StreamEnd, Wants};
use danki_record::Invocation;
use danki_sys::clock;
use serde_json::Value;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A deployed function of a lab.
pub struct Function<'lab> {
    lab: &'lab Lab,
    /// The lab owns the function itself: this handle may outlive it.
    number: usize,
    sent: AtomicU32,
}

/// An invocation under way.
pub struct Pending<'lab> {
    lab: &'lab Lab,
    pending: danki_host::Pending,
}

/// What came of an invocation.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The response, or the error's payload, as it is.
    pub payload: Bytes,
    /// `Unhandled` when the function or the platform failed.
    pub function_error: Option<String>,
    /// Its times and figures.
    pub invocation: Invocation,
    /// The last 4 KB of its log.
    pub log: Vec<String>,
}

/// What came of an invocation whose caller takes a stream.
#[derive(Debug, Default)]
pub struct Streamed {
    /// The JSON before the body, if there was one.
    pub prelude: Option<Bytes>,
    /// When each piece came, ns of the monotonic clock, and the piece.
    pub chunks: Vec<(u64, Bytes)>,
    /// How the stream ended; absent if the answer came whole.
    pub end: Option<StreamEnd>,
    /// The rest; present when the invocation is over.
    pub reply: Option<Reply>,
}

impl<'lab> Function<'lab> {
    pub(crate) fn new(lab: &'lab Lab, number: usize) -> Function<'lab> {
        Function { lab, number, sent: AtomicU32::new(0) }
    }

    /// Invokes and waits until the env rests again.
    ///
    /// # Errors
    /// No env can be had, or it does not come to rest within half a minute.
    pub fn invoke(&self, event: &Value) -> Result<Reply, Error> {
        self.begin(event)?.wait()
    }

    /// Invokes; the reply comes later.
    ///
    /// # Errors
    /// No env can be had.
    pub fn begin(&self, event: &Value) -> Result<Pending<'lab>, Error> {
        self.send(event, None)
    }

    /// Invokes in a forced state; the reply comes later.
    ///
    /// # Errors
    /// As [`Function::begin`].
    pub fn force(&self, event: &Value, forced: Forced) -> Result<Pending<'lab>, Error> {
        self.send(event, Some(forced))
    }

    fn send(&self, event: &Value, forced: Option<Forced>) -> Result<Pending<'lab>, Error> {
        let _context = self.lab.runtime.enter();
        let call = Call {
            payload: Bytes::from(serde_json::to_vec(event)?),
            index: self.sent.fetch_add(1, Ordering::Relaxed),
            intended_ns: clock::monotonic_ns(),
            forced,
            ..Call::default()
        };
        Ok(Pending { lab: self.lab, pending: self.lab.function(self.number).begin(call)? })
    }

    /// Asks for provisioned concurrency.
    ///
    /// # Errors
    /// AWS would refuse it.
    pub fn ask_for(&self, provisioned: u32) -> Result<Provisioned, Error> {
        let _context = self.lab.runtime.enter();
        Ok(self.lab.function(self.number).provision(provisioned)?)
    }

    /// Asks for provisioned concurrency and waits until it is READY or has failed.
    ///
    /// # Errors
    /// It is refused, or takes too long.
    pub fn provision(&self, requested: u32) -> Result<Provisioned, Error> {
        self.ask_for(requested)?;
        let function = self.lab.function(self.number);
        let settled = within("an allocation", function.provisioned_settled());
        Ok(self.lab.runtime.block_on(settled)?.expect("nobody has given it up"))
    }

    /// Gives provisioned concurrency up; `false` if there was none.
    pub fn deprovision(&self) -> bool {
        let _context = self.lab.runtime.enter();
        self.lab.function(self.number).deprovision()
    }

    /// Invokes with a caller that takes a streamed answer as it comes; waits until the env rests again.
    ///
    /// # Errors
    /// As [`Function::invoke`].
    pub fn stream(&self, event: &Value) -> Result<Streamed, Error> {
        let context = self.lab.runtime.enter();
        let call = Call {
            payload: Bytes::from(serde_json::to_vec(event)?),
            index: self.sent.fetch_add(1, Ordering::Relaxed),
            intended_ns: clock::monotonic_ns(),
            wants: Wants::Stream,
            ..Call::default()
        };
        let pending = self.lab.function(self.number).begin(call)?;
        drop(context);
        let read = async {
            let mut streamed = Streamed::default();
            if let Some(mut stream) = pending.answer.await.ok().and_then(|answer| answer.stream) {
                streamed.prelude = stream.prelude().await;
                while let Some(chunk) = stream.next().await {
                    streamed.chunks.push((clock::monotonic_ns(), chunk));
                }
                streamed.end = Some(stream.end().await);
            }
            (streamed, pending.outcome.await)
        };
        let (mut streamed, outcome) = self.lab.runtime.block_on(within("a streamed answer", read))?;
        self.lab.read();
        streamed.reply = Some(Reply::from(outcome.unwrap_or(Err(danki_host::Error::Stopped))?));
        Ok(streamed)
    }

    /// As many invocations at once.
    ///
    /// # Errors
    /// As [`Function::invoke`].
    pub fn invoke_together(&self, count: usize, event: &Value) -> Result<Vec<Reply>, Error> {
        let pending: Result<Vec<Pending<'_>>, Error> = (0..count).map(|_| self.begin(event)).collect();
        pending?.into_iter().map(Pending::wait).collect()
    }

    /// Envs that exist now.
    pub fn envs(&self) -> usize {
        self.lab.function(self.number).envs()
    }

    /// Ends the envs that are idle.
    ///
    /// # Errors
    /// They do not end in time.
    pub fn expire(&self) -> Result<usize, Error> {
        let function = self.lab.function(self.number);
        self.lab.runtime.block_on(within("the end of idle envs", function.expire(Duration::ZERO)))
    }

    /// Ends all envs.
    ///
    /// # Errors
    /// They would not end.
    pub fn retire(&self) -> Result<(), Error> {
        let function = self.lab.function(self.number);
        self.lab.runtime.block_on(within("the end of a function", function.retire()))
    }
}

impl Pending<'_> {
    /// Waits until the env rests again.
    ///
    /// # Errors
    /// As [`Function::invoke`].
    pub fn wait(self) -> Result<Reply, Error> {
        let outcome = self.lab.runtime.block_on(within("an invocation", self.pending.outcome))?;
        self.lab.read();
        Ok(Reply::from(outcome.unwrap_or(Err(danki_host::Error::Stopped))?))
    }
}

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Reply {
        let Outcome { invocation, payload, function_error, log_tail, extensions_ms: _ } = outcome;
        Reply { payload, function_error, invocation, log: log_tail }
    }
}

impl Reply {
    /// The payload, parsed; null if it is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.payload).unwrap_or_default()
    }

    /// The payload as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.payload).into_owned()
    }

    /// A field of the REPORT line, e.g. `Max Memory Used`, without its unit.
    pub fn reported(&self, field: &str) -> Option<String> {
        let report = self.log.iter().rev().find(|line| line.starts_with("REPORT "))?;
        let (_, value) =
            report.split('\t').filter_map(|part| part.split_once(": ")).find(|(name, _)| *name == field)?;
        Some(value.trim_end_matches(" ms").trim_end_matches(" MB").to_owned())
    }
}
