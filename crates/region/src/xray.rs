//! The X-Ray daemon beside each env: UDP 2000 takes segment documents, TCP 2000 answers the SDKs' questions about sampling rules.
//!
//! On Lambda the daemon's memory and CPU are outside of what a function pays for, but for its sending; so they are here. Documents become
//! facts in the recorder, whose bound is theirs. Nothing is sent on to AWS.

use crate::Error;
use danki_model::EnvId;
use danki_record::{Event, Recorder, SegmentDocument};
use danki_serve::{Answer, Call, Peer, Server, Service};
use danki_sys::clock::{epoch_ns, monotonic_ns};
use http_body_util::Full;
use hyper::{Response, StatusCode};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// The longest UDP payload over IPv4.
const MAX_DATAGRAM_BYTES: usize = 65_507;

/// Bad datagrams of an env that are told one by one; the rest is counted in nobody's interest.
const TOLD: u32 = 3;

/// Pause after a failed receive, so that a broken socket does not spin.
const RECEIVE_PAUSE: Duration = Duration::from_millis(5);

/// Stops an env's daemon when dropped.
#[must_use = "dropping it stops the daemon"]
pub struct XRayGuard {
    receiving: JoinHandle<()>,
    _sampling: Server,
}

impl Drop for XRayGuard {
    fn drop(&mut self) {
        self.receiving.abort();
    }
}

/// Takes datagrams and questions until the guard is dropped.
pub(crate) fn serve(
    runtime: &tokio::runtime::Handle,
    env: EnvId,
    udp: std::net::UdpSocket,
    tcp: TcpListener,
    recorder: Recorder,
) -> Result<XRayGuard, Error> {
    let _inside = runtime.enter();
    udp.set_nonblocking(true).map_err(Error::Daemon)?;
    let udp = UdpSocket::from_std(udp).map_err(Error::Daemon)?;
    let config = danki_serve::Config { max_connections: 16, ..danki_serve::Config::default() };
    let sampling = Server::start(tcp, config, Arc::new(Sampling))?;
    Ok(XRayGuard { receiving: runtime.spawn(receive(env, udp, recorder)), _sampling: sampling })
}

async fn receive(env: EnvId, socket: UdpSocket, recorder: Recorder) {
    let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
    let mut bad = 0;
    loop {
        let Ok((length, _)) = socket.recv_from(&mut buffer).await else {
            tokio::time::sleep(RECEIVE_PAUSE).await;
            continue;
        };
        let at_ns = monotonic_ns();
        match danki_xray::parse_datagram(&buffer[..length]) {
            Ok(document) => recorder.record(Event::Segment(SegmentDocument { at_ns, env, document })),
            Err(reason) if bad < TOLD => {
                bad += 1;
                let text =
                    format!("the X-Ray daemon of {env} dropped a datagram of {length} bytes: {reason}");
                recorder.record(Event::Caveat { text });
            }
            Err(_) => {}
        }
    }
}

/// The daemon's TCP side: what it would ask X-Ray on the SDK's behalf.
struct Sampling;

impl Service for Sampling {
    fn idle_cutoff(&self, _: &Peer) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    async fn call(&self, call: Call) -> Answer {
        let Ok(body) = call.body else { return Answer::HangUp };
        let now_s = epoch_ns() as f64 / 1e9;
        let answer = danki_xray::sampling_answer(call.head.uri.path(), &body.bytes, now_s);
        let (status, text) = match answer {
            Some(answer) => (StatusCode::OK, answer.to_string()),
            None => (StatusCode::NOT_FOUND, "{\"message\":\"danki: no such path\"}".to_owned()),
        };
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        let json = hyper::header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
        Answer::reply(response)
    }
}
