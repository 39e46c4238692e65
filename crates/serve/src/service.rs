//! The words between a server and its service.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Response};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What answers requests.
pub trait Service: Send + Sync + 'static {
    /// How long a connection may stay without a request; asked once per connection, after its handshake.
    fn idle_cutoff(&self, peer: &Peer) -> Option<Duration>;

    /// Answers one request. Dropped when the client goes away before the answer.
    fn call(&self, call: Call) -> impl Future<Output = Answer> + Send;
}

/// One connection, as its service sees it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The client's address.
    pub client: SocketAddr,
    /// The address that the client connected to.
    pub local: SocketAddr,
    /// When the connection was taken from the accept queue, ns.
    pub accepted_ns: u64,
    /// The handshake; absent on plain connections.
    pub tls: Option<TlsInfo>,
}

/// A finished TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsInfo {
    /// When it was complete, ns.
    pub done_ns: u64,
    /// A session was resumed.
    pub resumed: bool,
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// Server name asked for.
    pub server_name: Option<String>,
}

/// One request, wholly read.
#[derive(Debug)]
pub struct Call {
    /// Method, URI, headers.
    pub head: Parts,
    /// The body, or why there is none.
    pub body: Result<Body, BodyError>,
    /// 1 for the first request on its connection.
    pub ordinal: u32,
    /// When its first byte was read, ns.
    pub first_byte_ns: u64,
    /// When it was wholly read, ns.
    pub received_ns: u64,
    /// Its connection.
    pub peer: Arc<Peer>,
}

/// A request's body.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// The bytes, de-chunked.
    pub bytes: Bytes,
    /// Trailers of a chunked body.
    pub trailers: Option<HeaderMap>,
}

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is larger than [`crate::Config::max_body_bytes`]; the rest was not read.
    #[error("request body exceeds {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// The client broke off, or its framing is wrong.
    #[error("request body is incomplete: {reason}")]
    Broken {
        /// What hyper says.
        reason: String,
    },
}

/// What a service does with a request.
pub enum Answer {
    /// Sends a response.
    Reply {
        /// The response; its length is known, so that it is not chunked.
        response: Response<Full<Bytes>>,
        /// Called with the time at which the last byte was handed to the socket; dropped if that never happens.
        on_sent: Option<Box<dyn FnOnce(u64) + Send>>,
    },
    /// Sends a response chunk by chunk, until the sender is dropped. A client that reads slowly makes the sender wait.
    Stream {
        /// The response; its length is not known, so that it is chunked.
        response: Response<mpsc::Receiver<Bytes>>,
    },
    /// Closes the connection in order (close_notify, FIN) without an answer.
    HangUp,
    /// Resets the connection: RST, no close_notify.
    Reset,
    /// Sends the head and the first half of the body, then resets the connection.
    ResetMidBody {
        /// What would have been the whole response.
        response: Response<Full<Bytes>>,
    },
    /// Ends the connection with a fatal TLS alert; without TLS, as [`Answer::HangUp`].
    Alert,
}

impl Answer {
    /// A response, with nothing to do when it was sent.
    pub fn reply(response: Response<Full<Bytes>>) -> Answer {
        Answer::Reply { response, on_sent: None }
    }
}

/// Reads a whole body, at most `limit` bytes of it.
pub(crate) async fn read_body(body: Incoming, limit: usize) -> Result<Body, BodyError> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => {
            let trailers = collected.trailers().cloned();
            Ok(Body { bytes: collected.to_bytes(), trailers })
        }
        Err(error) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge { limit }),
        Err(error) => Err(BodyError::Broken { reason: error.to_string() }),
    }
}
