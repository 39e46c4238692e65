//! A client of the extension, as plain as can be.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub struct Client {
    pub stream: BufReader<TcpStream>,
    token: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Status and body.
    pub fn is(&self, status: u16, body: &str) -> bool {
        self.status == status && self.body == body
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

impl Client {
    pub fn connect(port: u16, token: Option<&str>) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        Client { stream: BufReader::new(stream), token: token.map(str::to_owned) }
    }

    pub fn get(&mut self, target: &str) -> Answer {
        self.ask(target);
        self.answer().expect("an answer")
    }

    pub fn ask(&mut self, target: &str) {
        let token = self.token.as_ref().map(|token| format!("X-Aws-Parameters-Secrets-Token: {token}\r\n"));
        let token = token.unwrap_or_default();
        self.send(
            format!("GET {target} HTTP/1.1\r\nHost: localhost:2773\r\n{token}Accept: */*\r\n\r\n").as_bytes(),
        );
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("the connection is open");
    }

    /// None if the connection ends before an answer is whole.
    pub fn answer(&mut self) -> Option<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let fields = head.to_ascii_lowercase();
        let field = |name: &str| fields.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let length = field("content-length:").expect("a length").parse().expect("a number");
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
        Some(Answer { status, head, body: String::from_utf8(body).expect("UTF-8") })
    }

    /// Whether the other side has ended the connection.
    pub fn is_over(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0) | Err(_))
    }
}
