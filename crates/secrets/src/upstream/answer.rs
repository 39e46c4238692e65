//! An HTTP/1.1 answer from upstream. Everything about it has a bound, and what breaks off is an error, never a shorter value.

use std::io::{self, ErrorKind, Read};
use zeroize::Zeroizing;

/// The head of an answer.
const MAX_HEAD: usize = 64 * 1024;
const MAX_FIELDS: usize = 100;
/// A secret is at most 64 KiB, a batch has twenty of them, JSON may lengthen each.
const MAX_BODY: usize = 8 * 1024 * 1024;
/// Read at once.
const STEP: usize = 8 * 1024;

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Whether the connection can carry another request.
    pub keep: bool,
    /// `Date`, seconds since the epoch.
    pub date: Option<u64>,
    /// `x-amzn-RequestId`.
    pub request_id: String,
    /// `x-amzn-ErrorType`.
    pub error_type: String,
    /// `Lambda-Extension-Identifier`, of the Extensions API.
    pub identifier: String,
    /// The body; overwritten when dropped.
    pub body: Zeroizing<Vec<u8>>,
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes.
    Length(usize),
    /// In chunks.
    Chunked,
    /// Until the connection ends.
    ToEnd,
}

/// Reads one answer.
pub fn read(stream: &mut impl Read) -> io::Result<Answer> {
    let mut source = Source { stream, buffer: Zeroizing::new(vec![0; STEP]), from: 0, to: 0 };
    let (mut answer, framing) = source.head()?;
    match framing {
        Framing::Length(length) => {
            answer.body = Zeroizing::new(Vec::with_capacity(length));
            source.take(length, &mut answer.body)?;
        }
        Framing::Chunked => source.chunks(&mut answer.body)?,
        Framing::ToEnd => {
            answer.keep = false;
            while source.fill()? > 0 {
                bounded(&answer.body, source.to - source.from)?;
                answer.body.extend_from_slice(&source.buffer[source.from..source.to]);
                source.from = source.to;
            }
        }
    }
    Ok(answer)
}

struct Source<'a, R> {
    stream: &'a mut R,
    buffer: Zeroizing<Vec<u8>>,
    from: usize,
    to: usize,
}

impl<R: Read> Source<'_, R> {
    fn head(&mut self) -> io::Result<(Answer, Framing)> {
        let mut head = Vec::new();
        loop {
            if self.fill()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let known = head.len();
            head.extend_from_slice(&self.buffer[self.from..self.to]);
            if let Some((answer, framing, length)) = parse(&head)? {
                // An interim answer announces another.
                if answer.status < 200 {
                    self.from += length - known;
                    head.clear();
                    if self.from < self.to {
                        continue;
                    }
                } else {
                    self.from += length - known;
                    return Ok((answer, framing));
                }
            } else {
                self.from = self.to;
            }
            if head.len() > MAX_HEAD {
                return Err(invalid("the head is too long"));
            }
        }
    }

    /// Makes sure that there is something in the buffer; 0 at the end.
    fn fill(&mut self) -> io::Result<usize> {
        if self.from == self.to {
            self.from = 0;
            self.to = loop {
                match self.stream.read(&mut self.buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    done => break done?,
                }
            };
        }
        Ok(self.to - self.from)
    }

    fn take(&mut self, mut length: usize, out: &mut Vec<u8>) -> io::Result<()> {
        while length > 0 {
            let ready = self.fill()?.min(length);
            if ready == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            out.extend_from_slice(&self.buffer[self.from..self.from + ready]);
            self.from += ready;
            length -= ready;
        }
        Ok(())
    }

    fn chunks(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let line = self.line()?;
            let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let size = std::str::from_utf8(size).ok().map(str::trim).filter(|size| !size.starts_with('+'));
            let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
            let size = size.ok_or_else(|| invalid("a chunk without a size"))?;
            if size == 0 {
                while !self.line()?.is_empty() {} // trailers; each line is bounded, their number by the deadline
                return Ok(());
            }
            bounded(out, size)?;
            self.take(size, out)?;
            if !self.line()?.is_empty() {
                return Err(invalid("a chunk longer than its size"));
            }
        }
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            let mut byte = Vec::with_capacity(1);
            self.take(1, &mut byte)?;
            match byte[..] {
                [b'\n'] => return Ok(line),
                [b'\r'] => {}
                _ => line.extend(byte),
            }
            if line.len() > MAX_HEAD {
                return Err(invalid("a line is too long"));
            }
        }
    }
}

/// Reads a head; with its length.
fn parse(bytes: &[u8]) -> io::Result<Option<(Answer, Framing, usize)>> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, error.to_string())),
    };
    let status = response.code.unwrap_or_default();
    let mut answer = Answer {
        status,
        keep: response.version == Some(1),
        date: None,
        request_id: String::new(),
        error_type: String::new(),
        identifier: String::new(),
        body: Zeroizing::default(),
    };
    let mut framing = if matches!(status, 204 | 304) { Framing::Length(0) } else { Framing::ToEnd };
    for field in response.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        let text = std::str::from_utf8(field.value).unwrap_or_default();
        if is("transfer-encoding") {
            if !text.eq_ignore_ascii_case("chunked") {
                return Err(invalid("an unknown transfer coding"));
            }
            framing = Framing::Chunked;
        } else if is("content-length") && framing != Framing::Chunked {
            framing = Framing::Length(content_length(text, framing)?);
        } else if is("connection") {
            answer.keep &= !text.eq_ignore_ascii_case("close");
        } else if is("date") {
            answer.date = crate::date::parse_http(text);
        } else if is("x-amzn-requestid") {
            text.clone_into(&mut answer.request_id);
        } else if is("lambda-extension-identifier") {
            text.clone_into(&mut answer.identifier);
        } else if is("x-amzn-errortype") {
            text.clone_into(&mut answer.error_type);
        }
    }
    Ok(Some((answer, framing, length)))
}

fn content_length(text: &str, before: Framing) -> io::Result<usize> {
    let length = text.parse().ok().filter(|length| *length <= MAX_BODY);
    let length = length.ok_or_else(|| invalid("a length that is none, or too long"))?;
    match before {
        Framing::Length(other) if other != length => Err(invalid("two lengths")),
        _ => Ok(length),
    }
}

fn bounded(body: &[u8], more: usize) -> io::Result<()> {
    if body.len().saturating_add(more) > MAX_BODY { Err(invalid("the body is too long")) } else { Ok(()) }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives at most `step` bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len());
            (&mut self.0).take(u64::try_from(length).expect("small")).read(buffer)
        }
    }

    fn body_of(text: &str) -> Result<String, ErrorKind> {
        let read = |step| read(&mut Slowly(text.as_bytes(), step)).map(|answer| answer.body.to_vec());
        let (fast, slow) = (read(usize::MAX), read(1));
        assert_eq!(fast.as_ref().ok(), slow.as_ref().ok(), "{text:?}");
        fast.map(|body| String::from_utf8(body).expect("UTF-8")).map_err(|error| error.kind())
    }

    #[test]
    fn every_framing_is_read() {
        let check = |text: &str, body: &str| assert_eq!(body_of(text).as_deref(), Ok(body), "{text:?}");
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "{}");
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}next", "{}");
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n1;x=y\r\n!\r\n0\r\nA: b\r\n\r\n",
            "{}!",
        );
        check("HTTP/1.1 200 OK\r\n\r\nall of it", "all of it");
        check("HTTP/1.1 204 No\r\n\r\n", "");
        check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x");
    }

    #[test]
    fn what_breaks_off_is_an_error() {
        let check = |text: &str, kind: ErrorKind| assert_eq!(body_of(text), Err(kind), "{text:?}");
        check("", ErrorKind::UnexpectedEof);
        check("HTTP/1.1 200 OK\r\nContent-Le", ErrorKind::UnexpectedEof);
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", ErrorKind::UnexpectedEof);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}", ErrorKind::UnexpectedEof);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", ErrorKind::UnexpectedEof);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", ErrorKind::InvalidData);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", ErrorKind::InvalidData);
        check("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", ErrorKind::InvalidData);
        check("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", ErrorKind::InvalidData);
        check("SSH-2.0-OpenSSH\r\n", ErrorKind::InvalidData);
    }

    #[test]
    fn fields_are_read() {
        let text = "HTTP/1.1 400 Bad\r\nDate: Wed, 16 Nov 2022 08:22:40 GMT\r\nx-amzn-RequestId: r\r\n\
            X-Amzn-ErrorType: T\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let answer = read(&mut text.as_bytes()).expect("an answer");
        assert_eq!((answer.status, answer.keep, answer.date), (400, false, Some(1_668_586_960)));
        assert_eq!((answer.request_id.as_str(), answer.error_type.as_str()), ("r", "T"));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&mut bytes.as_slice());
            let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            chunked.extend(bytes);
            let _ = read(&mut chunked.as_slice());
        }
    }
}
