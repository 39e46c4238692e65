//! One request of the runtime, from head to answer.

use crate::answer::{self, Answer, Refusal};
use crate::body::{self, Whole};
use crate::desk::Generation;
use crate::event::{RuntimeEvent, Streaming};
use crate::posting::Posting;
use crate::routes::{Route, route};
use crate::session::Shared;
use crate::stamp::Slot;
use crate::state::Step;
use crate::{payload, words};
use danki_sys::clock::monotonic_ns;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Request};
use std::sync::Arc;

/// Answers one request. `Err` closes the connection without an answer: it belongs to a process that was killed.
pub async fn serve(
    shared: Arc<Shared>,
    generation: Generation,
    slot: Slot,
    request: Request<Incoming>,
) -> Result<Answer, Refusal> {
    let (head, mut body) = request.into_parts();
    let headers = &head.headers;
    let answer = match route(&head.method, head.uri.path()) {
        Route::Ping => Ok(answer::pong()),
        Route::Next => next(&shared, generation, &slot).await,
        Route::Response(id) => response(shared, generation, id, headers, &mut body).await,
        Route::Error(id) => error(shared, generation, id, headers, &mut body).await,
        Route::InitError => init_error(&shared, generation, headers, &mut body).await,
        Route::Unknown => Ok(answer::not_found()),
    };
    if let Err(Refusal::Stale) = answer {
        return Err(Refusal::Stale);
    }
    // A refused body is read all the same, or hyper would have to close the connection.
    body::drain(&mut body).await;
    Ok(answer.unwrap_or_else(Answer::from))
}

/// Waits without a deadline: that is the contract of `/next`. The wait ends with the connection or the session.
async fn next(shared: &Shared, generation: Generation, slot: &Slot) -> Result<Answer, Refusal> {
    let at_ns = monotonic_ns();
    let room = shared.room().await?;
    if shared.desk().ask(generation)? {
        room.send(RuntimeEvent::NextRequested { at_ns });
    } else {
        drop(room);
    }
    loop {
        let mut changed = std::pin::pin!(shared.changed.notified());
        changed.as_mut().enable();
        let attempt = shared.desk().take(generation)?;
        if let Some(attempt) = attempt {
            slot.expect(attempt.invoke.request_id.clone(), shared.room().await?);
            return Ok(answer::event(&attempt));
        }
        changed.await;
    }
}

async fn response(
    shared: Arc<Shared>,
    generation: Generation,
    id: &str,
    headers: &HeaderMap,
    body: &mut Incoming,
) -> Result<Answer, Refusal> {
    let mut posting = begin(shared, generation, id, headers, Step::Response).await?;
    let streaming = match headers.get(words::RESPONSE_MODE).map(|v| v.as_bytes()) {
        None | Some(b"") => false,
        Some(b"streaming") => true,
        Some(_) => {
            posting.refuse(Refusal::ResponseMode)?;
            return Err(Refusal::ResponseMode);
        }
    };
    let Whole { bytes, trailers } = read(&mut posting, body).await?;
    let failed = trailers.get(words::ERROR_TYPE).filter(|_| streaming);
    posting.end(|request_id, at_ns| match failed {
        Some(error_type) => RuntimeEvent::Error {
            request_id,
            at_ns,
            error_type: words::sanitised_error_type(&text(error_type)),
            body: payload::trailer(trailers.get(words::ERROR_BODY)),
        },
        None => {
            let content_type = headers.get(CONTENT_TYPE).map(text);
            let streaming = streaming.then(|| Streaming {
                prelude: content_type.as_deref().and_then(|t| payload::prelude(t, &bytes)),
            });
            RuntimeEvent::Response { request_id, at_ns, body: bytes, content_type, streaming }
        }
    })?;
    Ok(answer::accepted())
}

async fn error(
    shared: Arc<Shared>,
    generation: Generation,
    id: &str,
    headers: &HeaderMap,
    body: &mut Incoming,
) -> Result<Answer, Refusal> {
    let mut posting = begin(shared, generation, id, headers, Step::Error).await?;
    let bytes = read(&mut posting, body).await?.bytes;
    let body = payload::without_cause(headers.get(CONTENT_TYPE), bytes);
    let error_type = reported_type(headers);
    posting.end(|request_id, at_ns| RuntimeEvent::Error { request_id, at_ns, error_type, body })?;
    Ok(answer::accepted())
}

async fn init_error(
    shared: &Shared,
    generation: Generation,
    headers: &HeaderMap,
    body: &mut Incoming,
) -> Result<Answer, Refusal> {
    let bytes = body::read(body).await?.bytes;
    let room = shared.room().await?;
    shared.desk().init_error(generation)?;
    let body = payload::without_cause(headers.get(CONTENT_TYPE), bytes);
    room.send(RuntimeEvent::InitError { at_ns: monotonic_ns(), error_type: reported_type(headers), body });
    Ok(answer::accepted())
}

/// Room first, then the state machine: from then on the invocation is sure to get an answer.
async fn begin(
    shared: Arc<Shared>,
    generation: Generation,
    id: &str,
    headers: &HeaderMap,
    step: Step,
) -> Result<Posting, Refusal> {
    let room = shared.room().await?;
    let echo = headers.get(words::INVOCATION_ID).map(|v| v.as_bytes());
    let request_id = shared.desk().post(generation, id, echo, step)?;
    Ok(Posting::begin(shared, generation, request_id, room))
}

/// The body; where it cannot be had the invocation ends here, before the rest of the body is thrown away.
async fn read(posting: &mut Posting, body: &mut Incoming) -> Result<Whole, Refusal> {
    let whole = body::read(body).await;
    if let Err(refusal) = whole {
        posting.refuse(refusal)?;
    }
    whole
}

fn reported_type(headers: &HeaderMap) -> String {
    words::sanitised_error_type(&headers.get(words::ERROR_TYPE).map(text).unwrap_or_default())
}

fn text(value: &hyper::header::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}
