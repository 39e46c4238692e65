//! The resolver beside each env: names of configured services in any region have one address, nothing else exists.
//!
//! No recursion and no other socket: a query cannot leave. A datagram that is no query is dropped, so that two
//! resolvers can never talk to each other.

mod answer;

use answer::{Answered, answer};
use danki_model::EnvId;
use danki_record::{Event, Recorder, Span};
use danki_sys::clock::monotonic_ns;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Largest query read; longer ones are cut off and then answered with FORMERR.
const MAX_QUERY_BYTES: usize = 4_096;

/// Pause after a failed receive, so that a broken socket does not spin.
const RECEIVE_PAUSE: Duration = Duration::from_millis(5);

/// Stops an env's resolver when dropped.
#[derive(Debug)]
#[must_use = "dropping it stops the resolver"]
pub struct DnsGuard(JoinHandle<()>);

impl Drop for DnsGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) use answer::Known;

/// What there is.
pub(crate) type Names = Arc<Known>;

/// Answers queries on `socket` until the guard is dropped; on the current tokio runtime.
pub(crate) fn serve(
    runtime: &tokio::runtime::Handle,
    env: EnvId,
    socket: std::net::UdpSocket,
    names: Names,
    recorder: Recorder,
) -> DnsGuard {
    DnsGuard(runtime.spawn(async move {
        if let Err(error) = run(env, socket, &names, &recorder).await {
            let text = format!("the resolver of {env} could not start: {error}; its names do not resolve");
            recorder.record(Event::Caveat { text });
        }
    }))
}

async fn run(
    env: EnvId,
    socket: std::net::UdpSocket,
    names: &Known,
    recorder: &Recorder,
) -> std::io::Result<()> {
    socket.set_nonblocking(true)?;
    let socket = UdpSocket::from_std(socket)?;
    let mut buffer = vec![0; MAX_QUERY_BYTES];
    loop {
        let Ok((length, client)) = socket.recv_from(&mut buffer).await else {
            tokio::time::sleep(RECEIVE_PAUSE).await;
            continue;
        };
        let from_ns = monotonic_ns();
        let Some(answered) = answer(&buffer[..length], names) else { continue };
        send(&socket, &answered.bytes, client).await;
        let span = Span { from_ns, to_ns: monotonic_ns() };
        let Answered { name, qtype, rcode, .. } = answered;
        recorder.record(Event::Dns(danki_record::DnsQuery {
            env,
            name,
            qtype,
            span,
            rcode: rcode.to_owned(),
        }));
    }
}

/// A client that is gone or whose buffer is full loses its answer, as on any network; it will ask again.
async fn send(socket: &UdpSocket, bytes: &[u8], client: SocketAddr) {
    let _lost = socket.send_to(bytes, client).await;
}
