//! What happens on a connection, and when: a stream and a body that take notes in passing.
//!
//! hyper does not say when bytes move. The stream sees each read and each flush; the body sees when its last frame
//! was taken. A response is in the socket at the first completed flush after its body was taken, because hyper
//! flushes the stream only when its own buffers are empty.

use crate::connection::Cut;
use crate::stream::Stream;
use bytes::Bytes;
use danki_sys::clock::monotonic_ns;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

/// Called when a response is in the socket.
type OnSent = Box<dyn FnOnce(u64) + Send>;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No request: since the handshake, or since the last response was handed to the socket.
    Idle { since_ns: u64 },
    /// Part of a request was read.
    Receiving { since_ns: u64 },
    /// The service has the request, or its response is being written.
    Serving,
}

/// Notes of one connection.
pub(crate) struct Meter(Mutex<Notes>);

struct Notes {
    phase: Phase,
    ordinal: u32,
    /// The response's body was taken wholly by hyper.
    taken: bool,
    on_sent: Option<OnSent>,
}

impl Meter {
    pub(crate) fn new() -> Arc<Meter> {
        let phase = Phase::Idle { since_ns: monotonic_ns() };
        Arc::new(Meter(Mutex::new(Notes { phase, ordinal: 0, taken: false, on_sent: None })))
    }

    /// No invariant spans a panic, so a poisoned lock is as good as any.
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.notes().phase
    }

    /// A request's head was read: its ordinal and the time of its first byte. Pipelined bytes were read together with
    /// the request before; then that is now.
    pub(crate) fn head_read(&self) -> (u32, u64) {
        let mut notes = self.notes();
        notes.ordinal += 1;
        match notes.phase {
            Phase::Receiving { since_ns } => (notes.ordinal, since_ns),
            Phase::Idle { .. } | Phase::Serving => {
                let now = monotonic_ns();
                notes.phase = Phase::Receiving { since_ns: now };
                (notes.ordinal, now)
            }
        }
    }

    /// The whole request was read.
    pub(crate) fn request_read(&self) -> u64 {
        self.notes().phase = Phase::Serving;
        monotonic_ns()
    }

    /// The service answered: `on_sent` is called when the response is in the socket.
    pub(crate) fn body(self: &Arc<Self>, body: Outgoing, on_sent: Option<OnSent>) -> MeteredBody {
        let mut notes = self.notes();
        notes.on_sent = on_sent;
        notes.taken = body.is_end_stream();
        drop(notes);
        MeteredBody { body, meter: Arc::clone(self) }
    }

    fn bytes_read(&self) {
        let mut notes = self.notes();
        if matches!(notes.phase, Phase::Idle { .. }) {
            notes.phase = Phase::Receiving { since_ns: monotonic_ns() };
        }
    }

    fn flushed(&self) {
        let mut notes = self.notes();
        if !notes.taken || notes.phase != Phase::Serving {
            return;
        }
        let now = monotonic_ns();
        notes.taken = false;
        notes.phase = Phase::Idle { since_ns: now };
        let on_sent = notes.on_sent.take();
        drop(notes);
        if let Some(on_sent) = on_sent {
            on_sent(now);
        }
    }
}

/// A stream that notes reads and flushes.
pub(crate) struct Metered {
    pub(crate) stream: Stream,
    pub(crate) meter: Arc<Meter>,
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.meter.bytes_read();
        }
        poll
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        if matches!(poll, Poll::Ready(Ok(()))) {
            self.meter.flushed();
        }
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A response's body: there, or yet to come.
pub(crate) enum Outgoing {
    Whole(Full<Bytes>),
    Chunks {
        from: mpsc::Receiver<Bytes>,
        ended: bool,
    },
    /// The first half of a body that is announced as whole; then a reset.
    Half {
        half: Option<Bytes>,
        length: u64,
        flushed: bool,
    },
}

impl Outgoing {
    /// Half of a body, with the length of the whole.
    pub(crate) fn half(whole: &Bytes) -> Outgoing {
        let length = u64::try_from(whole.len()).unwrap_or(u64::MAX);
        Outgoing::Half { half: Some(whole.slice(..whole.len() / 2)), length, flushed: false }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self {
            Outgoing::Whole(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Outgoing::Half { half, flushed, .. } => match half.take() {
                Some(half) => Poll::Ready(Some(Ok(Frame::data(half)))),
                None if *flushed => Poll::Ready(Some(Err(Cut::Reset))),
                None => {
                    // hyper flushes what it has when a body makes it wait.
                    *flushed = true;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            },
            Outgoing::Chunks { from, ended } => {
                let chunk = std::task::ready!(from.poll_recv(cx));
                *ended = chunk.is_none();
                Poll::Ready(chunk.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Outgoing::Whole(body) => body.is_end_stream(),
            Outgoing::Chunks { ended, .. } => *ended,
            Outgoing::Half { .. } => false,
        }
    }
}

/// A body that notes when it was taken.
pub(crate) struct MeteredBody {
    body: Outgoing,
    meter: Arc<Meter>,
}

impl Body for MeteredBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let poll = self.body.poll(cx);
        if self.body.is_end_stream() {
            self.meter.notes().taken = true;
        }
        poll
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Outgoing::Whole(body) => body.size_hint(),
            Outgoing::Chunks { .. } => SizeHint::default(),
            Outgoing::Half { length, .. } => SizeHint::with_exact(*length),
        }
    }
}
