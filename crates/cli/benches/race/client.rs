//! An HTTP client of one kept connection, with nothing in it that would take part in the race.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

const EVENT: &str = r#"{"hello":"world"}"#;

pub struct Client {
    stream: BufReader<TcpStream>,
    /// The echo's request, ready to send.
    request: Vec<u8>,
}

impl Client {
    /// Connects; `path` is where echoes go.
    pub fn new(address: SocketAddr, path: &str) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let request = request("POST", path, EVENT);
        Client { stream: BufReader::new(stream), request }
    }

    /// Sends the event and reads it back.
    pub fn echo(&mut self) {
        let request = std::mem::take(&mut self.request);
        let (status, body) = self.exchange(&request);
        self.request = request;
        assert_eq!((status, body.as_str()), (200, EVENT));
    }

    /// Any other request on the same connection: status and body.
    pub fn call(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.exchange(&request(method, path, body))
    }

    fn exchange(&mut self, request: &[u8]) -> (u16, String) {
        self.stream.get_mut().write_all(request).unwrap();
        let mut line = String::new();
        let mut status = 0;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let head = line.trim_end().to_ascii_lowercase();
            if head.is_empty() {
                break;
            }
            if let Some(rest) = head.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            }
            if let Some(rest) = head.strip_prefix("content-length: ") {
                length = rest.parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }
}

fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}
