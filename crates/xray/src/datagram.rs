//! One datagram of the daemon's protocol: a header line, a newline, one JSON object.
//!
//! The header is JSON too and is read as such: Python's SDK writes it without spaces, Node's with. Nothing is acknowledged, so a bad
//! datagram is dropped; the reason is for whoever looks for the missing segment.

use serde::Deserialize;
use serde_json::Value;

/// The longest document (X-Ray's limit: 64 kB).
pub const MAX_DOCUMENT_BYTES: usize = 64 * 1024;

/// The longest header worth reading.
const MAX_HEADER_BYTES: usize = 256;

/// Why a datagram is dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDatagram {
    /// No newline, or something else before it.
    #[error("it does not begin with a header line such as {{\"format\":\"json\",\"version\":1}}")]
    NoHeader,
    /// Another format or version.
    #[error("its header asks for format {format:?}, version {version}; known: json, 1")]
    UnknownFormat {
        /// What it says.
        format: String,
        /// What it says.
        version: i64,
    },
    /// The document is too long.
    #[error("its document has {bytes} bytes; at most {MAX_DOCUMENT_BYTES} are taken")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The document is not one JSON object.
    #[error("its document is not a JSON object: {reason}")]
    NoObject {
        /// What the parser says.
        reason: String,
    },
    /// The document lacks something, or has it wrong.
    #[error("its document has no valid {member}")]
    Member {
        /// Which member.
        member: &'static str,
    },
}

#[derive(Deserialize)]
struct Header {
    format: String,
    version: i64,
}

/// The segment document of a datagram, checked for what every document must have.
pub fn parse_datagram(datagram: &[u8]) -> Result<Value, BadDatagram> {
    let head = &datagram[..datagram.len().min(MAX_HEADER_BYTES)];
    let newline = head.iter().position(|byte| *byte == b'\n').ok_or(BadDatagram::NoHeader)?;
    let header: Header = serde_json::from_slice(&datagram[..newline]).map_err(|_| BadDatagram::NoHeader)?;
    if (header.format.as_str(), header.version) != ("json", 1) {
        return Err(BadDatagram::UnknownFormat { format: header.format, version: header.version });
    }
    let body = &datagram[newline + 1..];
    if body.len() > MAX_DOCUMENT_BYTES {
        return Err(BadDatagram::TooLong { bytes: body.len() });
    }
    let document: Value =
        serde_json::from_slice(body).map_err(|e| BadDatagram::NoObject { reason: e.to_string() })?;
    if !document.is_object() {
        return Err(BadDatagram::NoObject { reason: "it is another kind of value".to_owned() });
    }
    check(&document)?;
    Ok(document)
}

/// What the segment documents page requires.
fn check(document: &Value) -> Result<(), BadDatagram> {
    let wrong = |member| Err(BadDatagram::Member { member });
    let text = |key: &str| document[key].as_str().unwrap_or_default();
    let number = |key: &str| document[key].as_f64().is_some_and(|seconds| (0.0..1e11).contains(&seconds));
    if text("name").is_empty() {
        return wrong("name");
    }
    if !is_hex(text("id"), 16) {
        return wrong("id");
    }
    if !is_trace_id(text("trace_id")) {
        return wrong("trace_id");
    }
    if !number("start_time") {
        return wrong("start_time");
    }
    if document["in_progress"] != true && !number("end_time") {
        return wrong("end_time");
    }
    if document["type"] == "subsegment" && !is_hex(text("parent_id"), 16) {
        return wrong("parent_id");
    }
    Ok(())
}

pub(crate) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `1-`, eight hex digits of epoch seconds, `-`, 24 hex digits.
pub(crate) fn is_trace_id(text: &str) -> bool {
    let mut parts = text.split('-');
    let (version, time, unique) = (parts.next(), parts.next(), parts.next());
    version == Some("1")
        && time.is_some_and(|time| is_hex(time, 8))
        && unique.is_some_and(|unique| is_hex(unique, 24))
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DOCUMENT: &str = r#"{"id":"53995c3f42cd8ad8","name":"api.example.com","trace_id":"1-581cf771-a006649127e371903a2de979","start_time":1.478293361271E9,"end_time":1.478293361449E9,"type":"subsegment","parent_id":"6b55dcc497934f1a"}"#;

    #[test]
    fn both_sdks_headers_are_read() {
        for header in [
            r#"{"format":"json","version":1}"#,
            r#"{"format": "json", "version": 1}"#,
            r#"{"version":1,"format":"json"}"#,
        ] {
            let document = parse_datagram(format!("{header}\n{DOCUMENT}").as_bytes()).expect("read");
            assert_eq!(document["name"], "api.example.com");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let check = |datagram: &str, expect: &str| {
            let said = parse_datagram(datagram.as_bytes()).expect_err("refused").to_string();
            assert!(said.contains(expect), "{datagram}: {said}");
        };
        let with = |body: &str| format!("{{\"format\":\"json\",\"version\":1}}\n{body}");
        check("", "header line");
        check(DOCUMENT, "header line");
        check("{\"format\":\"json\"}\n{}", "header line");
        check(&format!("{{\"format\":\"cbor\",\"version\":1}}\n{DOCUMENT}"), "\"cbor\"");
        check(&with("[]"), "not a JSON object");
        check(&with("{"), "not a JSON object");
        check(&with("{}"), "no valid name");
        check(&with(&DOCUMENT.replace("53995c", "5399")), "no valid id");
        check(&with(&DOCUMENT.replace("1-581c", "2-581c")), "no valid trace_id");
        check(&with(&DOCUMENT.replace("\"end_time\":1.478293361449E9,", "")), "no valid end_time");
        check(&with(&DOCUMENT.replace("6b55dcc497934f1a", "")), "no valid parent_id");
        let long = DOCUMENT.replace("api.example.com", &"x".repeat(MAX_DOCUMENT_BYTES));
        check(&with(&long), "at most 65536");
        let under_way = DOCUMENT.replace("\"end_time\":1.478293361449E9", "\"in_progress\":true");
        assert!(parse_datagram(with(&under_way).as_bytes()).is_ok());
    }

    proptest! {
        #[test]
        fn any_datagram_is_read_or_refused(datagram in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _either = parse_datagram(&datagram);
        }

        #[test]
        fn a_damaged_datagram_is_read_or_refused(at in 0usize..220, to in any::<u8>()) {
            let mut datagram = format!("{{\"format\":\"json\",\"version\":1}}\n{DOCUMENT}").into_bytes();
            let at = at % datagram.len();
            datagram[at] = to;
            if let Ok(document) = parse_datagram(&datagram) {
                prop_assert!(document["id"].is_string() && document["start_time"].is_number());
            }
        }
    }
}
