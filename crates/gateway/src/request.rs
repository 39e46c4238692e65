//! What is known about an HTTP request before it is an event.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use danki_model::time::civil;
use std::collections::BTreeMap;

/// A request as it came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'r> {
    /// Method, e.g. `GET`.
    pub method: &'r str,
    /// Path as in the request line, escapes kept, without the query.
    pub path: &'r str,
    /// What follows the `?`, escapes kept; empty if nothing.
    pub query: &'r str,
    /// Names and values in the order they came.
    pub headers: &'r [(String, String)],
    /// Body.
    pub body: &'r [u8],
    /// The caller's address.
    pub source_ip: &'r str,
    /// When it came, ms since 1970.
    pub epoch_ms: u64,
}

/// What the front knows about the call that it makes of a request.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// Function URL or which gateway.
    pub front: Front,
    /// Id of the API or of the URL.
    pub api: &'c str,
    /// Host name under which the front is reached.
    pub domain: &'c str,
    /// The account; `anonymous` for a URL without authorization.
    pub account: &'c str,
    /// Stage, e.g. `dev`; `$default`.
    pub stage: &'c str,
    /// The route's path, e.g. `/orders/{id}`; `$default`.
    pub resource: &'c str,
    /// The route's method, e.g. `GET`, `ANY`.
    pub method: &'c str,
    /// What stood for the route's `{names}`, decoded.
    pub parameters: &'c BTreeMap<String, String>,
    /// The front's request id; for a function URL the invocation's.
    pub request_id: &'c str,
}

/// What stands in front of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// A function URL.
    Url,
    /// An HTTP API.
    Http,
    /// A REST API.
    Rest,
}

impl Front {
    /// How long it waits for the function, in ms: 29 s REST, 30 s HTTP API; a function URL has only the function's timeout (900 s at most).
    pub fn patience_ms(self) -> u64 {
        match self {
            Front::Url => 900_000,
            Front::Http => 30_000,
            Front::Rest => 29_000,
        }
    }
}

/// Format of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// 1.0
    V1,
    /// 2.0
    V2,
}

impl Arrival<'_> {
    /// The first value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as an event carries it: text as it is, all else in base64; and which of both.
    pub(crate) fn event_body(&self) -> (Option<String>, bool) {
        if self.body.is_empty() {
            return (None, false);
        }
        match std::str::from_utf8(self.body) {
            Ok(text) if self.is_text() => (Some(text.to_owned()), false),
            _ => (Some(STANDARD.encode(self.body)), true),
        }
    }

    /// Text travels as text by its content type, not by its bytes; without a type it is taken for text.
    fn is_text(&self) -> bool {
        if self.header("content-encoding").is_some_and(|encoding| encoding != "identity") {
            return false;
        }
        let Some(full) = self.header("content-type") else { return true };
        let kind = full.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        kind.starts_with("text/")
            || kind.ends_with("+json")
            || kind.ends_with("+xml")
            || matches!(
                kind.as_str(),
                "application/json"
                    | "application/javascript"
                    | "application/xml"
                    | "application/x-www-form-urlencoded"
                    | "application/graphql"
            )
    }

    /// `12/Mar/2020:19:03:58 +0000`
    pub(crate) fn common_log_time(&self) -> String {
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let at = civil(self.epoch_ms);
        let month = MONTHS[usize::try_from(at.month - 1).expect("a month is at most 12")];
        format!("{:02}/{month}/{}:{:02}:{:02}:{:02} +0000", at.day, at.year, at.hour, at.minute, at.second)
    }
}

/// The first label of the domain.
pub(crate) fn domain_prefix(domain: &str) -> &str {
    domain.split(['.', ':']).next().unwrap_or_default()
}
