//! One request through a front: to an event, through the function, to a response.

use super::table::{Place, Table};
use crate::api::{Api, now_ms};
use crate::arn;
use crate::ops::invoke;
use bytes::Bytes;
use danki_gateway::{Arrival, Front, Head, Payload, Response, event};
use danki_host::{Caller, Error, Pending, Wants};
use danki_model::RequestId;
use danki_serve::{Answer, Call};
use danki_sys::clock;
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Chunks that wait for the client; at the bound the function waits.
const WAITING: usize = 8;
/// Largest event of an invocation, and so of a request.
const EVENT_BYTES: usize = danki_model::limits::REQUEST_BYTES;

pub async fn answer(api: &Arc<Api>, table: &Table, call: Call) -> Answer {
    let id = api.uuid();
    let host =
        call.head.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    let found = table.place(api, &host, call.head.method.as_str(), call.head.uri.path());
    let place = match found {
        Ok(place) => place,
        Err(front) => return whole(Response::not_found(front), &id),
    };
    let signed = call.head.headers.contains_key("authorization");
    if place.needs_iam && !signed {
        return whole(Response::forbidden(), &id);
    }
    let Ok(body) = &call.body else { return whole(too_large(place.front), &id) };
    let event = arrived(&place, &call, &host, &body.bytes, &id).to_string();
    if event.len() > EVENT_BYTES {
        return whole(too_large(place.front), &id);
    }
    let patience = Duration::from_millis(place.timeout_ms);
    match tokio::time::timeout(patience, invoked(api, &place, event, &id)).await {
        Ok(answer) => answer,
        Err(_) => whole(Response::timeout(place.front), &id),
    }
}

fn arrived(place: &Place, call: &Call, host: &str, body: &[u8], id: &str) -> serde_json::Value {
    let mut headers: Vec<(String, String)> = call
        .head
        .headers
        .iter()
        .map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    let client = call.peer.client.ip().to_string();
    let https = call.peer.tls.is_some();
    for (name, value) in [
        ("x-forwarded-for", client.clone()),
        ("x-forwarded-port", call.peer.local.port().to_string()),
        ("x-forwarded-proto", if https { "https" } else { "http" }.to_owned()),
    ] {
        headers.push((name.to_owned(), value));
    }
    let arrival = Arrival {
        method: call.head.method.as_str(),
        path: &place.path,
        query: call.head.uri.query().unwrap_or_default(),
        headers: &headers,
        body,
        source_ip: &client,
        epoch_ms: now_ms(),
    };
    let account = if place.front == Front::Url && !place.needs_iam { "anonymous" } else { arn::ACCOUNT };
    let made = danki_gateway::Call {
        front: place.front,
        api: &place.id,
        domain: host,
        account,
        stage: &place.stage,
        resource: &place.resource,
        method: &place.method,
        parameters: &place.parameters,
        request_id: id,
    };
    event(&arrival, &made, place.payload)
}

async fn invoked(api: &Arc<Api>, place: &Place, event: String, id: &str) -> Answer {
    let qualifier = place.qualifier.as_deref();
    let Ok(version) = invoke::choose(api, &place.function, qualifier) else {
        return whole(Response::failure(place.front), id);
    };
    let Some(function) = api.fleet.get(&place.function, &version) else {
        return whole(Response::failure(place.front), id);
    };
    let call = danki_host::Call {
        payload: Bytes::from(event),
        intended_ns: clock::monotonic_ns(),
        caller: Caller {
            request_id: Some(RequestId(id.to_owned())),
            function_arn: Some(arn::function(api.region(), &place.function, qualifier)),
            ..Caller::default()
        },
        wants: if place.streams { Wants::Stream } else { Wants::Whole },
        ..danki_host::Call::default()
    };
    let Pending { answer, .. } = match function.begin(call) {
        Ok(pending) => pending,
        Err(Error::Throttled(_)) => return whole(Response::throttled(place.front), id),
        Err(_) => return whole(Response::failure(place.front), id),
    };
    match answer.await {
        Ok(answer) if answer.function_error.is_none() => answered(place, answer, id).await,
        _ => whole(Response::failure(place.front), id),
    }
}

async fn answered(place: &Place, answer: danki_host::Answer, id: &str) -> Answer {
    let Some(mut stream) = answer.stream else {
        let response = Response::read(&answer.payload, place.payload);
        return whole(response.unwrap_or_else(|_| Response::failure(place.front)), id);
    };
    let prelude = stream.prelude().await;
    let kind = answer.content_type.unwrap_or_else(|| "application/octet-stream".to_owned());
    let Some(head) = streamed_head(prelude, kind) else {
        return whole(Response::failure(place.front), id);
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        while let Some(chunk) = stream.next().await {
            if sender.send(chunk).await.is_err() {
                return;
            }
        }
    });
    match http(&head, id, receiver) {
        Some(response) => Answer::Stream { response },
        None => whole(Response::failure(place.front), id),
    }
}

/// Status and headers of a streamed answer: its prelude's, or 200 and the content type alone.
fn streamed_head(prelude: Option<Bytes>, kind: String) -> Option<Head> {
    match prelude {
        None => Some(Head { status: 200, headers: vec![("content-type".to_owned(), kind)] }),
        Some(json) => {
            Head::read(serde_json::from_slice::<serde_json::Value>(&json).ok()?.as_object()?, Payload::V2)
                .ok()
        }
    }
}

fn whole(response: Response, id: &str) -> Answer {
    let body = Full::new(Bytes::from(response.body));
    let made = http(&response.head, id, body);
    Answer::reply(made.unwrap_or_else(|| hyper::Response::new(Full::new(Bytes::new()))))
}

/// None if the head cannot be sent.
fn http<B>(head: &Head, id: &str, body: B) -> Option<hyper::Response<B>> {
    let mut response = hyper::Response::new(body);
    *response.status_mut() = hyper::StatusCode::from_u16(head.status).ok()?;
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        // The length and the framing are the server's.
        if name != hyper::header::CONTENT_LENGTH
            && name != hyper::header::TRANSFER_ENCODING
            && name != hyper::header::CONNECTION
        {
            response.headers_mut().append(name, HeaderValue::from_str(value).ok()?);
        }
    }
    response.headers_mut().insert("x-amzn-requestid", HeaderValue::from_str(id).ok()?);
    Some(response)
}

fn too_large(front: Front) -> Response {
    let body = match front {
        Front::Url => "{\"Message\":\"Request too large\"}",
        Front::Http | Front::Rest => "{\"message\":\"Request Too Long\"}",
    };
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Response { head: Head { status: 413, headers }, body: body.as_bytes().to_vec() }
}
