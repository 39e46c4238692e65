//! The Runtime API (version 2018-06-01) of one execution environment, and beside it the Extensions API (2020-01-01) and
//! subscriptions of the Telemetry API (2022-07-01).
//!
//! A [`Session`] listens on a socket inside the env's network namespace; the runtime in the env long-polls it for events and
//! posts its answers. [`Session::deliver`] hands an event in, [`Events`] says what the runtime did and when. What is allowed
//! when is decided by the pure [`state`] module; `routes` and `answer` are the words on the wire; `server` joins them.
//!
//! Source of all behaviour: AWS's own in-sandbox server, as described in `lambda-platform.md` §1. Only HTTP/1.1, and never an
//! idle timeout: a frozen runtime may sit in `GET /next` for hours on one connection.

mod answer;
mod body;
mod bucket;
mod desk;
mod event;
mod extension_words;
mod extensions;
mod listen;
mod payload;
mod posting;
mod roster;
mod routes;
mod server;
mod session;
mod stamp;
pub mod standing;
pub mod state;
mod stream;
mod subscription;
mod words;

pub use bucket::STREAM_BYTES_MAX;
pub use event::{Events, ExtensionCall, ExtensionWhat, Invoke, RuntimeEvent, Streaming};
pub use roster::FunctionFacts;
pub use session::{Error, Limits, Profile, Session};
pub use subscription::{Buffering, Destination, Subscription};
pub use words::MAX_PAYLOAD_BYTES;
