//! A stream that reports the event as delivered when it writes its first byte.
//!
//! Just before, not after: so the report is in the channel before anything that the function does about it, even if it
//! answers on another connection.

use crate::event::RuntimeEvent;
use danki_model::RequestId;
use danki_sys::clock::monotonic_ns;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::OwnedPermit;

/// The delivery that the next written bytes belong to. The service fills it, the stream empties it.
#[derive(Clone, Default)]
pub struct Slot(Arc<Mutex<Option<Delivery>>>);

struct Delivery {
    permit: OwnedPermit<RuntimeEvent>,
    request_id: RequestId,
}

impl Slot {
    /// What is written from now on is the event of `request_id`.
    pub fn expect(&self, request_id: RequestId, permit: OwnedPermit<RuntimeEvent>) {
        *self.lock() = Some(Delivery { permit, request_id });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Delivery>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    fn writing(&self) {
        if let Some(Delivery { permit, request_id }) = self.lock().take() {
            permit.send(RuntimeEvent::Delivered { request_id, at_ns: monotonic_ns() });
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
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
