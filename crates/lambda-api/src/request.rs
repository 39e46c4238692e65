//! One request, as an operation sees it, and its reply.

use crate::fault::{Fault, Kind};
use bytes::Bytes;
use hyper::{HeaderMap, Method};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A request that was routed.
pub struct Request {
    pub method: Method,
    /// The path as sent, decoded.
    pub path: String,
    /// Values of the path template's parameters.
    pub parameters: Vec<(&'static str, String)>,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The request's id, in `x-amzn-RequestId`.
    pub id: String,
    /// What the caller reached us by, e.g. `127.0.0.1:9001`.
    pub host: String,
}

impl Request {
    /// A parameter of the path template. The table names it, so it is there.
    pub fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(key, _)| *key == name);
        &found.expect("the route's template has this parameter").1
    }

    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as JSON; an empty body is an empty object.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(body).map_err(|error| {
            let message = format!("Could not parse request body into json: {error}");
            Fault::new(Kind::InvalidRequestContent, message)
        })
    }

    /// Where a list begins and how many it may hold.
    pub fn page(&self) -> Page {
        let size = self.query("MaxItems").and_then(|n| n.parse().ok()).unwrap_or(50).clamp(1, 10_000);
        Page { marker: self.query("Marker").unwrap_or_default().to_owned(), size }
    }
}

/// A stretch of a list. The marker is the position of its first item.
pub struct Page {
    marker: String,
    size: usize,
}

impl Page {
    /// The items of this page, and the marker of the next.
    pub fn of<T>(&self, all: Vec<T>) -> (Vec<T>, Option<String>) {
        let from: usize = self.marker.parse().unwrap_or(0);
        let next = from.saturating_add(self.size);
        let marker = (next < all.len()).then(|| next.to_string());
        (all.into_iter().skip(from).take(self.size).collect(), marker)
    }
}

/// What an operation answers.
pub struct Reply {
    pub status: u16,
    pub content_type: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: Content,
}

/// A body that is there, or one that is yet to come.
pub enum Content {
    Whole(Bytes),
    /// Chunks, each sent as it comes.
    Stream(tokio::sync::mpsc::Receiver<Bytes>),
}

/// An operation's outcome.
pub type Outcome = Result<Reply, Fault>;

impl Reply {
    pub fn json(status: u16, value: &Value) -> Reply {
        let body = Content::Whole(value.to_string().into());
        Reply { status, content_type: "application/json", headers: Vec::new(), body }
    }

    pub fn xml(status: u16, body: String) -> Reply {
        Reply { content_type: "text/xml", ..Reply::bytes(status, body.into()) }
    }

    pub fn bytes(status: u16, body: Bytes) -> Reply {
        let body = Content::Whole(body);
        Reply { status, content_type: "application/octet-stream", headers: Vec::new(), body }
    }

    /// No body.
    pub fn empty(status: u16) -> Reply {
        Reply { content_type: "application/json", ..Reply::bytes(status, Bytes::new()) }
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Reply {
        self.headers.push((name, value.into()));
        self
    }
}

/// `%41` → `A`; `+` stays. What is not valid UTF-8 afterwards is replaced.
pub use danki_gateway::decoded as percent_decode;

/// The pairs of a query string or a form.
pub fn pairs(text: &str) -> Vec<(String, String)> {
    danki_gateway::pairs(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_are_undone_and_bad_ones_pass() {
        for (text, expect) in [("a%3Ab", "a:b"), ("%", "%"), ("%zz", "%zz"), ("%4", "%4"), ("a+b", "a+b")] {
            assert_eq!(percent_decode(text), expect);
        }
        assert_eq!(
            pairs("a=1&b&c=x+y%26"),
            [("a", "1"), ("b", ""), ("c", "x y&")].map(|(a, b)| (a.into(), b.into()))
        );
    }

    #[test]
    fn pages_end() {
        let page = |marker: &str, size| Page { marker: marker.to_owned(), size };
        assert_eq!(page("", 2).of(vec![1, 2, 3]), (vec![1, 2], Some("2".to_owned())));
        assert_eq!(page("2", 2).of(vec![1, 2, 3]), (vec![3], None));
        assert_eq!(page("99", 2).of(vec![1, 2, 3]), (vec![], None));
    }

    proptest! {
        #[test]
        fn anything_decodes(text in "\\PC{0,60}") {
            percent_decode(&text);
            pairs(&text);
        }
    }
}
