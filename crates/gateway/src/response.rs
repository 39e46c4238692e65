//! What a function returned, as HTTP.

use crate::request::{Front, Payload};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Status and headers.
    pub head: Head,
    /// Body.
    pub body: Vec<u8>,
}

/// Status and headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// 100 to 599.
    pub status: u16,
    /// Names in the case that the function gave; repeated for several values.
    pub headers: Vec<(String, String)>,
}

/// An answer that is not what a proxy integration takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not JSON at all.
    #[error("the function's answer is not JSON")]
    NotJson,
    /// Format 1.0 has no way to say less than a status.
    #[error("the function's answer has no statusCode, which format 1.0 needs")]
    NoStatus,
    /// A status that HTTP does not have.
    #[error("statusCode is {0}; allowed: 100 to 599")]
    Status(String),
    /// A header that is not a scalar, or not a header.
    #[error("header {0:?} cannot be sent")]
    Header(String),
    /// A body that is said to be base64 and is not.
    #[error("the body is not base64 although isBase64Encoded is true")]
    Body,
}

impl Response {
    /// Reads a function's answer.
    pub fn read(answer: &[u8], payload: Payload) -> Result<Response, Malformed> {
        let value: Value = serde_json::from_slice(answer).map_err(|_| Malformed::NotJson)?;
        match (value, payload) {
            (Value::Object(map), _) if map.contains_key("statusCode") => Response::proxied(&map, payload),
            (_, Payload::V1) => Err(Malformed::NoStatus),
            (value, Payload::V2) => Ok(Response::inferred(&value)),
        }
    }

    /// What the front itself says when the function failed or its answer is malformed.
    pub fn failure(front: Front) -> Response {
        let (kind, body) = match front {
            Front::Url => ("text/plain", "Internal Server Error"),
            Front::Http => ("application/json", "{\"message\":\"Internal Server Error\"}"),
            Front::Rest => ("application/json", "{\"message\": \"Internal server error\"}"),
        };
        Response::own(502, kind, body)
    }

    /// What the front says when the function took longer than the front waits.
    pub fn timeout(front: Front) -> Response {
        let body = match front {
            Front::Url | Front::Http => "{\"message\":\"Service Unavailable\"}",
            Front::Rest => "{\"message\": \"Endpoint request timed out\"}",
        };
        Response::own(if front == Front::Rest { 504 } else { 503 }, "application/json", body)
    }

    /// What the front says when Lambda throttled the invocation. API Gateway hides a 429 of its backend.
    pub fn throttled(front: Front) -> Response {
        match front {
            Front::Url => Response::own(429, "application/json", "{\"Message\":\"Rate Exceeded.\"}"),
            Front::Http => Response::own(503, "application/json", "{\"message\":\"Service Unavailable\"}"),
            Front::Rest => Response::own(500, "application/json", "{\"message\": \"Internal server error\"}"),
        }
    }

    /// What the front says when no route fits.
    pub fn not_found(front: Front) -> Response {
        match front {
            Front::Rest => {
                Response::own(403, "application/json", "{\"message\":\"Missing Authentication Token\"}")
            }
            Front::Url | Front::Http => Response::own(404, "application/json", "{\"message\":\"Not Found\"}"),
        }
    }

    /// What a function URL with `AWS_IAM` says to a caller without credentials.
    pub fn forbidden() -> Response {
        let body = "{\"Message\":\"Forbidden. For troubleshooting Function URL authorization issues, see: \
                    https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html\"}";
        Response::own(403, "application/json", body)
    }

    fn own(status: u16, kind: &str, body: &str) -> Response {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Response { head: Head { status, headers }, body: body.as_bytes().to_vec() }
    }

    fn proxied(map: &Map<String, Value>, payload: Payload) -> Result<Response, Malformed> {
        let mut head = Head::read(map, payload)?;
        let body = match map.get("body") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) if map.get("isBase64Encoded") == Some(&Value::Bool(true)) => {
                STANDARD.decode(text).map_err(|_| Malformed::Body)?
            }
            Some(value) => scalar(value).unwrap_or_else(|| value.to_string()).into_bytes(),
        };
        head.default_type(if payload == Payload::V2 {
            "text/plain; charset=utf-8"
        } else {
            "application/json"
        });
        Ok(Response { head, body })
    }

    /// Format 2.0 takes any JSON as the body of a 200; a text comes without its quotes, as recorded from a function URL.
    fn inferred(value: &Value) -> Response {
        let body = scalar(value).unwrap_or_else(|| value.to_string());
        Response::own(200, "application/json", &body)
    }
}

impl Head {
    /// Status, headers and cookies of an answer, or of the prelude of a streamed one.
    pub fn read(map: &Map<String, Value>, payload: Payload) -> Result<Head, Malformed> {
        let status = match map.get("statusCode") {
            None => 200,
            Some(value) => status(value)?,
        };
        let mut head = Head { status, headers: Vec::new() };
        if let Some(Value::Object(several)) = map.get("multiValueHeaders").filter(|_| payload == Payload::V1)
        {
            for (name, values) in several {
                let values = values.as_array().ok_or_else(|| Malformed::Header(name.clone()))?;
                values.iter().try_for_each(|value| head.add(name, value))?;
            }
        }
        if let Some(Value::Object(single)) = map.get("headers") {
            for (name, value) in single {
                // The list wins where both name a header.
                if !head.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                    head.add(name, value)?;
                }
            }
        }
        if let Some(Value::Array(cookies)) = map.get("cookies").filter(|_| payload == Payload::V2) {
            cookies.iter().try_for_each(|cookie| head.add("set-cookie", cookie))?;
        }
        Ok(head)
    }

    fn add(&mut self, name: &str, value: &Value) -> Result<(), Malformed> {
        let bad = || Malformed::Header(name.to_owned());
        let text = scalar(value).ok_or_else(bad)?;
        let token = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
        if name.is_empty()
            || !name.bytes().all(token)
            || text.bytes().any(|c| c < b' ' && c != b'\t' || c == 127)
        {
            return Err(bad());
        }
        self.headers.push((name.to_owned(), text));
        Ok(())
    }

    fn default_type(&mut self, kind: &str) {
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            self.headers.push(("content-type".to_owned(), kind.to_owned()));
        }
    }
}

fn status(value: &Value) -> Result<u16, Malformed> {
    let number = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let status = number.and_then(|n| u16::try_from(n).ok()).filter(|status| (100..600).contains(status));
    status.ok_or_else(|| Malformed::Status(value.to_string()))
}

/// A text without quotes, a number or a boolean; nothing for lists and maps.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null => Some(String::new()),
        Value::Array(_) | Value::Object(_) => None,
    }
}
