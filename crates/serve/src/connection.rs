//! One connection, from accept to its end.

use crate::meter::{Meter, Metered, MeteredBody, Outgoing, Phase};
use crate::server::{Config, stop_asked};
use crate::service::{Answer, Call, Peer, Service, TlsInfo, read_body};
use crate::stream::Stream;
use danki_sys::clock::monotonic_ns;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Sending close_notify and FIN waits for room in the socket at most this long.
const CLOSE_DEADLINE: Duration = Duration::from_secs(1);

/// How the server ended a connection whose service wanted no answer sent, or half of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cut {
    #[error("hung up")]
    HangUp,
    #[error("reset")]
    Reset,
    #[error("alert")]
    Alert,
}

/// Serves `tcp` until either side ends it. Errors end the connection and nothing else, so there is nobody to tell.
pub(crate) async fn serve<S: Service>(
    tcp: TcpStream,
    client: SocketAddr,
    config: Arc<Config>,
    service: Arc<S>,
    stop: watch::Receiver<bool>,
) {
    let accepted_ns = monotonic_ns();
    let Ok((stream, peer)) = establish(tcp, client, accepted_ns, &config).await else {
        return;
    };
    let idle_cutoff = service.idle_cutoff(&peer);
    let meter = Meter::new();
    let peer = Arc::new(peer);
    let handler = {
        let (meter, config) = (Arc::clone(&meter), Arc::clone(&config));
        hyper::service::service_fn(move |request: Request<Incoming>| {
            answer(
                request,
                Arc::clone(&meter),
                Arc::clone(&peer),
                Arc::clone(&service),
                config.max_body_bytes,
            )
        })
    };
    let io = TokioIo::new(Metered { stream, meter: Arc::clone(&meter) });
    let mut connection = http1::Builder::new().serve_connection(io, handler);
    let cut = drive(Pin::new(&mut connection), &meter, idle_cutoff, config.request_timeout, stop).await;
    let stream = connection.into_parts().io.into_inner().stream;
    match cut {
        Some(Cut::Reset) => {
            // RST needs the setting and a close, in this order; a socket that refuses it is already gone.
            let _refused = stream.tcp().set_zero_linger();
        }
        Some(Cut::HangUp) => close(stream).await,
        Some(Cut::Alert) => alert(stream).await,
        None => {}
    }
}

/// The handshake, if there is to be one.
async fn establish(
    tcp: TcpStream,
    client: SocketAddr,
    accepted_ns: u64,
    config: &Config,
) -> io::Result<(Stream, Peer)> {
    tcp.set_nodelay(true)?;
    let local = tcp.local_addr()?;
    let Some(tls) = &config.tls else {
        return Ok((Stream::Plain(tcp), Peer { client, local, accepted_ns, tls: None }));
    };
    let handshake = TlsAcceptor::from(Arc::clone(tls)).accept(tcp);
    let stream = tokio::time::timeout(config.handshake_timeout, handshake).await??;
    let session = stream.get_ref().1;
    let info = TlsInfo {
        done_ns: monotonic_ns(),
        resumed: session.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        version: match session.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLSv1.3",
        },
        server_name: session.server_name().map(str::to_owned),
    };
    Ok((Stream::Tls(Box::new(stream)), Peer { client, local, accepted_ns, tls: Some(info) }))
}

/// One request: reads it, asks the service, prepares the response.
async fn answer<S: Service>(
    request: Request<Incoming>,
    meter: Arc<Meter>,
    peer: Arc<Peer>,
    service: Arc<S>,
    max_body_bytes: usize,
) -> Result<Response<MeteredBody>, Cut> {
    let (ordinal, first_byte_ns) = meter.head_read();
    let (head, body) = request.into_parts();
    let body = read_body(body, max_body_bytes).await;
    let received_ns = meter.request_read();
    match service.call(Call { head, body, ordinal, first_byte_ns, received_ns, peer }).await {
        Answer::Reply { response, on_sent } => {
            Ok(response.map(|body| meter.body(Outgoing::Whole(body), on_sent)))
        }
        Answer::Stream { response } => {
            Ok(response.map(|from| meter.body(Outgoing::Chunks { from, ended: false }, None)))
        }
        Answer::HangUp => Err(Cut::HangUp),
        Answer::Reset => Err(Cut::Reset),
        Answer::ResetMidBody { response } => {
            let (head, body) = response.into_parts();
            // A body that is there is never an error, and has no trailers.
            let whole = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            Ok(Response::from_parts(head, meter.body(Outgoing::half(&whole), None)))
        }
        Answer::Alert => Err(Cut::Alert),
    }
}

/// Runs hyper's connection beside its deadlines. Returns how to end it, if hyper has not ended it.
async fn drive<S>(
    mut connection: Pin<&mut http1::Connection<TokioIo<Metered>, S>>,
    meter: &Meter,
    idle_cutoff: Option<Duration>,
    request_timeout: Duration,
    mut stop: watch::Receiver<bool>,
) -> Option<Cut>
where
    S: hyper::service::HttpService<Incoming, ResBody = MeteredBody, Error = Cut>,
{
    let mut stopping = false;
    loop {
        // Phases change while this waits. It looks again after the shortest time that a phase not yet begun can last.
        let shortest = idle_cutoff.unwrap_or(request_timeout).min(request_timeout);
        let wait = match deadline_ns(meter.phase(), idle_cutoff, request_timeout) {
            Some(at_ns) => match at_ns.checked_sub(monotonic_ns()) {
                Some(left_ns) => Duration::from_nanos(left_ns).min(shortest),
                None => return Some(Cut::HangUp),
            },
            None => shortest,
        };
        let timer = pin!(tokio::time::sleep(wait));
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                return ended.err().and_then(|e| std::error::Error::source(&e)?.downcast_ref::<Cut>().copied());
            }
            () = stop_asked(&mut stop), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = timer => {}
        }
    }
}

/// When the present phase has lasted too long.
fn deadline_ns(phase: Phase, idle_cutoff: Option<Duration>, request_timeout: Duration) -> Option<u64> {
    let after = |since_ns: u64, limit: Duration| since_ns.saturating_add(nanos(limit));
    match phase {
        Phase::Idle { since_ns } => Some(idle_cutoff.map_or(u64::MAX, |cutoff| after(since_ns, cutoff))),
        Phase::Receiving { since_ns } => Some(after(since_ns, request_timeout)),
        Phase::Serving => None,
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A fatal alert, `bad_record_mac`, and FIN. rustls sends one only for a reason, so it is given one: a record that nobody encrypted.
async fn alert(mut stream: Stream) {
    const DAMAGED: [u8; 37] = {
        let mut record = [0; 37];
        (record[0], record[1], record[2], record[4]) = (23, 3, 3, 32); // application data, TLS 1.2's number, 32 bytes
        record
    };
    if let Stream::Tls(tls) = &mut stream {
        let (tcp, session) = tls.get_mut();
        let mut alert = Vec::new();
        let read = session.read_tls(&mut DAMAGED.as_slice());
        if read.is_ok() && session.process_new_packets().is_err() && session.write_tls(&mut alert).is_ok() {
            let _gone = tokio::time::timeout(CLOSE_DEADLINE, tcp.write_all(&alert)).await;
        }
        let _gone = tokio::time::timeout(CLOSE_DEADLINE, tcp.shutdown()).await;
        return;
    }
    close(stream).await;
}

/// close_notify (if TLS) and FIN.
async fn close(mut stream: Stream) {
    let _gone = tokio::time::timeout(CLOSE_DEADLINE, stream.shutdown()).await;
}
