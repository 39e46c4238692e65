//! A stream that knows when the event was handed to the socket.

use crate::event::RuntimeEvent;
use danki_model::RequestId;
use danki_sys::clock::monotonic_ns;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::OwnedPermit;

/// The delivery that the next written bytes belong to. The service fills it, the stream empties it.
#[derive(Clone, Default)]
pub struct Slot(Arc<Mutex<Option<Delivery>>>);

struct Delivery {
    permit: OwnedPermit<RuntimeEvent>,
    request_id: RequestId,
    at_ns: Option<u64>,
}

impl Slot {
    /// What is written from now on is the event of `request_id`.
    pub fn expect(&self, request_id: RequestId, permit: OwnedPermit<RuntimeEvent>) {
        *self.lock() = Some(Delivery { permit, request_id, at_ns: None });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Delivery>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    fn writing(&self) {
        if let Some(delivery) = self.lock().as_mut() {
            delivery.at_ns.get_or_insert_with(monotonic_ns);
        }
    }

    /// hyper flushes the stream when its own buffers are empty: the whole event is in the socket.
    fn flushed(&self) {
        if let Some(Delivery { permit, request_id, at_ns: Some(at_ns) }) =
            self.lock().take_if(|d| d.at_ns.is_some())
        {
            permit.send(RuntimeEvent::Delivered { request_id, at_ns });
        }
    }
}

/// See the module.
pub struct Stamped<S> {
    inner: S,
    slot: Slot,
}

impl<S> Stamped<S> {
    /// `inner`, whose writes fulfil `slot`.
    pub fn new(inner: S, slot: Slot) -> Self {
        Stamped { inner, slot }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stamped<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stamped<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.slot.writing();
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.slot.writing();
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.slot.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
