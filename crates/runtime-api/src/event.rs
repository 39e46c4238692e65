//! What goes in and what comes out of a session.

use crate::subscription::Subscription;
use bytes::Bytes;
use danki_model::RequestId;
use danki_model::crew::{ExtensionId, Registration};
use tokio::sync::mpsc;

/// One event for the function.
#[derive(Clone, Debug)]
pub struct Invoke {
    /// The invocation's id.
    pub request_id: RequestId,
    /// When the function times out, in milliseconds of the epoch.
    pub deadline_epoch_ms: u64,
    /// The ARN as invoked, with its qualifier if the caller used one.
    pub function_arn: String,
    /// X-Ray's tracing header.
    pub trace_id: Option<String>,
    /// The client context as JSON text on one line (already decoded from base64).
    pub client_context: Option<String>,
    /// `{"cognitoIdentityId":…,"cognitoIdentityPoolId":…}`
    pub cognito_identity: Option<String>,
    /// The event's bytes, at most [`crate::MAX_PAYLOAD_BYTES`].
    pub payload: Bytes,
    /// The caller takes a streamed response as it comes; otherwise it is collected.
    pub stream: bool,
}

/// An [`Invoke`] that was handed to one runtime process.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub invoke: Invoke,
    /// Differs between attempts at the same invocation.
    pub invocation_id: String,
}

/// What the runtime did. Times are `danki_sys::clock::monotonic_ns`.
#[derive(Debug)]
pub enum RuntimeEvent {
    /// It asked for the next event: init is done, or the last invocation is finished. Once per wait, however often the
    /// runtime reconnects meanwhile.
    NextRequested {
        /// When the request was read.
        at_ns: u64,
    },
    /// An event is handed to the socket: always before the response to it. Comes again, with the same id, if the runtime asks
    /// again before it answers.
    Delivered {
        /// Whose event.
        request_id: RequestId,
        /// Just before the first byte was written, so that nothing the function does is earlier.
        at_ns: u64,
    },
    /// A streamed response has begun, for a caller that takes it as it comes; [`RuntimeEvent::Response`] or
    /// [`RuntimeEvent::Error`] follows at its end.
    StreamBegun {
        /// Whose response.
        request_id: RequestId,
        /// When its first byte was read.
        at_ns: u64,
        /// `Content-Type` of the post.
        content_type: Option<String>,
        /// Its bytes. While nobody reads, the runtime waits; dropped, they are thrown away.
        chunks: mpsc::Receiver<Bytes>,
    },
    /// The function's response.
    Response {
        /// Whose response.
        request_id: RequestId,
        /// When its last byte was read.
        at_ns: u64,
        /// All of it; empty where it was handed on as it came.
        body: Bytes,
        /// `Content-Type` of the post.
        content_type: Option<String>,
        /// Set when the function answered in streaming mode.
        streaming: Option<Streaming>,
    },
    /// The function failed: the runtime posted an error, broke off a streaming response with one, or the platform answers
    /// in its place (too large, truncated, bad response mode). The env survives.
    Error {
        /// Whose error.
        request_id: RequestId,
        /// When its last byte was read.
        at_ns: u64,
        /// Type as AWS's metrics and logs see it (`Runtime.Unknown` for an ordinary exception).
        error_type: String,
        /// The caller's payload.
        body: Bytes,
    },
    /// The runtime's init failed; it will exit.
    InitError {
        /// When the post was read.
        at_ns: u64,
        /// Type as the INIT_REPORT line prints it.
        error_type: String,
        /// The caller's payload.
        body: Bytes,
    },
    /// An extension did something.
    Extension(ExtensionCall),
}

/// What an extension did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionCall {
    /// When the request was read.
    pub at_ns: u64,
    /// Which one.
    pub id: ExtensionId,
    /// Its name.
    pub name: String,
    /// What.
    pub what: ExtensionWhat,
}

/// A request of an extension that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionWhat {
    /// It registered.
    Registered(Registration),
    /// It waits for an event.
    NextRequested,
    /// Its init failed; it will exit.
    InitError {
        /// In its own words, e.g. `Extension.ConfigInvalid`.
        error_type: String,
    },
    /// It cannot go on; it will exit.
    ExitError {
        /// In its own words.
        error_type: String,
    },
    /// It subscribed to telemetry.
    Subscribed(Subscription),
}

/// What a streaming response says beside its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streaming {
    /// Its JSON prelude (`statusCode`, `headers`, `cookies`), where the content type says that there is one. The prelude
    /// and its 8 NUL bytes are also the beginning of the body.
    pub prelude: Option<Bytes>,
    /// How long it was.
    pub bytes: u64,
}

/// The events of one session, in the order in which they happened on each connection.
#[derive(Debug)]
pub struct Events(pub(crate) mpsc::Receiver<RuntimeEvent>);

impl Events {
    /// The next event; `None` once the session has stopped and everything was read.
    ///
    /// The queue is bounded ([`crate::Limits::events`]): when nobody reads, the runtime waits for its answers.
    pub async fn next(&mut self) -> Option<RuntimeEvent> {
        self.0.recv().await
    }

    /// The next event, if one is there already.
    pub fn try_next(&mut self) -> Option<RuntimeEvent> {
        self.0.try_recv().ok()
    }
}
