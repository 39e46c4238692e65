//! The answers that a runtime reads, byte for byte (`lambda-platform.md` §1.3, §1.4, §1.6).

use crate::bucket::STREAM_BYTES_MAX;
use crate::event::Attempt;
use crate::extension_words;
use crate::roster::{ExtensionEvent, FunctionFacts};
use crate::state::Forbidden;
use crate::words::{self, MAX_PAYLOAD_BYTES};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// An answer, ready to be sent.
pub type Answer = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

fn answer(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// A post was taken.
pub fn accepted() -> Answer {
    answer(StatusCode::ACCEPTED, JSON, "{\"status\":\"OK\"}\n")
}

/// A subscription was taken.
pub fn ok() -> Answer {
    answer(StatusCode::OK, TEXT, "OK")
}

/// An extension has registered.
pub fn registered(identifier: &str, function: &FunctionFacts) -> Answer {
    let body = serde_json::to_vec(function).expect("strings are JSON");
    let mut response = answer(StatusCode::OK, JSON, body);
    let identifier = HeaderValue::from_str(identifier).expect("a UUID fits a header");
    response.headers_mut().insert(HeaderName::from_static(extension_words::IDENTIFIER), identifier);
    response
}

/// An extension's event.
pub fn extension_event(event: &ExtensionEvent) -> Answer {
    let mut response = answer(StatusCode::OK, JSON, event.body.clone());
    let identifier = HeaderValue::from_str(&event.identifier).expect("a UUID fits a header");
    response.headers_mut().insert(HeaderName::from_static(extension_words::EVENT_IDENTIFIER), identifier);
    response
}

/// An extension may not do this.
pub fn forbidden(error_type: &str, message: &str) -> Answer {
    answer(StatusCode::FORBIDDEN, JSON, error(error_type, message))
}

/// A subscription that is not valid.
pub fn invalid(message: &str) -> Answer {
    answer(StatusCode::BAD_REQUEST, JSON, error("ValidationError", message))
}

/// The Logs API, which the Telemetry API has replaced: as AWS answers where there is none.
pub fn no_logs_api() -> Answer {
    answer(StatusCode::ACCEPTED, JSON, error("Logs.NotSupported", "Logs API is not supported"))
}

fn error(error_type: &str, message: &str) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Error<'a> {
        error_message: &'a str,
        error_type: &'a str,
    }
    let mut body =
        serde_json::to_vec(&Error { error_message: message, error_type }).expect("strings are JSON");
    body.push(b'\n');
    body
}

/// `GET /ping`
pub fn pong() -> Answer {
    answer(StatusCode::OK, TEXT, "pong")
}

/// No such route, as AWS's router words it.
pub fn not_found() -> Answer {
    answer(StatusCode::NOT_FOUND, TEXT, "404 page not found\n")
}

/// The event, with its headers; empty ones are left out.
pub fn event(attempt: &Attempt) -> Answer {
    let invoke = &attempt.invoke;
    let mut response = answer(StatusCode::OK, JSON, invoke.payload.clone());
    let mut put = |name: &'static str, value: &str| {
        // `deliver` has refused what does not fit a header, so nothing is lost here.
        if let (false, Ok(value)) = (value.is_empty(), HeaderValue::from_str(value)) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    };
    put(words::REQUEST_ID, &invoke.request_id.0);
    put(words::DEADLINE_MS, &invoke.deadline_epoch_ms.to_string());
    put(words::FUNCTION_ARN, &invoke.function_arn);
    put(words::INVOCATION_ID, &attempt.invocation_id);
    put(words::TRACE_ID, invoke.trace_id.as_deref().unwrap_or_default());
    put(words::CLIENT_CONTEXT, invoke.client_context.as_deref().unwrap_or_default());
    put(words::COGNITO_IDENTITY, invoke.cognito_identity.as_deref().unwrap_or_default());
    response
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The id in the path is not the current invocation's.
    #[error("Invalid request ID")]
    InvalidRequestId,
    /// The attempt that this post belongs to is over.
    #[error("Invocation attempt is gone")]
    Gone,
    /// The state machine forbids it.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The body ended early.
    #[error("HTTP request detected as truncated")]
    Truncated,
    /// The response mode is not one.
    #[error("Invalid function response mode")]
    ResponseMode,
    /// The body is over the limit.
    #[error("Exceeded maximum allowed payload size ({MAX_PAYLOAD_BYTES} bytes).")]
    TooLarge,
    /// The streamed body is over the limit.
    #[error("Exceeded maximum allowed payload size ({STREAM_BYTES_MAX} bytes).")]
    StreamTooLarge,
    /// The runtime's process was killed, or the session stopped: there is nobody to answer.
    #[error("Internal Server Error")]
    Stale,
}

impl Refusal {
    fn status_and_type(self) -> (StatusCode, &'static str) {
        match self {
            Refusal::InvalidRequestId => (StatusCode::BAD_REQUEST, "InvalidRequestID"),
            Refusal::Gone => (StatusCode::GONE, "InvocationGone"),
            Refusal::Forbidden(_) => (StatusCode::FORBIDDEN, "InvalidStateTransition"),
            Refusal::Truncated => (StatusCode::BAD_REQUEST, "TruncatedHTTPRequest"),
            Refusal::ResponseMode => (StatusCode::BAD_REQUEST, "InvalidFunctionResponseMode"),
            Refusal::TooLarge | Refusal::StreamTooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge")
            }
            Refusal::Stale => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
        }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Answer {
        let (status, error_type) = refusal.status_and_type();
        // The messages hold nothing that JSON would escape.
        answer(status, JSON, format!("{{\"errorMessage\":\"{refusal}\",\"errorType\":\"{error_type}\"}}\n"))
    }
}

/// What the caller gets when the platform answers in the function's place.
pub fn platform_payload(refusal: Refusal) -> (&'static str, Bytes) {
    let (error_type, message) = match refusal {
        // Recorded on AWS, §1.6.
        Refusal::TooLarge => (
            "Function.ResponseSizeTooLarge",
            format!(
                "Response payload size exceeded maximum allowed payload size ({MAX_PAYLOAD_BYTES} bytes)."
            ),
        ),
        Refusal::StreamTooLarge => (
            "Function.ResponseSizeTooLarge",
            format!(
                "Response payload size exceeded maximum allowed payload size ({STREAM_BYTES_MAX} bytes)."
            ),
        ),
        // The error types are AWS's (§1.8); that the payload has this shape is an assumption.
        Refusal::ResponseMode => ("Runtime.InvalidResponseModeHeader", refusal.to_string()),
        _ => ("Runtime.TruncatedResponse", "Response payload was truncated".to_owned()),
    };
    (error_type, format!("{{\"errorMessage\":\"{message}\",\"errorType\":\"{error_type}\"}}").into())
}
