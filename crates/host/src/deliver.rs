//! Sends telemetry to one listener inside an env, in batches.
//!
//! The listener may be frozen between two invocations: its kernel takes the batch and it reads it when it is thawed. So an answer is waited for
//! without a deadline, and what comes meanwhile waits in the queue.

use crate::telemetry::Backlog;
use danki_runtime_api::{Buffering, Destination};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

/// A listener that is just being started is waited for: so many times …
const ATTEMPTS: u32 = 20;
/// … this long.
const PAUSE: Duration = Duration::from_millis(50);
/// A connect on loopback takes microseconds.
const CONNECT: Duration = Duration::from_secs(1);
/// An answer's head is not longer.
const HEAD_BYTES: usize = 64 * 1024;

/// What a reader's queue holds.
pub(crate) enum Message {
    /// One event, JSON.
    Record(Arc<str>),
    /// Send now, and say when it is done.
    Flush(oneshot::Sender<()>),
}

/// Until the queue's other end is gone.
pub(crate) async fn run(
    mut queue: mpsc::Receiver<Message>,
    buffering: Buffering,
    destination: Destination,
    backlog: Arc<Backlog>,
    netns: Arc<OwnedFd>,
) {
    let mut line = None;
    while let Some((mut batch, flushed)) = collect(&mut queue, buffering).await {
        let bytes: usize = batch.iter().map(|record| record.len()).sum();
        batch.extend(backlog.lost().map(Arc::from));
        let sent = match batch.is_empty() {
            true => Ok(()),
            false => send(&destination, &batch, &netns, &mut line).await,
        };
        backlog.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if sent.is_err() {
            backlog.dropped_records.fetch_add(batch.len() as u64, Ordering::Relaxed);
            backlog.dropped_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            line = None;
        }
        flushed.into_iter().for_each(|done: oneshot::Sender<()>| done.send(()).unwrap_or_default());
    }
}

type Batch = (Vec<Arc<str>>, Vec<oneshot::Sender<()>>);

/// Waits for a record, then until one of the limits is reached. `None`: there will be no more.
async fn collect(queue: &mut mpsc::Receiver<Message>, buffering: Buffering) -> Option<Batch> {
    let (mut batch, mut bytes) = match queue.recv().await? {
        Message::Flush(done) => return Some((Vec::new(), vec![done])),
        Message::Record(first) => {
            let length = first.len();
            (vec![first], length)
        }
    };
    let until = Instant::now() + Duration::from_millis(buffering.timeout_ms);
    while batch.len() < buffering.max_items && bytes < buffering.max_bytes {
        match timeout_at(until, queue.recv()).await {
            Ok(Some(Message::Record(record))) => {
                bytes += record.len();
                batch.push(record);
            }
            Ok(Some(Message::Flush(done))) => return Some((batch, vec![done])),
            Ok(None) | Err(_) => break,
        }
    }
    Some((batch, Vec::new()))
}

async fn send(
    destination: &Destination,
    batch: &[Arc<str>],
    netns: &Arc<OwnedFd>,
    line: &mut Option<TcpStream>,
) -> io::Result<()> {
    match destination {
        Destination::Http { port, path } => post(&mut connect(netns, *port).await?, *port, path, batch).await,
        Destination::Tcp { port } => {
            let stream = match line {
                Some(stream) => stream,
                None => line.insert(connect(netns, *port).await?),
            };
            let mut text = batch.join("\n");
            text.push('\n');
            stream.write_all(text.as_bytes()).await
        }
    }
}

/// One request per connection: an extension's own server may be of any make, and this asks the least of it.
async fn post(stream: &mut TcpStream, port: u16, path: &str, batch: &[Arc<str>]) -> io::Result<()> {
    let body = format!("[{}]", batch.join(","));
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: sandbox.localdomain:{port}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while !seen.windows(4).any(|window| window == b"\r\n\r\n") && seen.len() < HEAD_BYTES {
        match stream.read(&mut buffer).await? {
            0 => break,
            n => seen.extend_from_slice(&buffer[..n]),
        }
    }
    match seen.starts_with(b"HTTP/1.") {
        true => Ok(()),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

async fn connect(netns: &Arc<OwnedFd>, port: u16) -> io::Result<TcpStream> {
    let mut attempt = 1;
    loop {
        let netns = Arc::clone(netns);
        let connected = tokio::task::spawn_blocking(move || connect_inside(&netns, port)).await;
        match connected.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())) {
            Ok(stream) => {
                stream.set_nonblocking(true)?;
                return TcpStream::from_std(stream);
            }
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(_) => attempt += 1,
        }
        sleep(PAUSE).await;
    }
}

/// A thread of its own enters the namespace and ends: one of the pool would stay there.
fn connect_inside(netns: &OwnedFd, port: u16) -> io::Result<std::net::TcpStream> {
    let inside = || {
        move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        std::net::TcpStream::connect_timeout(&address, CONNECT)
    };
    std::thread::scope(|scope| {
        scope.spawn(inside).join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })
}
