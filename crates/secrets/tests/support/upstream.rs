//! Secrets Manager and Parameter Store, scripted: each call is answered by a function of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// How many came before it.
    pub index: usize,
    pub head: String,
    pub body: serde_json::Value,
}

impl Call {
    pub fn operation(&self) -> &str {
        let target = self.field("x-amz-target").expect("a target");
        target.split_once('.').expect("service and operation").1
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).map(str::trim)
    }

    /// The name that is asked for.
    pub fn id(&self) -> &str {
        self.body["SecretId"].as_str().or_else(|| self.body["Name"].as_str()).unwrap_or_default()
    }
}

/// What the service does.
pub enum Reply {
    /// Status and JSON.
    Json(u16, String),
    /// The same with a field of the head.
    With(u16, &'static str, String),
    /// These bytes, then the connection ends.
    Raw(Vec<u8>),
    /// Something, after a while.
    After(Duration, Box<Reply>),
    /// The connection ends without a word.
    Close,
}

impl Reply {
    /// A secret or a parameter of this value, whichever was asked for.
    pub fn value(call: &Call, value: &str) -> Reply {
        let json = match call.operation() {
            "GetSecretValue" => {
                serde_json::json!({"ARN": "arn", "Name": call.id(), "SecretString": value, "VersionId": "v",
                "VersionStages": ["AWSCURRENT"], "CreatedDate": 1_668_586_960.499})
            }
            _ => {
                serde_json::json!({"Parameter": {"Name": call.id(), "Type": "String", "Value": value, "Version": 1}})
            }
        };
        Reply::Json(200, json.to_string())
    }

    pub fn refusal(status: u16, kind: &str) -> Reply {
        Reply::Json(status, serde_json::json!({"__type": kind, "message": "because"}).to_string())
    }
}

type Script = Arc<dyn Fn(&Call) -> Reply + Send + Sync>;

/// The running service; its thread lives as long as the test's process.
pub struct Upstream {
    pub url: String,
    pub calls: Arc<Mutex<Vec<Call>>>,
}

impl Upstream {
    pub fn start(script: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> Upstream {
        Upstream::start_with(None, script)
    }

    pub fn start_with(
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(&Call) -> Reply + Send + Sync + 'static,
    ) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://127.0.0.1:{}", listener.local_addr().expect("bound").port());
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (log, script): (_, Script) = (Arc::clone(&calls), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (tls, log, script) = (tls.clone(), Arc::clone(&log), Arc::clone(&script));
                std::thread::spawn(move || connection(stream, tls, &log, &script));
            }
        });
        Upstream { url, calls }
    }

    pub fn count(&self) -> usize {
        self.calls.lock().expect("sound").len()
    }
}

fn connection(
    stream: TcpStream,
    tls: Option<Arc<rustls::ServerConfig>>,
    log: &Mutex<Vec<Call>>,
    script: &Script,
) {
    stream.set_nodelay(true).expect("a socket");
    match tls {
        None => serve(BufReader::new(stream), log, script),
        Some(config) => {
            let session = rustls::ServerConnection::new(config).expect("a session");
            serve(BufReader::new(rustls::StreamOwned::new(session, stream)), log, script);
        }
    }
}

fn serve<S: Read + Write>(mut stream: BufReader<S>, log: &Mutex<Vec<Call>>, script: &Script) {
    while let Some((head, body)) = read(&mut stream) {
        let call = {
            let mut calls = log.lock().expect("sound");
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let call = Call { index: calls.len(), head, body };
            calls.push(call.clone());
            call
        };
        if !reply(stream.get_mut(), script(&call)) {
            return;
        }
    }
}

fn read(stream: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().expect("a number"))];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// Whether the connection goes on.
fn reply(stream: &mut impl Write, reply: Reply) -> bool {
    let (status, field, json) = match reply {
        Reply::Json(status, json) => (status, "Server: script", json),
        Reply::With(status, field, json) => (status, field, json),
        Reply::Raw(bytes) => {
            let _ = stream.write_all(&bytes);
            return false;
        }
        Reply::After(wait, reply) => {
            std::thread::park_timeout(wait);
            return self::reply(stream, *reply);
        }
        Reply::Close => return false,
    };
    let answer = format!(
        "HTTP/1.1 {status} X\r\n{field}\r\nx-amzn-RequestId: r-1\r\nContent-Type: application/x-amz-json-1.1\r\n\
         Content-Length: {}\r\n\r\n{json}",
        json.len()
    );
    stream.write_all(answer.as_bytes()).and_then(|()| stream.flush()).is_ok()
}
