//! One request to a running `danki up`, on a connection of its own: HTTP that a dozen lines can speak.

use crate::exit::Failure;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// What it answered with success.
pub struct Answer {
    head: String,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A function's name, or why it is none: it becomes part of a path.
pub fn checked_name(name: &str) -> Result<&str, Failure> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_:$".contains(c);
    if name.is_empty() || !name.chars().all(legal) {
        return Err(Failure::usage(format!("{name:?} is not a function's name")));
    }
    Ok(name)
}

/// Asks; a refusal is a failure in the endpoint's words. `headers` are lines, each with its end.
pub fn ask(
    port: u16,
    request: &str,
    headers: &str,
    body: &[u8],
    patience: Duration,
) -> Result<Answer, Failure> {
    let gone = |e: std::io::Error| {
        Failure::machine(format!("no danki at 127.0.0.1:{port}: {e}"))
            .hint("start `danki up`, or name its --port")
    };
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(gone)?;
    stream.set_read_timeout(Some(patience)).map_err(gone)?;
    let length = body.len();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).map_err(gone)?;
    stream.write_all(body).map_err(gone)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(gone)?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(answer.len());
    let body = answer.get(end + 4..).unwrap_or_default().to_vec();
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    if head.starts_with("HTTP/1.1 2") {
        return Ok(Answer { head, body });
    }
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = said["Message"].as_str().or(said["message"].as_str());
    let answer = Answer { head, body };
    let error = answer.header("x-amzn-errortype").map(|name| format!("{name}: ")).unwrap_or_default();
    Err(Failure::usage(format!("{error}{}", message.unwrap_or("danki up did not answer"))))
}
