//! Accepts the runtime's connections.

use crate::desk::Generation;
use crate::event::RuntimeEvent;
use crate::server;
use crate::session::Shared;
use crate::stamp::{Slot, Stamped};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

/// Clients send up to 1 MiB of X-Ray cause in a header (`lambda-platform.md` §1.7).
const HEAD_BYTES: usize = 2 * 1024 * 1024;
/// Pause after a failed accept (out of descriptors): try again, do not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Until it is aborted; then all connections are closed and, with `_events`, the channel ends.
pub async fn run(listener: TcpListener, shared: Arc<Shared>, _events: Sender<RuntimeEvent>, limit: usize) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased; // those that have ended make room first
            Some(_) = connections.join_next() => {}
            accepted = accept(&listener, &shared) => match accepted {
                Ok((stream, generation)) if connections.len() < limit => {
                    connections.spawn(connection(stream, shared.clone(), generation));
                }
                Ok(_over_the_limit) => {}
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

/// A connection and the process it belongs to. Under the lock: see `Session::reset`.
async fn accept(listener: &TcpListener, shared: &Shared) -> io::Result<(TcpStream, Generation)> {
    poll_fn(|cx| {
        let desk = shared.desk();
        listener.poll_accept(cx).map_ok(|(stream, _)| (stream, desk.generation()))
    })
    .await
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, generation: Generation) {
    // Fails only on a dead socket, which the first read will notice.
    let _ = stream.set_nodelay(true);
    let slot = Slot::default();
    let io = TokioIo::new(Stamped::new(stream, slot.clone()));
    let service = service_fn(move |request| server::serve(shared.clone(), generation, slot.clone(), request));
    // An error here is the runtime's connection breaking: whatever it was in the middle of has noticed by itself.
    let _ = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES)
        .title_case_headers(true)
        .serve_connection(io, service)
        .await;
}
