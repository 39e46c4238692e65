//! A streamed response on its way from the runtime to a caller that takes it as it comes.

use crate::answer::Refusal;
use crate::bucket::{Bucket, STREAM_BYTES_MAX};
use crate::event::RuntimeEvent;
use crate::posting::Posting;
use bytes::Bytes;
use danki_sys::clock::monotonic_ns;
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::Incoming;
use std::time::Duration;
use tokio::sync::mpsc::{self, OwnedPermit, Sender};

/// Largest piece that is handed on at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// Pieces that the caller may be behind; then the function waits.
const CHUNKS_MAX: usize = 16;

/// What came behind the last byte.
pub struct Ended {
    /// Bytes in all.
    pub bytes: u64,
    /// Empty where there were none.
    pub trailers: HeaderMap,
}

/// Reads and hands on. `room` is for the event that says that it has begun: with its first byte, or its end if there is none.
pub async fn pass_on(
    posting: &Posting,
    body: &mut Incoming,
    room: OwnedPermit<RuntimeEvent>,
    content_type: Option<String>,
) -> Result<Ended, Refusal> {
    let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
    let mut begun = Some((room, content_type, chunks));
    let mut begin = |posting: &Posting| {
        if let Some((room, content_type, chunks)) = begun.take() {
            room.send(posting.begun(content_type, chunks));
        }
    };
    let mut bucket = Bucket::new(monotonic_ns());
    let mut ended = Ended { bytes: 0, trailers: HeaderMap::new() };
    while let Some(frame) = body.frame().await {
        match frame.map_err(|_| Refusal::Truncated)?.into_data() {
            Ok(data) => {
                begin(posting);
                ended.bytes += data.len() as u64;
                if ended.bytes > STREAM_BYTES_MAX {
                    return Err(Refusal::StreamTooLarge);
                }
                send(&sender, &mut bucket, data).await;
            }
            Err(other) => ended.trailers = other.into_trailers().unwrap_or_default(),
        }
    }
    begin(posting);
    Ok(ended)
}

/// In pieces, at the rate that is allowed. A caller that is gone gets nothing, and the function runs on as fast as it can.
async fn send(to: &Sender<Bytes>, bucket: &mut Bucket, mut data: Bytes) {
    while !data.is_empty() && !to.is_closed() {
        let piece = data.split_to(data.len().min(CHUNK_BYTES));
        let wait_ns = bucket.take(monotonic_ns(), piece.len());
        if wait_ns > 0 {
            tokio::time::sleep(Duration::from_nanos(wait_ns)).await;
        }
        // Err: the caller is gone.
        let _ = to.send(piece).await;
    }
}
