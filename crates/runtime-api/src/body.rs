//! Reads a post's body, bounded.

use crate::answer::Refusal;
use crate::words::MAX_PAYLOAD_BYTES;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Incoming};

/// What is read and thrown away of a refused body, so that the client finishes its write and reads why. Beyond, the
/// connection is closed on it.
const DRAIN_BYTES: usize = 32 * 1024 * 1024;

/// A body and the trailers behind it.
pub struct Whole {
    /// Its bytes.
    pub bytes: Bytes,
    /// Empty where there were none.
    pub trailers: HeaderMap,
}

/// Reads up to the payload limit; beyond it `TooLarge`, with the rest left to [`drain`].
pub async fn read(body: &mut Incoming) -> Result<Whole, Refusal> {
    let mut whole = BytesMut::new();
    let mut only = None;
    let mut trailers = HeaderMap::new();
    let announced = body.size_hint().exact();
    while let Some(frame) = body.frame().await {
        let frame = match frame.map_err(|_| Refusal::Truncated)?.into_data() {
            Ok(data) => data,
            Err(other) => {
                trailers = other.into_trailers().unwrap_or_default();
                continue;
            }
        };
        if whole.len() + frame.len() > MAX_PAYLOAD_BYTES {
            return Err(Refusal::TooLarge);
        }
        if announced == Some(frame.len() as u64) {
            only = Some(frame);
            continue;
        }
        let room = announced.map_or(0, |n| MAX_PAYLOAD_BYTES.min(n as usize));
        whole.reserve(room.saturating_sub(whole.len()).max(frame.len()));
        whole.extend_from_slice(&frame);
    }
    Ok(Whole { bytes: only.unwrap_or_else(|| whole.freeze()), trailers })
}

/// Throws away what is left, up to a bound.
pub async fn drain(body: &mut Incoming) {
    let mut left = DRAIN_BYTES;
    while let Some(Ok(frame)) = body.frame().await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
