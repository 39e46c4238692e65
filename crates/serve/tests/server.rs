//! A server over plain TCP: keep-alive, endings, bounds, times.

use bytes::Bytes;
use danki_serve::{Answer, BodyError, Call, Config, Peer, Server, Service};
use danki_sys::clock::monotonic_ns;
use http_body_util::Full;
use hyper::Response;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(5);

/// What the service saw of a request.
#[derive(Clone, Debug)]
struct Seen {
    ordinal: u32,
    first_byte_ns: u64,
    received_ns: u64,
    sent_ns: u64,
    body: Result<Bytes, BodyError>,
    trailer: Option<String>,
}

/// Answers by path: `/`, `/large`, `/slow` (when released), `/hangup`, `/reset`.
struct Probe {
    idle_cutoff: Option<Duration>,
    release: Arc<Semaphore>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Service for Probe {
    fn idle_cutoff(&self, peer: &Peer) -> Option<Duration> {
        assert!(peer.tls.is_none() && peer.client != peer.local);
        self.idle_cutoff
    }

    async fn call(&self, call: Call) -> Answer {
        let size = match call.head.uri.path() {
            "/hangup" => return Answer::HangUp,
            "/reset" => return Answer::Reset,
            "/chunks" => return chunks(&self.release),
            "/slow" => self.release.acquire().await.map(|_permit| 2).expect("open"),
            "/large" => 3_000_000,
            "/empty" => 0,
            _ => 2,
        };
        let trailers = call.body.as_ref().ok().and_then(|b| b.trailers.clone());
        let mut seen = Seen {
            ordinal: call.ordinal,
            first_byte_ns: call.first_byte_ns,
            received_ns: call.received_ns,
            sent_ns: 0,
            body: call.body.map(|b| b.bytes),
            trailer: trailers.and_then(|t| t.get("x-trailer")?.to_str().ok().map(str::to_owned)),
        };
        let list = Arc::clone(&self.seen);
        Answer::Reply {
            response: Response::new(Full::new(Bytes::from(vec![b'x'; size]))),
            on_sent: Some(Box::new(move |at_ns| {
                seen.sent_ns = at_ns;
                list.lock().expect("no panic").push(seen);
            })),
        }
    }
}

/// A first chunk, and a second one once there is a permit.
fn chunks(release: &Arc<Semaphore>) -> Answer {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let release = Arc::clone(release);
    tokio::spawn(async move {
        sender.send(Bytes::from_static(b"one")).await.expect("taken");
        let _permit = release.acquire().await.expect("open");
        sender.send(Bytes::from_static(b"two!")).await.expect("taken");
    });
    Answer::Stream { response: Response::new(receiver) }
}

struct Lab {
    server: Server,
    address: SocketAddr,
    service: Arc<Probe>,
}

fn lab(config: Config, idle_cutoff: Option<Duration>) -> Lab {
    let service = Arc::new(Probe { idle_cutoff, release: Arc::new(Semaphore::new(0)), seen: Arc::default() });
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = Server::start(listener, config, Arc::clone(&service)).expect("starts");
    Lab { address: server.local_addr(), server, service }
}

impl Lab {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("connects")
    }

    fn seen(&self) -> Vec<Seen> {
        self.service.seen.lock().expect("no panic").clone()
    }
}

/// Writes a request and reads its response: status line and body length.
async fn ask(stream: &mut TcpStream, request: &str) -> std::io::Result<(String, usize)> {
    stream.write_all(request.as_bytes()).await?;
    answer(stream).await
}

async fn answer(stream: &mut TcpStream) -> std::io::Result<(String, usize)> {
    timeout(SOON, async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.expect("a length").parse().expect("a number");
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        Ok((head.lines().next().unwrap_or_default().to_owned(), length))
    })
    .await
    .expect("never a hang")
}

/// Reads until the end; what ended it.
async fn end(stream: &mut TcpStream) -> Result<Vec<u8>, ErrorKind> {
    let mut rest = Vec::new();
    let read = timeout(SOON, stream.read_to_end(&mut rest)).await.expect("never a hang");
    read.map(|_| rest).map_err(|e| e.kind())
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n")
}

#[tokio::test]
async fn times_are_taken_in_order_and_bodies_arrive() {
    let lab = lab(Config::default(), None);
    let mut stream = lab.connect().await;
    let before = monotonic_ns();
    ask(&mut stream, &get("/")).await.expect("answered");
    // In two parts: the first byte's time is the first part's.
    stream.write_all(b"POST / HTTP/1.1\r\nhost: h\r\n").await.expect("written");
    tokio::time::sleep(Duration::from_millis(30)).await;
    ask(&mut stream, "content-length: 3\r\n\r\nabc").await.expect("answered");
    let chunked = "POST /empty HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\ntrailer: x-trailer\r\n\r\n\
                   2\r\nab\r\n1\r\nc\r\n0\r\nx-trailer: yes\r\n\r\n";
    assert_eq!(ask(&mut stream, chunked).await.expect("answered").1, 0);
    assert_eq!(ask(&mut stream, &get("/large")).await.expect("answered").1, 3_000_000);
    let after = monotonic_ns();

    // The last response may be read before its time is noted.
    let seen = timeout(SOON, async {
        while lab.seen().len() < 4 {
            tokio::task::yield_now().await;
        }
        lab.seen()
    });
    let seen = seen.await.expect("four requests");
    let mut last = before;
    for (i, s) in seen.iter().enumerate() {
        assert_eq!(s.ordinal as usize, i + 1);
        for at in [s.first_byte_ns, s.received_ns, s.sent_ns] {
            assert!(last <= at, "{seen:?}");
            last = at;
        }
    }
    assert!(last <= after + 1_000_000_000);
    assert!(seen[1].received_ns - seen[1].first_byte_ns >= 20_000_000, "{:?}", seen[1]);
    assert_eq!(seen[1].body, Ok(Bytes::from_static(b"abc")));
    assert_eq!((&seen[2].body, seen[2].trailer.as_deref()), (&Ok(Bytes::from_static(b"abc")), Some("yes")));
}

#[tokio::test]
async fn chunks_are_sent_as_they_come_and_the_connection_lives_on() {
    let lab = lab(Config::default(), Some(SOON));
    let mut stream = lab.connect().await;
    stream.write_all(b"GET /chunks HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("written");
    let mut got = Vec::new();
    let first = b"3\r\none\r\n";
    while !got.ends_with(first) {
        got.push(timeout(SOON, stream.read_u8()).await.expect("soon").expect("a byte"));
    }
    lab.service.release.add_permits(1);
    while !got.ends_with(b"4\r\ntwo!\r\n0\r\n\r\n") {
        got.push(timeout(SOON, stream.read_u8()).await.expect("soon").expect("a byte"));
    }
    let again = ask(&mut stream, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("an answer");
    assert_eq!(again, ("HTTP/1.1 200 OK".to_owned(), 2));
}

#[tokio::test]
async fn endings_on_purpose() {
    let lab = lab(Config::default(), None);
    let mut stream = lab.connect().await;
    stream.write_all(get("/hangup").as_bytes()).await.expect("written");
    assert_eq!(end(&mut stream).await, Ok(Vec::new()));
    let mut stream = lab.connect().await;
    stream.write_all(get("/reset").as_bytes()).await.expect("written");
    assert_eq!(end(&mut stream).await, Err(ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn idle_connections_end_and_busy_ones_do_not() {
    let lab = lab(Config::default(), Some(Duration::from_millis(200)));
    let mut idle = lab.connect().await;
    let mut busy = lab.connect().await;
    busy.write_all(get("/slow").as_bytes()).await.expect("written");
    assert_eq!(end(&mut idle).await, Ok(Vec::new()));
    tokio::time::sleep(Duration::from_millis(400)).await;
    lab.service.release.add_permits(1);
    answer(&mut busy).await.expect("served however long it took");
    assert_eq!(end(&mut busy).await, Ok(Vec::new()), "idle since the response");
}

#[tokio::test]
async fn a_request_that_does_not_end_is_cut() {
    let config = Config { request_timeout: Duration::from_millis(200), ..Config::default() };
    let lab = lab(config, None);
    for part in ["GET / HT", "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nabc"] {
        let mut stream = lab.connect().await;
        stream.write_all(part.as_bytes()).await.expect("written");
        assert_eq!(end(&mut stream).await, Ok(Vec::new()), "{part}");
    }
    assert!(lab.seen().is_empty());
}

#[tokio::test]
async fn a_body_beyond_the_bound_reaches_the_service_as_such() {
    let lab = lab(Config { max_body_bytes: 10, ..Config::default() }, None);
    for (size, expect) in [(10, true), (11, false)] {
        let mut stream = lab.connect().await;
        let request =
            format!("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: {size}\r\n\r\n{}", "x".repeat(size));
        ask(&mut stream, &request).await.expect("answered");
        let seen = timeout(SOON, async {
            while lab.seen().len() < size - 9 {
                tokio::task::yield_now().await;
            }
            lab.seen().pop().expect("seen")
        });
        let body = seen.await.expect("noted").body;
        assert_eq!(body.is_ok(), expect, "{size}: {body:?}");
        assert!(expect || body == Err(BodyError::TooLarge { limit: 10 }));
    }
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_for_their_turn() {
    let lab = lab(Config { max_connections: 1, ..Config::default() }, None);
    let mut first = lab.connect().await;
    ask(&mut first, &get("/")).await.expect("answered");
    let mut second = lab.connect().await;
    second.write_all(get("/").as_bytes()).await.expect("written");
    assert!(timeout(Duration::from_millis(200), second.read_u8()).await.is_err(), "not served yet");
    drop(first);
    answer(&mut second).await.expect("served when the first has gone");
}

#[tokio::test]
async fn garbage_ends_its_connection_only() {
    let lab = lab(Config::default(), None);
    let mut stream = lab.connect().await;
    stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n").await.expect("written");
    let answered = end(&mut stream).await.unwrap_or_default();
    assert!(answered.is_empty() || answered.starts_with(b"HTTP/1.1 400"));
    ask(&mut lab.connect().await, &get("/")).await.expect("others are served");
}

#[tokio::test]
async fn stopping_drains_what_is_served_and_closes_what_is_idle() {
    let lab = lab(Config { drain: SOON, ..Config::default() }, None);
    let mut idle = lab.connect().await;
    ask(&mut idle, &get("/")).await.expect("answered");
    let mut busy = lab.connect().await;
    busy.write_all(get("/slow").as_bytes()).await.expect("written");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let stopping = tokio::spawn(lab.server.stop());
    assert_eq!(end(&mut idle).await, Ok(Vec::new()));
    lab.service.release.add_permits(1);
    answer(&mut busy).await.expect("finished");
    timeout(SOON, stopping).await.expect("never a hang").expect("no panic");
    assert!(TcpStream::connect(lab.address).await.is_err());
}

#[tokio::test]
async fn stopping_has_a_deadline() {
    let lab = lab(Config { drain: Duration::from_millis(100), ..Config::default() }, None);
    let mut busy = lab.connect().await;
    busy.write_all(get("/slow").as_bytes()).await.expect("written");
    tokio::time::sleep(Duration::from_millis(100)).await;
    timeout(SOON, lab.server.stop()).await.expect("never a hang");
    assert!(end(&mut busy).await.is_ok_and(|rest| rest.is_empty()));
}
