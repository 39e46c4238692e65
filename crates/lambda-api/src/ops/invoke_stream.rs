//! InvokeWithResponseStream: chunks as the function writes them, then how it ended.

use super::invoke::{self, Checked};
use crate::api::Api;
use crate::eventstream;
use crate::fault::Fault;
use crate::request::{Content, Outcome, Reply, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use danki_host::{Answer, Pending, StreamEnd, Wants};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Messages that wait for the caller; at the bound the function waits.
const WAITING: usize = 8;
const CONTENT_TYPE: &str = "application/vnd.amazon.eventstream";

pub async fn invoke_with_response_stream(api: Arc<Api>, request: Request) -> Outcome {
    if request.header("x-amz-invocation-type") == Some("DryRun") {
        return invoke::invoke(api, request).await;
    }
    let tail = request.header("x-amz-log-type") == Some("Tail");
    let Checked { function, version, mut call } = invoke::check(&api, &request)?;
    call.wants = Wants::Stream;
    let mut pending = invoke::begin(&function, call)?;
    let answer = match (&mut pending.answer).await {
        Ok(answer) => answer,
        Err(_) => {
            let reason = match pending.outcome.await {
                Ok(Err(error)) => invoke::refused(&error),
                _ => Fault::service("the execution environment ended without an answer"),
            };
            return Err(reason);
        }
    };
    let content_type = answer.content_type.clone().unwrap_or_else(|| "application/octet-stream".to_owned());
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(send(answer, pending, tail, sender));
    let reply = Reply {
        status: 200,
        content_type: CONTENT_TYPE,
        headers: vec![("X-Amz-Executed-Version", version), ("X-Amzn-Remapped-Content-Type", content_type)],
        body: Content::Stream(receiver),
    };
    Ok(reply)
}

/// Sends until the end, or until the caller is gone: the function does not mind.
async fn send(answer: Answer, pending: Pending, tail: bool, to: mpsc::Sender<Bytes>) {
    let chunk = |payload: &[u8]| eventstream::event("PayloadChunk", "application/octet-stream", payload);
    let mut complete = json!({});
    match answer.stream {
        Some(mut stream) => {
            while let Some(bytes) = stream.next().await {
                if to.send(chunk(&bytes)).await.is_err() {
                    return;
                }
            }
            if let StreamEnd::Failed { error_type, payload } = stream.end().await {
                fail(&mut complete, &error_type, &payload);
            }
        }
        None => {
            if answer.function_error.is_some() {
                fail(&mut complete, "Unhandled", &answer.payload);
            } else if to.send(chunk(&answer.payload)).await.is_err() {
                return;
            }
        }
    }
    if tail && let Ok(Ok(outcome)) = pending.outcome.await {
        complete["LogResult"] = STANDARD.encode(outcome.log_tail.join("\n") + "\n").into();
    }
    let last = eventstream::event("InvokeComplete", "application/json", complete.to_string().as_bytes());
    to.send(last).await.ok();
}

fn fail(complete: &mut Value, code: &str, details: &[u8]) {
    complete["ErrorCode"] = code.into();
    complete["ErrorDetails"] = String::from_utf8_lossy(details).into();
}
