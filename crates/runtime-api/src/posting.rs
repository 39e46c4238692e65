//! A post under way: whatever becomes of its connection, the invocation gets exactly one answer.

use crate::answer::{Refusal, platform_payload};
use crate::desk::Generation;
use crate::event::RuntimeEvent;
use crate::session::Shared;
use bytes::Bytes;
use danki_model::RequestId;
use danki_sys::clock::monotonic_ns;
use std::sync::Arc;
use tokio::sync::mpsc::{OwnedPermit, Receiver};

/// Holds room for the event from the beginning, so that ending needs no waiting. Dropped without [`Posting::end`]
/// (the runtime closed its connection half-way), it reports a truncated response.
pub struct Posting {
    shared: Arc<Shared>,
    generation: Generation,
    request_id: RequestId,
    room: Option<OwnedPermit<RuntimeEvent>>,
}

impl Posting {
    /// After the state machine has allowed the post.
    pub fn begin(
        shared: Arc<Shared>,
        generation: Generation,
        request_id: RequestId,
        room: OwnedPermit<RuntimeEvent>,
    ) -> Posting {
        Posting { shared, generation, request_id, room: Some(room) }
    }

    /// The event that says that a streamed response has begun.
    pub fn begun(&self, content_type: Option<String>, chunks: Receiver<Bytes>) -> RuntimeEvent {
        let request_id = self.request_id.clone();
        RuntimeEvent::StreamBegun { request_id, at_ns: monotonic_ns(), content_type, chunks }
    }

    /// The platform answers in the function's place.
    pub fn refuse(&mut self, refusal: Refusal) -> Result<(), Refusal> {
        let (error_type, body) = platform_payload(refusal);
        self.end(|request_id, at_ns| RuntimeEvent::Error {
            request_id,
            at_ns,
            error_type: error_type.to_owned(),
            body,
        })
    }

    /// The post was read: `event` is what it says.
    pub fn end(&mut self, event: impl FnOnce(RequestId, u64) -> RuntimeEvent) -> Result<(), Refusal> {
        let Some(room) = self.room.take() else { return Err(Refusal::Stale) };
        self.shared.desk().sent(self.generation)?;
        room.send(event(self.request_id.clone(), monotonic_ns()));
        Ok(())
    }
}

impl Drop for Posting {
    fn drop(&mut self) {
        // Err: it has ended already, or the process was reset, and nobody waits for this answer.
        let _ = self.refuse(Refusal::Truncated);
    }
}
