//! One request of the runtime, from head to answer.

use crate::answer::{self, Answer, Refusal};
use crate::body::{self, Whole};
use crate::desk::Generation;
use crate::event::{RuntimeEvent, Streaming};
use crate::extensions::{self, render};
use crate::posting::Posting;
use crate::routes::{Route, route};
use crate::session::Shared;
use crate::stamp::Slot;
use crate::standing::Standing;
use crate::state::Step;
use crate::{payload, stream, words};
use bytes::Bytes;
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
        Route::Register => render(extensions::register(&shared, generation, headers, &mut body).await),
        Route::ExtensionNext => render(extensions::next(&shared, generation, headers).await),
        Route::ExtensionInitError => {
            let to = Standing::InitError;
            render(extensions::error(&shared, generation, headers, &mut body, to).await)
        }
        Route::ExtensionExitError => {
            let to = Standing::ExitError;
            render(extensions::error(&shared, generation, headers, &mut body, to).await)
        }
        Route::Telemetry => render(extensions::subscribe(&shared, generation, headers, &mut body).await),
        Route::Logs => Ok(answer::no_logs_api()),
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
    let mut posting = begin(shared.clone(), generation, id, headers, Step::Response).await?;
    let streaming = match headers.get(words::RESPONSE_MODE).map(|v| v.as_bytes()) {
        None | Some(b"") => false,
        Some(b"streaming") => true,
        Some(_) => {
            posting.refuse(Refusal::ResponseMode)?;
            return Err(Refusal::ResponseMode);
        }
    };
    let content_type = headers.get(CONTENT_TYPE).map(text);
    let passed_on = streaming && shared.desk().streams();
    let (bytes, length, trailers) = if passed_on {
        let room = shared.room().await?;
        let ended = stream::pass_on(&posting, body, room, content_type.clone()).await;
        let ended = refuse(&mut posting, ended)?;
        (Bytes::new(), ended.bytes, ended.trailers)
    } else {
        let read = body::read(body).await;
        let Whole { bytes, trailers } = refuse(&mut posting, read)?;
        (bytes.clone(), bytes.len() as u64, trailers)
    };
    let failed = trailers.get(words::ERROR_TYPE).filter(|_| streaming);
    posting.end(|request_id, at_ns| match failed {
        Some(error_type) => RuntimeEvent::Error {
            request_id,
            at_ns,
            error_type: words::sanitised_error_type(&text(error_type)),
            body: payload::trailer(trailers.get(words::ERROR_BODY)),
        },
        None => {
            let prelude = content_type.as_deref().and_then(|t| payload::prelude(t, &bytes));
            let streaming = streaming.then_some(Streaming { prelude, bytes: length });
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
    let read = body::read(body).await;
    let bytes = refuse(&mut posting, read)?.bytes;
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

/// Where the body cannot be had the invocation ends here, before the rest of the body is thrown away.
fn refuse<T>(posting: &mut Posting, read: Result<T, Refusal>) -> Result<T, Refusal> {
    if let Err(refusal) = read {
        posting.refuse(refusal)?;
    }
    read
}

fn reported_type(headers: &HeaderMap) -> String {
    words::sanitised_error_type(&headers.get(words::ERROR_TYPE).map(text).unwrap_or_default())
}

fn text(value: &hyper::header::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}
