//! One way to serve HTTP/1.1, for every server of danki: accept loop, TLS, idle cut-off, exact times, drain.
//!
//! What it adds to hyper is what a performance model needs and a web server does not: the moment the first byte of
//! a request was read, the moment the whole request was there, the moment the response was handed to the socket,
//! and endings on purpose (idle cut-off with close_notify and FIN, reset, hang-up without an answer).
//!
//! A server is a [`Service`] and a listener:
//! ```no_run
//! # use danki_serve::{Answer, Call, Config, Peer, Server, Service};
//! # use std::{sync::Arc, time::Duration};
//! struct Hello;
//! impl Service for Hello {
//!     fn idle_cutoff(&self, _: &Peer) -> Option<Duration> {
//!         Some(Duration::from_secs(60))
//!     }
//!     async fn call(&self, _: Call) -> Answer {
//!         Answer::reply(hyper::Response::new("hello".into()))
//!     }
//! }
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::start(std::net::TcpListener::bind("127.0.0.1:0")?, Config::default(), Arc::new(Hello))?;
//! server.stop().await;
//! # Ok(()) }
//! ```

mod connection;
mod error;
mod meter;
mod server;
mod service;
mod stream;
mod timer;
mod tls;

pub use error::Error;
pub use server::{Config, Server};
pub use service::{Answer, Body, BodyError, Call, Peer, Service, TlsInfo};
pub use timer::sleep_until;
pub use tls::{TlsOptions, TlsVersion, server_config};
