//! Invoke: the request path. What is checked before the function runs is what AWS checks, in its order.

use super::qualified;
use crate::api::Api;
use crate::arn;
use crate::asynchronous::{self, Event};
use crate::fault::{Fault, Kind, Throttle};
use crate::request::{Outcome, Reply, Request};
use crate::store::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use danki_host::{Call, Caller, Forced, Function, Pending, Wants};
use danki_model::{RequestId, limits};
use danki_sys::clock;
use serde::de::IgnoredAny;
use std::sync::Arc;
use std::time::Duration;

/// Largest asynchronous event (§7.3: 1 MB since late 2025).
pub const EVENT_BYTES: usize = 1024 * 1024;
/// Largest `X-Amz-Client-Context` (§7.1).
const CONTEXT_BYTES: usize = 3_583;
/// danki's own header: how the env is to be found (`cold`, `warm`, `expired`, `gap=65s`).
const FORCE: &str = "x-danki-force";

/// A synchronous call that was checked: which version serves it, and what it is told.
pub struct Checked {
    pub function: Function,
    pub version: String,
    pub call: Call,
}

pub async fn invoke(api: Arc<Api>, request: Request) -> Outcome {
    match request.header("x-amz-invocation-type").unwrap_or("RequestResponse") {
        "RequestResponse" => synchronous(&api, request).await,
        "Event" => event(&api, &request, EVENT_BYTES),
        "DryRun" => {
            let (name, qualifier) = qualified(&request)?;
            choose(&api, &name, qualifier.as_deref())?;
            Ok(Reply::empty(204))
        }
        other => {
            let constraint = "Member must satisfy enum value set: [Event, RequestResponse, DryRun]";
            Err(Fault::constraint(other, "invocationType", constraint))
        }
    }
}

async fn synchronous(api: &Arc<Api>, request: Request) -> Outcome {
    let tail = request.header("x-amz-log-type") == Some("Tail");
    let Checked { function, version, call } = check(api, &request)?;
    let Pending { answer, outcome } = begin(&function, call)?;
    let gone = |_| Fault::service("the execution environment could not be used; danki's output says why");
    if !tail {
        return match answer.await {
            Ok(answer) => Ok(reply(answer.payload, answer.function_error, version)),
            // The env failed before it could answer: the outcome has the reason.
            Err(_) => Err(failed(outcome.await)),
        };
    }
    let done = outcome.await.map_err(gone)?.map_err(|e| refused(&e))?;
    let mut text = done.log_tail.join("\n");
    text.push('\n');
    let answer = reply(done.payload, done.function_error, version);
    Ok(answer.header("X-Amz-Log-Result", STANDARD.encode(last_bytes(&text, limits::LOG_TAIL_BYTES))))
}

/// Checks the request and finds who serves it.
pub fn check(api: &Arc<Api>, request: &Request) -> Result<Checked, Fault> {
    let (name, qualifier) = qualified(request)?;
    check_body(&request.body, limits::REQUEST_BYTES)?;
    let version = choose(api, &name, qualifier.as_deref())?;
    let function = api.fleet.get(&name, &version).ok_or_else(|| state_fault(api, &name, &version))?;
    let call = Call {
        payload: payload(&request.body),
        intended_ns: clock::monotonic_ns(),
        caller: Caller {
            request_id: Some(RequestId(request.id.clone())),
            function_arn: Some(arn::function(api.region(), &name, qualifier.as_deref())),
            trace_id: request.header("x-amzn-trace-id").map(str::to_owned),
            client_context: client_context(request)?,
            ..Caller::default()
        },
        forced: forced(request)?,
        wants: Wants::Whole,
        ..Call::default()
    };
    Ok(Checked { function, version, call })
}

/// Starts the invocation, or says which limit forbids it.
pub fn begin(function: &Function, call: Call) -> Result<Pending, Fault> {
    function.begin(call).map_err(|error| refused(&error))
}

/// Which version serves: the qualifier's, or one of an alias's two by weight.
pub fn choose(api: &Api, name: &str, qualifier: Option<&str>) -> Result<String, Fault> {
    let account = api.account();
    let found = account.find(api.region(), name, qualifier).map_err(|_| {
        Fault::function_not_found(&arn::function(api.region(), name, Some(qualifier.unwrap_or("$LATEST"))))
    })?;
    let alias = found.alias.and_then(|alias| found.function.aliases.get(alias));
    let number = found.version.number.clone();
    let Some((other, weight)) = alias.and_then(|a| a.weights.iter().next()) else { return Ok(number) };
    Ok(if api.random::<f64>() < *weight { other.clone() } else { number })
}

/// Accepts an asynchronous event.
pub fn event(api: &Arc<Api>, request: &Request, limit: usize) -> Outcome {
    let (name, qualifier) = qualified(request)?;
    check_body(&request.body, limit)?;
    choose(api, &name, qualifier.as_deref())?;
    let event = Event {
        id: RequestId(request.id.clone()),
        function: name,
        qualifier,
        payload: payload(&request.body),
        client_context: client_context(request)?,
        trace_id: request.header("x-amzn-trace-id").map(str::to_owned),
        chain: 0,
    };
    asynchronous::accept(api, event)?;
    Ok(Reply::empty(202))
}

fn check_body(body: &[u8], limit: usize) -> Result<(), Fault> {
    if body.len() > limit {
        let message = format!("Request must be smaller than {limit} bytes for the InvokeFunction operation");
        return Err(Fault::new(Kind::RequestTooLarge, message));
    }
    if body.is_empty() {
        return Ok(());
    }
    serde_json::from_slice::<IgnoredAny>(body).map(drop).map_err(|error| {
        let message =
            format!("Could not parse request body into json: Could not parse payload into json: {error}");
        Fault::new(Kind::InvalidRequestContent, message)
    })
}

fn payload(body: &Bytes) -> Bytes {
    if body.is_empty() { Bytes::from_static(b"{}") } else { body.clone() }
}

fn client_context(request: &Request) -> Result<Option<String>, Fault> {
    let Some(encoded) = request.header("x-amz-client-context") else { return Ok(None) };
    let decoded = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let json = decoded.and_then(|text| {
        // On one line: it travels in a header.
        let value: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(value.to_string())
    });
    if encoded.len() > CONTEXT_BYTES || json.is_none() {
        let message = "Client context must be a valid Base64-encoded JSON object.";
        return Err(Fault::new(Kind::InvalidRequestContent, message));
    }
    Ok(json)
}

fn forced(request: &Request) -> Result<Option<Forced>, Fault> {
    let Some(text) = request.header(FORCE) else { return Ok(None) };
    let gap = |text: &str| {
        let seconds = text.strip_prefix("gap=")?.strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok().map(Forced::IdleGap)
    };
    match text {
        "cold" => Ok(Some(Forced::Cold)),
        "warm" => Ok(Some(Forced::Warm)),
        "expired" => Ok(Some(Forced::Expired)),
        other => gap(other).map(Some).ok_or_else(|| {
            Fault::invalid(format!(
                "header X-Danki-Force is {other:?}; allowed: cold, warm, expired, gap=SECONDSs"
            ))
        }),
    }
}

fn reply(payload: Bytes, function_error: Option<String>, version: String) -> Reply {
    let reply = Reply { content_type: "application/json", ..Reply::bytes(200, payload) };
    let reply = reply.header("X-Amz-Executed-Version", version);
    match function_error {
        Some(error) => reply.header("X-Amz-Function-Error", error),
        None => reply,
    }
}

/// Why a version that exists cannot be invoked.
fn state_fault(api: &Api, name: &str, number: &str) -> Fault {
    let account = api.account();
    let version = account.functions.get(name).and_then(|f| f.version(number));
    let state = match version.map(|v| &v.state) {
        Some(State::Failed(reason)) => format!("Failed ({reason})"),
        _ => "Pending".to_owned(),
    };
    Fault::conflict(format!(
        "The operation cannot be performed at this time. The function is currently in the following state: {state}"
    ))
}

fn failed(outcome: Result<Result<danki_host::Outcome, danki_host::Error>, impl Sized>) -> Fault {
    match outcome {
        Ok(Err(error)) => refused(&error),
        _ => Fault::service("the execution environment ended without an answer"),
    }
}

/// What a host's error is to a caller.
pub fn refused(error: &danki_host::Error) -> Fault {
    use danki_host::Throttle as Why;
    let throttle = match error {
        danki_host::Error::Throttled(why) => match why {
            Why::ReservedFunctionConcurrentInvocationLimitExceeded => Throttle::Reserved,
            Why::ReservedFunctionInvocationRateLimitExceeded => Throttle::ReservedRate,
            Why::FunctionInvocationRateLimitExceeded => Throttle::FunctionRate,
            Why::CallerRateLimitExceeded => Throttle::AccountRate,
            _ => Throttle::Account,
        },
        other => return Fault::service(other.to_string()),
    };
    Fault::throttled(throttle)
}

/// The last bytes of a text, from a character's beginning.
fn last_bytes(text: &str, limit: usize) -> &[u8] {
    let mut from = text.len().saturating_sub(limit);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text.as_bytes()[from..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bodies_are_checked() {
        let check = |body: &[u8], limit| check_body(body, limit).map_err(|f| f.kind.wire().0);
        assert_eq!(check(b"", 1), Ok(()));
        assert_eq!(check(b"{\"a\":[1]}", 9), Ok(()));
        assert_eq!(check(b"12", 1), Err("RequestTooLargeException"));
        for bad in [&b"{"[..], b"x", b"{} {}", b"\xff"] {
            assert_eq!(check(bad, 100), Err("InvalidRequestContentException"));
        }
    }

    #[test]
    fn a_tail_begins_with_a_whole_character() {
        assert_eq!(last_bytes("aéb", 2), b"b");
        assert_eq!(last_bytes("aéb", 3), "éb".as_bytes());
        assert_eq!(last_bytes("ab", 9), b"ab");
    }

    proptest! {
        #[test]
        fn any_body_is_checked(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let by_value = serde_json::from_slice::<serde_json::Value>(&body).is_ok() || body.is_empty();
            prop_assert_eq!(check_body(&body, 1_000).is_ok(), by_value);
        }
    }
}
