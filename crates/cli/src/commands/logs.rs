//! `danki logs`: what a function of a running `danki up` wrote.

use crate::args::Logs;
use crate::exit::{Exit, Failure};
use crate::terminal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// `danki up` answers a waiting request after 20 s at the latest.
const PATIENCE: Duration = Duration::from_secs(40);

/// Prints the lines there are; with `--follow`, those to come too.
pub fn logs(args: &Logs) -> Result<Exit, Failure> {
    let mut after = 0;
    loop {
        let body = ask(args, after)?;
        let lines: Vec<Value> = body.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        for line in &lines {
            after = line["id"].as_u64().unwrap_or(after);
            let time = danki_model::time::iso(line["at_ms"].as_u64().unwrap_or(0));
            terminal::print(&format!("{time} {}\n", line["text"].as_str().unwrap_or_default()));
        }
        if lines.is_empty() && !args.follow {
            return Ok(Exit::Fine);
        }
    }
}

/// One request, one connection: HTTP that a dozen lines can speak.
fn ask(args: &Logs, after: u64) -> Result<String, Failure> {
    let address = (Ipv4Addr::LOCALHOST, args.port);
    let gone = |e: std::io::Error| {
        Failure::machine(format!("no danki at 127.0.0.1:{}: {e}", args.port))
            .hint("start `danki up`, or name its --port")
    };
    let mut stream = TcpStream::connect(address).map_err(gone)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(gone)?;
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_:$".contains(c);
    if args.function.is_empty() || !args.function.chars().all(legal) {
        return Err(Failure::usage(format!("{:?} is not a function's name", args.function)));
    }
    let wait = if args.follow { "&wait=1" } else { "" };
    let head = format!(
        "GET /_danki/logs/{}?after={after}{wait} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        args.function
    );
    stream.write_all(head.as_bytes()).map_err(gone)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(gone)?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    if head.starts_with("HTTP/1.1 200") {
        return Ok(body.to_owned());
    }
    let said: Value = serde_json::from_str(body).unwrap_or_default();
    let message = said["Message"].as_str().or(said["message"].as_str());
    Err(Failure::usage(message.unwrap_or("danki up did not answer").to_owned()))
}
