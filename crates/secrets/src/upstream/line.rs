//! One thread's connection to one service. It is kept between requests, but not for long, and if it turns out to be dead the request
//! goes over a new one: services end idle connections, and so does a freeze.

use super::Upstream;
use super::answer::{self, Answer};
use super::failure::Failure;
use super::stream::{Deadline, Plain};
use crate::clock::{Now, now};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::time::Duration;

/// Where a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Whether TLS is spoken; without it only to this machine itself.
    pub tls: bool,
}

impl Endpoint {
    /// Reads `https://host[:port]`, or `http://` for a loopback address.
    pub fn parse(url: &str) -> Option<Endpoint> {
        let (tls, rest) = match url.split_once("://")? {
            ("https", rest) => (true, rest),
            ("http", rest) => (false, rest),
            _ => return None,
        };
        let authority = rest.trim_end_matches('/');
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, if tls { 443 } else { 80 }),
        };
        let is_name = !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte));
        let endpoint = Endpoint { host: host.to_owned(), port, tls };
        (is_name && (tls || endpoint.is_loopback())).then_some(endpoint)
    }

    fn is_loopback(&self) -> bool {
        let address = self.host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The value of `Host`.
    pub fn authority(&self) -> String {
        let standard = if self.tls { 443 } else { 80 };
        if self.port == standard { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }
}

/// Services end idle connections after about a minute; nothing is gained by being later than they.
const IDLE: Duration = Duration::from_secs(50);

/// A connection, if there is one.
pub struct Line {
    endpoint: Endpoint,
    open: Option<(Stream, Now)>,
}

enum Stream {
    Plain(Plain),
    Tls(Box<StreamOwned<ClientConnection, Plain>>),
}

impl Line {
    /// Not connected yet.
    pub fn new(endpoint: Endpoint) -> Line {
        Line { endpoint, open: None }
    }

    /// Where it leads.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request and reads its answer.
    pub fn exchange(
        &mut self,
        upstream: &Upstream,
        request: &[u8],
        deadline: Deadline,
    ) -> Result<Answer, Failure> {
        if let Some((mut stream, used)) = self.open.take()
            && now().since(used) < IDLE
        {
            stream.plain().deadline = deadline;
            match speak(&mut stream, request) {
                Ok(answer) => return Ok(self.keep(stream, answer)),
                // It may have died since it was last used: then nothing was answered, and nothing is lost by asking again.
                Err(error) => {
                    if let timeout @ Failure::Timeout(_) = deadline.failure(&error) {
                        return Err(timeout);
                    }
                }
            }
        }
        let mut stream = self.connect(upstream, deadline)?;
        match speak(&mut stream, request) {
            Ok(answer) => Ok(self.keep(stream, answer)),
            Err(error) => Err(deadline.failure(&error)),
        }
    }

    fn keep(&mut self, stream: Stream, answer: Answer) -> Answer {
        self.open = answer.keep.then(|| (stream, now()));
        answer
    }

    fn connect(&self, upstream: &Upstream, deadline: Deadline) -> Result<Stream, Failure> {
        if !self.endpoint.tls {
            return Ok(Stream::Plain(self.connect_tcp(deadline)?));
        }
        match self.connect_tls(upstream, deadline) {
            Err(Failure::Tls(what)) if what.contains("UnknownIssuer") && upstream.trust.widen() => {
                self.connect_tls(upstream, deadline)
            }
            connected => connected,
        }
    }

    fn connect_tcp(&self, deadline: Deadline) -> Result<Plain, Failure> {
        Plain::connect(&format!("{}:{}", self.endpoint.host, self.endpoint.port), deadline)
    }

    fn connect_tls(&self, upstream: &Upstream, deadline: Deadline) -> Result<Stream, Failure> {
        let name = ServerName::try_from(self.endpoint.host.clone())
            .map_err(|_| Failure::Tls(format!("{:?} is no host name", self.endpoint.host)))?;
        let tls = ClientConnection::new(upstream.trust.config()?, name)
            .map_err(|error| Failure::Tls(error.to_string()))?;
        let mut stream = StreamOwned::new(tls, self.connect_tcp(deadline)?);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|error| match deadline.failure(&error) {
                Failure::Broken(what) => Failure::Tls(what),
                other => other,
            })?;
        }
        Ok(Stream::Tls(Box::new(stream)))
    }
}

impl Stream {
    fn plain(&mut self) -> &mut Plain {
        match self {
            Stream::Plain(plain) => plain,
            Stream::Tls(tls) => &mut tls.sock,
        }
    }
}

fn speak(stream: &mut Stream, request: &[u8]) -> io::Result<Answer> {
    match stream {
        Stream::Plain(plain) => converse(plain, request),
        Stream::Tls(tls) => converse(tls.as_mut(), request),
    }
}

fn converse(stream: &mut (impl Read + Write), request: &[u8]) -> io::Result<Answer> {
    stream.write_all(request)?;
    stream.flush()?;
    answer::read(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        let check = |url: &str, expect: Option<(&str, u16, bool, &str)>| {
            let endpoint = Endpoint::parse(url);
            let read =
                endpoint.as_ref().map(|endpoint| (endpoint.host.as_str(), endpoint.port, endpoint.tls));
            assert_eq!(read, expect.map(|(host, port, tls, _)| (host, port, tls)), "{url}");
            assert_eq!(
                endpoint.map(|endpoint| endpoint.authority()),
                expect.map(|expect| expect.3.to_owned()),
                "{url}"
            );
        };
        check("https://a.example", Some(("a.example", 443, true, "a.example")));
        check("https://a.example:8443/", Some(("a.example", 8443, true, "a.example:8443")));
        check("http://127.0.0.1:5000", Some(("127.0.0.1", 5000, false, "127.0.0.1:5000")));
        check("http://localhost", Some(("localhost", 80, false, "localhost")));
        check("http://[::1]:5000", Some(("[::1]", 5000, false, "[::1]:5000")));
        for refused in [
            "http://a.example",
            "http://10.0.0.1",
            "ftp://localhost",
            "https://",
            "https://a b",
            "https://a:x",
            "https://a/b",
            "",
        ] {
            check(refused, None);
        }
    }
}
