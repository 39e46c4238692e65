//! A session on loopback, and a runtime that speaks raw HTTP.

#![allow(dead_code, reason = "each test target uses a part of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests: clippy sees only the tests themselves")]

pub mod counting;
pub mod process;

use bytes::Bytes;
use danki_model::RequestId;
use danki_runtime_api::{Events, FunctionFacts, Invoke, Limits, Profile, RuntimeEvent, Session};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Nothing here takes a fraction of it, unless it is broken.
pub const DEADLINE: Duration = Duration::from_secs(30);

pub struct Api {
    pub session: Session,
    pub events: Events,
    pub address: SocketAddr,
}

impl Api {
    pub fn start() -> Api {
        Api::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Api {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (session, events) = Session::start(listener, limits, Profile::default()).unwrap();
        Api { session, events, address }
    }

    /// Of a function with these external extensions.
    pub fn with_extensions(externals: &[&str]) -> Api {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let function = FunctionFacts {
            function_name: "f".to_owned(),
            function_version: "$LATEST".to_owned(),
            handler: "index.handler".to_owned(),
            account_id: Some("123456789012".to_owned()),
        };
        let externals = externals.iter().map(|name| (*name).to_owned()).collect();
        let profile = Profile { function, externals, seed: 7 };
        let (session, events) = Session::start(listener, Limits::default(), profile).unwrap();
        Api { session, events, address }
    }

    pub async fn connect(&self) -> Peer {
        Peer(TcpStream::connect(self.address).await.unwrap())
    }

    pub async fn event(&mut self) -> RuntimeEvent {
        timeout(DEADLINE, self.events.next()).await.expect("an event in time").expect("a session")
    }

    /// Asserts that the runtime begins to wait.
    pub async fn ready(&mut self) {
        let event = self.event().await;
        assert!(matches!(event, RuntimeEvent::NextRequested { .. }), "{event:?}");
    }

    /// Asserts that the event was handed out.
    pub async fn delivered(&mut self, id: &str) {
        let event = self.event().await;
        assert!(
            matches!(&event, RuntimeEvent::Delivered { request_id, .. } if request_id.0 == id),
            "{event:?}"
        );
    }

    /// The function's answer: `Ok` with its response or `Err` with error type and payload.
    pub async fn answer(&mut self, id: &str) -> Result<Bytes, (String, Bytes)> {
        match self.event().await {
            RuntimeEvent::Response { request_id, body, .. } if request_id.0 == id => Ok(body),
            RuntimeEvent::Error { request_id, error_type, body, .. } if request_id.0 == id => {
                Err((error_type, body))
            }
            other => panic!("{other:?}"),
        }
    }

    /// Type and payload of the init error that the runtime reports.
    pub async fn init_error(&mut self) -> (String, serde_json::Value) {
        match self.event().await {
            RuntimeEvent::InitError { error_type, body, .. } => {
                (error_type, serde_json::from_slice(&body).unwrap())
            }
            other => panic!("{other:?}"),
        }
    }

    /// A whole invocation of a runtime that waits already or will do so.
    pub async fn invoke(&mut self, id: &str, payload: impl Into<Bytes>) -> Result<Bytes, (String, Bytes)> {
        self.session.deliver(invoke(id, payload)).unwrap();
        loop {
            match self.event().await {
                RuntimeEvent::NextRequested { .. } => {}
                RuntimeEvent::Delivered { request_id, .. } if request_id.0 == id => break,
                other => panic!("{other:?}"),
            }
        }
        self.answer(id).await
    }
}

pub fn invoke(id: &str, payload: impl Into<Bytes>) -> Invoke {
    Invoke {
        request_id: RequestId(id.to_owned()),
        deadline_epoch_ms: 4_102_444_800_000,
        function_arn: "arn:aws:lambda:us-east-1:123456789012:function:f".to_owned(),
        trace_id: Some(
            "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1".to_owned(),
        ),
        client_context: None,
        cognito_identity: None,
        payload: payload.into(),
        stream: false,
    }
}

/// One connection of a hand-written runtime.
pub struct Peer(pub TcpStream);

pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Peer {
    pub async fn send(&mut self, raw: impl AsRef<[u8]>) {
        self.0.write_all(raw.as_ref()).await.unwrap();
    }

    pub async fn get(&mut self, path: &str) {
        self.send(format!("GET /2018-06-01{path} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
    }

    pub async fn next(&mut self) -> Reply {
        self.get("/runtime/invocation/next").await;
        self.reply().await
    }

    pub async fn post(&mut self, path: &str, headers: &str, body: impl AsRef<[u8]>) -> Reply {
        let body = body.as_ref();
        let head = format!(
            "POST /2018-06-01/runtime{path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.send(head).await;
        self.send(body).await;
        self.reply().await
    }

    /// The next answer; panics where the connection ends before one.
    pub async fn reply(&mut self) -> Reply {
        timeout(DEADLINE, self.try_reply()).await.expect("an answer in time").expect("an answer")
    }

    /// The next answer; `None` where the connection ends before one.
    pub async fn try_reply(&mut self) -> Option<Reply> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut reply = Reply { status, head, body: Vec::new() };
        reply.body = vec![0; reply.header("Content-Length").unwrap().parse().unwrap()];
        self.0.read_exact(&mut reply.body).await.ok()?;
        Some(reply)
    }
}
