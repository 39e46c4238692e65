//! The host's end: start, deliver, reset, stop.

use crate::answer::Refusal;
use crate::desk::Desk;
use crate::event::{Events, Invoke, RuntimeEvent};
use crate::listen;
use crate::roster::{FunctionFacts, Roster};
use crate::words::{self, MAX_PAYLOAD_BYTES};
use danki_model::RequestId;
use danki_model::crew::ExtensionId;
use danki_model::shutdown::ShutdownReason;
use hyper::header::HeaderValue;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, OwnedPermit, WeakSender};
use tokio::task::AbortHandle;

/// Why a session refuses.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listener cannot be used.
    #[error("cannot listen for the runtime: {0}")]
    Listener(#[from] std::io::Error),
    /// An env serves one invocation at a time.
    #[error("the runtime cannot take an event now{}", .0.as_ref().map(|id| format!(": {id} is under way")).unwrap_or_default())]
    Busy(Option<RequestId>),
    /// Lambda takes no larger events.
    #[error("event of {0} bytes, at most {MAX_PAYLOAD_BYTES} are allowed")]
    PayloadTooLarge(usize),
    /// A value cannot be sent as a header: it contains a control character.
    #[error("{header}: {value:?} cannot be sent in a header")]
    NotAHeader {
        /// Which header.
        header: &'static str,
        /// What it should have been.
        value: String,
    },
}

/// What a session grants to a runtime.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections at once; more are closed as soon as they are accepted.
    pub connections: usize,
    /// Events that wait to be read by the host; at the bound the runtime waits for its answers. At least 2.
    pub events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // A runtime needs one connection, a shell script two at a time; the rest is for functions that misbehave.
        Limits { connections: 64, events: 64 }
    }
}

/// Whose session it is.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// What extensions are told.
    pub function: FunctionFacts,
    /// File names in `/opt/extensions`: what registers under one of these is an external extension.
    pub externals: Vec<String>,
    /// Of the identifiers that extensions get.
    pub seed: u64,
}

/// The Runtime API of one env. Dropping it stops it.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    backlog: TcpListener,
    accepting: AbortHandle,
}

impl Session {
    /// Serves `listener` on the current tokio runtime. The socket may live in another network namespace.
    pub fn start(
        listener: TcpListener,
        limits: Limits,
        profile: Profile,
    ) -> Result<(Session, Events), Error> {
        listener.set_nonblocking(true)?;
        let backlog = listener.try_clone()?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (sender, receiver) = mpsc::channel(limits.events.max(2));
        let shared = Arc::new(Shared {
            desk: Mutex::new(Desk::new(Roster::new(profile.externals, profile.seed))),
            function: profile.function,
            changed: Notify::new(),
            events: sender.downgrade(),
        });
        let accepting = tokio::spawn(listen::run(listener, shared.clone(), sender, limits.connections));
        Ok((Session { shared, backlog, accepting: accepting.abort_handle() }, Events(receiver)))
    }

    /// Answers the pending `/next`, or the one to come.
    pub fn deliver(&self, invoke: Invoke) -> Result<(), Error> {
        check(&invoke)?;
        self.shared.desk().deliver(invoke).map_err(Error::Busy)?;
        self.shared.changed.notify_waiters();
        Ok(())
    }

    /// Every extension is ready: no one may subscribe to telemetry any more.
    pub fn init_is_over(&self) {
        self.shared.desk().crew().close_subscription();
    }

    /// Answers the pending event requests of these extensions with the SHUTDOWN event.
    pub fn shutdown(&self, reason: ShutdownReason, deadline_epoch_ms: u64, to: &[ExtensionId]) {
        self.shared.desk().crew().shutdown(reason, deadline_epoch_ms, to);
        self.shared.changed.notify_waiters();
    }

    /// The runtime's process was killed and another one will come: nothing that the dead one said or still had in the
    /// socket's backlog counts. An event that was not answered is dropped.
    pub fn reset(&self) {
        let mut desk = self.shared.desk();
        desk.reset();
        // Under the lock, so that `listen` gives no connection of the dead process the new generation.
        while self.backlog.accept().is_ok() {}
        drop(desk);
        self.shared.changed.notify_waiters();
    }

    /// Closes the socket and all connections; [`Events::next`] then ends.
    pub fn stop(&self) {
        self.accepting.abort();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}

fn check(invoke: &Invoke) -> Result<(), Error> {
    if invoke.payload.len() > MAX_PAYLOAD_BYTES {
        return Err(Error::PayloadTooLarge(invoke.payload.len()));
    }
    let headers = [
        (words::REQUEST_ID, Some(&invoke.request_id.0)),
        (words::FUNCTION_ARN, Some(&invoke.function_arn)),
        (words::TRACE_ID, invoke.trace_id.as_ref()),
        (words::CLIENT_CONTEXT, invoke.client_context.as_ref()),
        (words::COGNITO_IDENTITY, invoke.cognito_identity.as_ref()),
    ];
    for (header, value) in headers {
        if let Some(value) = value.filter(|v| HeaderValue::from_bytes(v.as_bytes()).is_err()) {
            return Err(Error::NotAHeader { header, value: value.clone() });
        }
    }
    Ok(())
}

/// What the session and its connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    desk: Mutex<Desk>,
    /// What extensions are told.
    pub function: FunctionFacts,
    /// An event was put down, or the process was reset.
    pub changed: Notify,
    /// Weak: the channel ends with the accept loop, which holds the sender.
    events: WeakSender<RuntimeEvent>,
}

impl Shared {
    /// The table, locked; never held across an await.
    pub fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().expect("nothing panics while it holds this lock")
    }

    /// Room for one event; waits while the host is behind.
    pub async fn room(&self) -> Result<OwnedPermit<RuntimeEvent>, Refusal> {
        let sender = self.events.upgrade().ok_or(Refusal::Stale)?;
        sender.reserve_owned().await.map_err(|_| Refusal::Stale)
    }
}
