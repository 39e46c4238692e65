//! What is inside the bodies that a runtime posts.

use crate::words::{ERROR_WITH_CAUSE, HTTP_INTEGRATION};
use bytes::Bytes;
use hyper::header::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Between prelude and payload of a streaming HTTP response (`lambda-platform.md` §1.9).
const SEPARATOR: [u8; 8] = [0; 8];

/// The JSON before the separator, where the content type announces one.
pub fn prelude(content_type: &str, body: &Bytes) -> Option<Bytes> {
    let at = body.windows(SEPARATOR.len()).position(|w| w == SEPARATOR);
    at.filter(|_| content_type == HTTP_INTEGRATION).map(|at| body.slice(..at))
}

/// The error of a streaming response: base64 of JSON. What is not base64 is passed on as it is.
pub fn trailer(value: Option<&HeaderValue>) -> Bytes {
    let raw = value.map_or(&b""[..], |v| v.as_bytes());
    base64(raw).map_or_else(|| Bytes::copy_from_slice(raw), Bytes::from)
}

/// The error without its X-Ray cause, where the content type says that there may be one.
pub fn without_cause(content_type: Option<&HeaderValue>, body: Bytes) -> Bytes {
    #[derive(Deserialize, Serialize)]
    struct Error<'a> {
        #[serde(rename = "errorMessage", borrow, default, skip_serializing_if = "Option::is_none")]
        message: Option<&'a RawValue>,
        #[serde(rename = "errorType", borrow, default, skip_serializing_if = "Option::is_none")]
        kind: Option<&'a RawValue>,
        #[serde(rename = "stackTrace", borrow, default, skip_serializing_if = "Option::is_none")]
        trace: Option<&'a RawValue>,
    }
    if content_type.is_none_or(|t| t != ERROR_WITH_CAUSE) {
        return body;
    }
    let stripped = serde_json::from_slice::<Error>(&body).and_then(|e| serde_json::to_vec(&e));
    stripped.map_or(body, Bytes::from)
}

/// Standard alphabet; padding is optional.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut count) = (0u32, 0);
    let end = text.iter().rposition(|b| *b != b'=').map_or(0, |at| at + 1);
    for byte in &text[..end] {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prelude_ends_at_eight_nuls() {
        let body = Bytes::from_static(b"{\"statusCode\":200}\0\0\0\0\0\0\0\0hello");
        assert_eq!(prelude(HTTP_INTEGRATION, &body), Some(Bytes::from_static(b"{\"statusCode\":200}")));
        assert_eq!(prelude("text/plain", &body), None);
        assert_eq!(prelude(HTTP_INTEGRATION, &Bytes::from_static(b"{}\0\0\0\0\0\0\0")), None);
    }

    #[test]
    fn trailers_are_decoded() {
        let check = |text: &'static str, expect: &[u8]| {
            assert_eq!(&trailer(Some(&HeaderValue::from_static(text)))[..], expect, "{text}")
        };
        check("eyJhIjoxfQ==", b"{\"a\":1}");
        check("eyJhIjoxfQ", b"{\"a\":1}");
        check("/+8=", b"\xff\xef");
        check("not base64!", b"not base64!");
        assert!(trailer(None).is_empty());
    }

    #[test]
    fn the_cause_is_not_for_the_caller() {
        let with =
            Bytes::from_static(b"{\"errorType\":\"E\",\"errorMessage\":\"m\",\"errorCause\":{\"x\":1}}");
        let cause = HeaderValue::from_static(ERROR_WITH_CAUSE);
        assert_eq!(
            &without_cause(Some(&cause), with.clone())[..],
            b"{\"errorMessage\":\"m\",\"errorType\":\"E\"}"
        );
        assert_eq!(without_cause(None, with.clone()), with);
        let broken = Bytes::from_static(b"{");
        assert_eq!(without_cause(Some(&cause), broken.clone()), broken);
    }
}
