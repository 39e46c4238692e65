//! An HTTP answer as the bytes that go out. A value's answer is made once and kept so; a hit is then one `write`. The bytes are
//! overwritten when the last user lets go.

use std::rc::Rc;
use zeroize::Zeroizing;

/// A whole answer.
#[derive(Debug)]
pub struct Page {
    bytes: Zeroizing<Vec<u8>>,
    body_at: usize,
}

impl Page {
    /// An answer with a body of JSON.
    pub fn json(status: u16, body: &[u8]) -> Rc<Page> {
        Page::new(status, "application/json", body)
    }

    /// An answer in words. Go's `http.Error` puts a line end behind the text; whether AWS's extension uses it is not known, and a
    /// client that compares the text is served better without.
    pub fn text(status: u16, body: &str) -> Rc<Page> {
        Page::new(status, "text/plain; charset=utf-8", body.as_bytes())
    }

    fn new(status: u16, content_type: &str, body: &[u8]) -> Rc<Page> {
        let reason = reason(status);
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        // Exactly as large as needed: a vector that grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(head.len() + body.len()));
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(body);
        Rc::new(Page { body_at: head.len(), bytes })
    }

    /// What goes out.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The part behind the head.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body_at..]
    }

    /// What goes out if it is the connection's last answer.
    pub fn last(&self) -> Zeroizing<Vec<u8>> {
        let (fields, end) = self.bytes.split_at(self.body_at - "\r\n".len());
        let close = b"Connection: close\r\n";
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.bytes.len() + close.len()));
        bytes.extend_from_slice(fields);
        bytes.extend_from_slice(close);
        bytes.extend_from_slice(end);
        bytes
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_http() {
        let page = Page::json(200, b"{}");
        let expect = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(page.bytes(), expect.as_bytes());
        assert_eq!(page.body(), b"{}");
        let last = expect.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        assert_eq!(page.last().as_slice(), last.as_bytes());
    }
}
