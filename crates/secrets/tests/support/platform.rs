//! Lambda's Extensions API, scripted: it registers one extension and hands out turns as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

pub struct Platform {
    pub address: String,
    turns: Sender<Option<&'static str>>,
    nexts: Receiver<()>,
    /// Every request, head and body.
    pub seen: Arc<Mutex<Vec<String>>>,
}

impl Platform {
    pub fn start() -> Platform {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let (turns, to_give) = channel();
        let (arrived, nexts) = channel();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("the extension connects");
            serve(stream, &to_give, &arrived, &log);
        });
        Platform { address, turns, nexts, seen }
    }

    /// Waits until the extension has asked for its next turn.
    pub fn wait_for_next(&self) {
        self.nexts.recv().expect("the extension asks for its next turn");
    }

    pub fn invoke(&self) {
        let _ = self.turns.send(Some(
            r#"{"eventType":"INVOKE","deadlineMs":1700000000000,"requestId":"1","invokedFunctionArn":"arn","tracing":{"type":"X-Amzn-Trace-Id","value":"Root=1"}}"#,
        ));
    }

    pub fn shutdown(&self) {
        let _ = self
            .turns
            .send(Some(r#"{"eventType":"SHUTDOWN","shutdownReason":"spindown","deadlineMs":1700000000000}"#));
    }

    /// Answers nothing any more.
    pub fn vanish(&self) {
        let _ = self.turns.send(None);
    }
}

fn serve(
    stream: TcpStream,
    turns: &Receiver<Option<&'static str>>,
    arrived: &Sender<()>,
    seen: &Mutex<Vec<String>>,
) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
        reader.read_exact(&mut body).expect("the body");
        seen.lock().expect("sound").push(head.clone() + &String::from_utf8_lossy(&body));
        let answer = if head.starts_with("POST /2020-01-01/extension/register ") {
            r#"{"functionName":"f","functionVersion":"$LATEST","handler":"h"}"#
        } else if head.starts_with("GET /2020-01-01/extension/event/next ") {
            let _ = arrived.send(());
            match turns.recv() {
                Ok(Some(turn)) => turn,
                Ok(None) | Err(_) => return,
            }
        } else {
            r#"{"status":"OK"}"#
        };
        let answer = format!(
            "HTTP/1.1 200 OK\r\nLambda-Extension-Identifier: id-1\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        );
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
