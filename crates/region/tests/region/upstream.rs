//! Another server answers instead of the engine.

use crate::common::{HOST, Lab, config};
use bytes::Bytes;
use danki_region::Endpoint;
use danki_serve::{Answer, Call, Peer, Server, Service};
use http_body_util::Full;
use hyper::Response;
use serde_json::json;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// Tells what it was asked.
struct Echo;

impl Service for Echo {
    fn idle_cutoff(&self, _: &Peer) -> Option<Duration> {
        None
    }

    async fn call(&self, call: Call) -> Answer {
        let header =
            |name: &str| call.head.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let body = call.body.as_ref().expect("a body").bytes.clone();
        let seen = json!({
            "host": header("host"),
            "target": header("x-amz-target"),
            "connection": header("connection"),
            "body": String::from_utf8_lossy(&body),
        });
        let response = Response::builder().status(418).header("x-amzn-requestid", "UPSTREAM");
        let response =
            response.header("keep-alive", "timeout=5").body(Full::new(Bytes::from(seen.to_string())));
        Answer::reply(response.expect("a response"))
    }
}

#[tokio::test]
async fn requests_are_forwarded_as_they_came() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let upstream = Server::start(listener, danki_serve::Config::default(), Arc::new(Echo)).expect("starts");
    let url = format!("http://{}", upstream.local_addr());
    let lab = Lab::start(config(Endpoint { upstream: Some(url), ..Endpoint::default() })).await;
    let mut client = lab.connect().await;
    for _ in 0..2 {
        let reply = client.call("GetItem", json!({ "any": "thing" })).await.expect("answered");
        assert_eq!(reply.status, 418);
        assert_eq!(reply.headers["x-amzn-requestid"], "UPSTREAM");
        assert!(!reply.headers.contains_key("keep-alive"), "an upstream's hint is not DynamoDB's");
        let seen = reply.json();
        assert_eq!(seen["host"], HOST);
        assert_eq!(seen["target"], "DynamoDB_20120810.GetItem");
        assert_eq!(seen["connection"], "");
        assert_eq!(seen["body"], r#"{"any":"thing"}"#);
    }
    let records = lab.requests().await;
    assert_eq!(records.iter().map(|r| (r.ordinal, r.status)).collect::<Vec<_>>(), [(1, 418), (2, 418)]);
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_named() {
    let gone = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let url = format!("http://{gone}");
    let lab = Lab::start(config(Endpoint { upstream: Some(url.clone()), ..Endpoint::default() })).await;
    let reply = lab.connect().await.get_one().await.expect("answered");
    assert_eq!(reply.status, 502);
    let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains(&url) && message.contains("refused"), "{message}");
}

#[tokio::test]
async fn an_https_upstream_must_be_trusted_by_the_system() {
    let other = Lab::start(config(Endpoint::default())).await;
    let url = format!("https://{}", other.address);
    let lab = Lab::start(config(Endpoint { upstream: Some(url.clone()), ..Endpoint::default() })).await;
    let reply = lab.connect().await.get_one().await.expect("answered");
    let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
    assert!(reply.status == 502 && message.contains(&url) && message.contains("certificate"), "{message}");
}

#[tokio::test]
async fn an_upstream_is_a_url() {
    for bad in ["", "127.0.0.1:8000", "ftp://x", "/path"] {
        let (recorder, _recording) = danki_record::Recorder::bounded(1);
        let https = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let config = config(Endpoint { upstream: Some(bad.to_owned()), ..Endpoint::default() });
        let started = danki_region::Region::start(config, danki_region::Sockets { https }, recorder).await;
        let error = started.err().expect("refused").to_string();
        assert!(error.contains("upstream"), "{bad}: {error}");
    }
}
