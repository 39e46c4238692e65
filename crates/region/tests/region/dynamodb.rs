//! The endpoint as a client sees it, and what is recorded of it.

use crate::common::{HOST, Lab, config};
use danki_region::{Distribution, Endpoint, TlsSettings, TlsVersion};
use http_body_util::Full;
use serde_json::json;

fn constant(ms: f64) -> Option<Distribution> {
    Some(Distribution::Constant { ms })
}

#[tokio::test]
async fn put_and_get_with_dynamodbs_headers() {
    let lab = Lab::start(config(Endpoint::default())).await;
    let mut client = lab.connect().await;
    let item = json!({ "id": { "N": "2" }, "name": { "S": "two" } });
    let put = client.call("PutItem", json!({ "TableName": "test", "Item": item })).await.expect("put");
    assert_eq!((put.status, put.body.as_ref()), (200, b"{}".as_slice()));
    let get = client
        .call("GetItem", json!({ "TableName": "test", "Key": { "id": { "N": "2" } } }))
        .await
        .expect("get");
    assert_eq!(get.json()["Item"], item);
    let header = |name: &str| get.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    assert_eq!(header("content-type"), "application/x-amz-json-1.0");
    assert_eq!(header("server"), "Server");
    assert_eq!(header("connection"), "keep-alive");
    assert_eq!(header("x-amz-crc32"), crc32fast::hash(&get.body).to_string());
    assert_eq!(header("x-amzn-requestid").len(), 52);
    assert_eq!(header("content-length"), get.body.len().to_string());
    assert!(get.headers.contains_key("date") && !get.headers.contains_key("keep-alive"));
}

#[tokio::test]
async fn errors_are_dynamodbs() {
    let lab = Lab::start(config(Endpoint::default())).await;
    let mut client = lab.connect().await;
    let missing = json!({ "TableName": "none", "Key": { "id": { "N": "1" } } });
    let reply = client.call("GetItem", missing).await.expect("answered");
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["__type"], "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException");
    let reply = client.call("MeltItem", json!({})).await.expect("answered");
    assert_eq!(reply.json()["__type"], "com.amazon.coral.service#UnknownOperationException");
    let health = hyper::Request::get("/").header("host", HOST).body(Full::default()).expect("a request");
    let reply = client.send(health).await.expect("answered");
    assert_eq!(reply.body.as_ref(), format!("healthy: {HOST} ").as_bytes());
    let records = lab.requests().await;
    let seen: Vec<(&str, u16)> = records.iter().map(|r| (r.operation.as_str(), r.status)).collect();
    assert_eq!(seen, [("GetItem", 400), ("MeltItem", 400), ("unknown", 200)]);
}

#[tokio::test]
async fn requests_are_recorded_with_ordinal_handshake_and_times() {
    let endpoint =
        Endpoint { service_time: constant(5.0), first_request_extra: constant(20.0), ..Endpoint::default() };
    let lab = Lab::start(config(endpoint)).await;
    for _ in 0..2 {
        let mut client = lab.connect().await;
        for _ in 0..2 {
            client.get_one().await.expect("answered");
        }
    }
    let records = lab.requests().await;
    let ordinals: Vec<u32> = records.iter().map(|r| r.ordinal).collect();
    assert_eq!(ordinals, [1, 2, 1, 2]);
    assert_eq!(records[0].client, records[1].client);
    assert_ne!(records[0].client, records[2].client);
    for r in &records {
        assert_eq!((r.service.as_str(), r.operation.as_str(), r.status), ("dynamodb", "GetItem", 200));
        assert_eq!(r.fault, None);
        assert!(r.received.from_ns <= r.received.to_ns && r.received.to_ns == r.service_time.from_ns);
        let asked_ns = if r.ordinal == 1 { 25_000_000 } else { 5_000_000 };
        assert!(r.service_time.len_ns() >= asked_ns, "{} ns", r.service_time.len_ns());
        assert_eq!(r.tls.is_some(), r.ordinal == 1);
    }
    let tls = records[0].tls.as_ref().expect("with the first request");
    assert_eq!((tls.version.as_str(), tls.server_name.as_deref()), ("TLSv1.3", Some(HOST)));
    assert!(tls.span.from_ns < tls.span.to_ns && tls.span.to_ns <= records[0].received.to_ns);
}

#[tokio::test]
async fn sessions_are_resumed_only_if_allowed() {
    for (max, version) in [(TlsVersion::V12, "TLSv1.2"), (TlsVersion::V13, "TLSv1.3")] {
        for resumption in [true, false] {
            let tls = TlsSettings { max, resumption, ..TlsSettings::default() };
            let lab = Lab::start(config(Endpoint { tls, ..Endpoint::default() })).await;
            for _ in 0..2 {
                lab.connect().await.get_one().await.expect("answered");
            }
            let seen = lab.requests().await.into_iter().filter_map(|r| r.tls);
            let seen: Vec<_> = seen.map(|tls| (tls.version, tls.resumed)).collect();
            assert_eq!(seen, [(version.to_owned(), false), (version.to_owned(), resumption)]);
        }
    }
}

#[tokio::test]
async fn a_service_that_is_not_configured_hangs_up() {
    let lab = Lab::start(config(Endpoint::default())).await;
    let stream = lab.tls("ssm.ap-northeast-1.amazonaws.com").await.expect("handshake");
    let io = hyper_util::rt::TokioIo::new(stream);
    let (sender, connection) = hyper::client::conn::http1::handshake(io).await.expect("http");
    let mut client = crate::common::Client { sender, connection: tokio::spawn(connection) };
    assert!(client.get_one().await.is_err());
}

#[tokio::test]
async fn a_client_that_gives_up_is_recorded() {
    let endpoint = Endpoint { service_time: constant(60_000.0), ..Endpoint::default() };
    let lab = Lab::start(config(endpoint)).await;
    let mut client = lab.connect().await;
    let given_up = tokio::time::timeout(std::time::Duration::from_millis(200), client.get_one()).await;
    assert!(given_up.is_err());
    client.connection.abort();
    let records = lab.requests().await;
    assert_eq!((records.len(), records[0].status), (1, 499));
}

#[tokio::test]
async fn a_stopped_region_refuses_instead_of_hanging() {
    let lab = Lab::start(config(Endpoint::default())).await;
    let mut client = lab.connect().await;
    client.get_one().await.expect("answered");
    let address = lab.address;
    lab.requests().await;
    assert!(client.get_one().await.is_err());
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
