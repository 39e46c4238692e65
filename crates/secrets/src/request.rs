//! The head of an HTTP/1.1 request, read from bytes that anybody may have sent. Nothing is copied; a body is never wanted.

/// A head may be this long: a session token (2 KB), a name (2 KB, encoded) and what proxies and tracers add, several times over.
pub const MAX_HEAD: usize = 32 * 1024;
/// Header fields that are looked at; more are refused.
const MAX_FIELDS: usize = 64;

/// What matters of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// Whether the method is GET.
    pub get: bool,
    /// Path and query.
    pub target: &'a str,
    /// `X-Aws-Parameters-Secrets-Token`, or the agent's other name for it.
    pub token: Option<&'a [u8]>,
    /// Whether a proxy passed it on: then it did not come from this machine's function.
    pub forwarded: bool,
    /// Whether the connection ends with the answer.
    pub close: bool,
    /// Whether something follows the head.
    pub has_body: bool,
    /// Its length in bytes.
    pub length: usize,
}

/// What was sent is not HTTP, or has too many fields.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads a head; none if its end has not come yet.
pub fn head(bytes: &[u8]) -> Result<Option<Head<'_>>, Malformed> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Malformed),
    };
    let mut head = Head {
        get: request.method == Some("GET"),
        target: request.path.unwrap_or_default(),
        token: None,
        forwarded: false,
        close: request.version != Some(1),
        has_body: false,
        length,
    };
    for field in request.headers.iter() {
        note(&mut head, field.name, field.value);
    }
    Ok(Some(head))
}

fn note<'a>(head: &mut Head<'a>, name: &str, value: &'a [u8]) {
    // Told apart by length first: most fields are none of these.
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    match name.len() {
        30 if is("X-Aws-Parameters-Secrets-Token") => head.token = Some(value),
        13 if is("X-Vault-Token") => head.token = head.token.or(Some(value)),
        15 if is("X-Forwarded-For") => head.forwarded = true,
        10 if is("Connection") => head.close |= value.eq_ignore_ascii_case(b"close"),
        14 if is("Content-Length") => head.has_body |= value != b"0",
        17 if is("Transfer-Encoding") => head.has_body = true,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_matters_is_read() {
        let bytes = b"GET /a?b HTTP/1.1\r\nHost: x\r\nx-aws-parameters-SECRETS-token: t\r\nContent-Length: 0\r\n\r\nrest";
        let read = head(bytes).expect("HTTP").expect("whole");
        let expect = Head {
            get: true,
            target: "/a?b",
            token: Some(b"t"),
            forwarded: false,
            close: false,
            has_body: false,
            length: bytes.len() - 4,
        };
        assert_eq!(read, expect);
    }

    #[test]
    fn signs_of_trouble_are_seen() {
        let read = |text: &'static str| head(text.as_bytes()).expect("HTTP").expect("whole");
        assert!(read("GET / HTTP/1.1\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n").forwarded);
        assert!(read("GET / HTTP/1.0\r\n\r\n").close);
        assert!(read("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").close);
        assert!(read("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").has_body);
        assert!(read("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n").has_body);
        assert!(!read("POST / HTTP/1.1\r\n\r\n").get);
        assert_eq!(read("GET / HTTP/1.1\r\nX-Vault-Token: v\r\n\r\n").token, Some(b"v".as_slice()));
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert_eq!(head(b"\x16\x03\x01\x02\x00"), Err(Malformed));
        assert_eq!(head(b"GET / HTTP/1.1\r\nno colon\r\n\r\n"), Err(Malformed));
        assert_eq!(
            head(("GET / HTTP/1.1\r\n".to_owned() + &"a: b\r\n".repeat(65) + "\r\n").as_bytes()),
            Err(Malformed)
        );
        assert_eq!(head(b"GET / HTTP/1.1\r\nHost: x\r\n"), Ok(None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Some(head)) = head(&bytes) {
                prop_assert!(head.length <= bytes.len());
            }
        }
    }
}
