//! A region on a loopback port, and a client that trusts it.

use bytes::Bytes;
use danki_record::{Event, Received, Recorder, Recording, Request};
use danki_region::{Config, DynamoDb, Endpoint, Region, Sockets, Table};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::{HeaderMap, Request as HttpRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub const HOST: &str = "dynamodb.ap-northeast-1.amazonaws.com";

pub struct Lab {
    pub region: Region,
    pub address: SocketAddr,
    pub tls: Arc<ClientConfig>,
    recorder: Recorder,
    recording: Recording,
}

/// Keys are made once for all test runs: RSA generation is slow without optimisation.
pub fn ca_dir() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_TARGET_TMPDIR"), "/danki-test-ca"))
}

pub fn table() -> Table {
    serde_json::from_value(
        json!({ "name": "test", "hash_key": ["id", "N"], "items": [{ "id": 1, "name": "one" }] }),
    )
    .expect("a table")
}

pub fn config(endpoint: Endpoint) -> Config {
    Config {
        region_name: "ap-northeast-1".to_owned(),
        dynamodb: Some(DynamoDb { tables: vec![table()], endpoint }),
        ca_dir: Some(ca_dir()),
        ..Config::default()
    }
}

impl Lab {
    pub async fn start(config: Config) -> Lab {
        let (recorder, recording) = Recorder::bounded(10_000);
        let https = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let region = Region::start(config, Sockets { https }, recorder.clone()).await.expect("starts");
        let address = region.https_addr();
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(region.root_pem().as_bytes()).expect("pem"))
            .expect("a root");
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Lab { region, address, tls: Arc::new(tls), recorder, recording }
    }

    pub async fn tls(&self, host: &'static str) -> std::io::Result<TlsStream<TcpStream>> {
        let tcp = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from(host).expect("a name");
        TlsConnector::from(Arc::clone(&self.tls)).connect(name, tcp).await
    }

    pub async fn connect(&self) -> Client {
        let stream = self.tls(HOST).await.expect("handshake");
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("http");
        Client { sender, connection: tokio::spawn(connection) }
    }

    /// What is recorded, up to the first fact that is wanted; a test that waits longer than 10 s for it has failed.
    pub async fn events_until(self, wanted: fn(&Event) -> bool) -> Vec<Event> {
        let Lab { region, recorder, recording, .. } = self;
        let read = move || {
            let mut events = Vec::new();
            while let Received::Event(event) = recording.receive(std::time::Duration::from_secs(10)) {
                events.push(*event);
                if wanted(&events[events.len() - 1]) {
                    return events;
                }
            }
            panic!("never recorded; before it: {events:?}")
        };
        let events = tokio::task::spawn_blocking(read).await.expect("recorded");
        drop((region, recorder));
        events
    }

    /// Stops the region and returns the requests it recorded.
    pub async fn requests(self) -> Vec<Request> {
        let Lab { region, recorder, recording, .. } = self;
        region.stop().await;
        drop(recorder);
        let events = tokio::task::spawn_blocking(move || recording.collect::<Vec<Event>>());
        let events = tokio::time::timeout(std::time::Duration::from_secs(5), events).await;
        let events = events.expect("every recorder is gone").expect("no panic");
        let request = |event| match event {
            Event::Request(request) => Some(request),
            _ => None,
        };
        events.into_iter().filter_map(request).collect()
    }
}

pub struct Client {
    pub sender: SendRequest<Full<Bytes>>,
    pub connection: tokio::task::JoinHandle<hyper::Result<()>>,
}

pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Response {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("json")
    }
}

impl Client {
    pub async fn call(&mut self, operation: &str, body: Value) -> hyper::Result<Response> {
        let request = HttpRequest::post("/")
            .header("host", HOST)
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
            .body(Full::new(Bytes::from(body.to_string())))
            .expect("a request");
        self.send(request).await
    }

    pub async fn get_one(&mut self) -> hyper::Result<Response> {
        self.call("GetItem", json!({ "TableName": "test", "Key": { "id": { "N": "1" } } })).await
    }

    pub async fn send(&mut self, request: HttpRequest<Full<Bytes>>) -> hyper::Result<Response> {
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Response { status: head.status.as_u16(), headers: head.headers, body })
    }
}
