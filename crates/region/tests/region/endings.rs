//! How connections and requests end: idle cut-off and injected faults.

use crate::common::{Client, Lab, config};
use danki_region::{Config, Endpoint, Fault, FaultKind};
use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(5);

fn fault(kind: FaultKind) -> Fault {
    Fault { kind, ratio: None, every: Some(2), after: 0, stall_ms: 100 }
}

/// Each second request has the fault. Returns the answers to three requests, each on a connection that lives.
async fn three(kind: FaultKind) -> (Vec<Result<(u16, String), hyper::Error>>, Vec<(u16, Option<String>)>) {
    let lab = Lab::start(config(Endpoint { faults: vec![fault(kind)], ..Endpoint::default() })).await;
    let mut client = lab.connect().await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let answer = timeout(SOON, client.get_one()).await.expect("never a hang");
        if answer.is_err() {
            client = lab.connect().await;
        }
        answers.push(answer.map(|a| (a.status, a.json()["__type"].as_str().unwrap_or_default().to_owned())));
    }
    let records = lab.requests().await;
    (answers, records.into_iter().map(|r| (r.status, r.fault)).collect())
}

#[tokio::test]
async fn faults_with_an_answer() {
    let cases = [
        (FaultKind::Http500, 500, "InternalServerError"),
        (FaultKind::Throttle, 400, "ProvisionedThroughputExceededException"),
        (FaultKind::ThrottlingException, 400, "ThrottlingException"),
    ];
    for (kind, status, error) in cases {
        let (answers, records) = three(kind).await;
        let answers: Vec<_> = answers.into_iter().map(|a| a.expect("answered")).collect();
        assert_eq!((answers[0].0, answers[1].0, answers[2].0), (200, status, 200));
        assert!(answers[1].1.ends_with(&format!("#{error}")), "{}", answers[1].1);
        assert_eq!(records, [(200, None), (status, Some(kind.as_str().to_owned())), (200, None)]);
    }
}

#[tokio::test]
async fn a_reset_is_a_reset() {
    let (answers, records) = three(FaultKind::Reset).await;
    let error = answers[1].as_ref().expect_err("reset");
    let cause = std::iter::successors(error.source(), |e| (*e).source());
    let kinds: Vec<_> =
        cause.filter_map(|e| e.downcast_ref::<std::io::Error>()).map(std::io::Error::kind).collect();
    assert_eq!(kinds, [ErrorKind::ConnectionReset]);
    assert_eq!(records[1], (0, Some("reset".to_owned())));
    assert!(answers[2].is_ok());
}

#[tokio::test]
async fn a_reset_in_the_middle_leaves_half_an_answer() {
    let (answers, records) = three(FaultKind::ResetMidBody).await;
    let error = answers[1].as_ref().expect_err("half of a body is not a body");
    assert!(!error.is_incomplete_message(), "the head has come: {error:?}");
    assert_eq!(records[1], (0, Some("reset-mid-body".to_owned())));
    assert!(answers[2].is_ok());
}

/// What the half is, byte by byte.
#[tokio::test]
async fn the_half_is_announced_as_whole() {
    let half = Fault { every: Some(1), ..fault(FaultKind::ResetMidBody) };
    let lab = Lab::start(config(Endpoint { faults: vec![half], ..Endpoint::default() })).await;
    let mut stream = lab.tls(crate::common::HOST).await.expect("handshake");
    let body = r#"{"TableName":"test","Key":{"id":{"N":"1"}}}"#;
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nX-Amz-Target: DynamoDB_20120810.GetItem\r\nContent-Length: {}\r\n\r\n{body}",
        crate::common::HOST,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("open");
    let mut read = Vec::new();
    let end = timeout(SOON, stream.read_to_end(&mut read)).await.expect("never a hang");
    assert_eq!(end.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
    let text = String::from_utf8(read).expect("text");
    let (head, half) = text.split_once("\r\n\r\n").expect("a head");
    let announced = head
        .to_ascii_lowercase()
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    assert_eq!(announced.map(|length: usize| length / 2), Some(half.len()), "{text}");
    assert!(half.starts_with('{') && head.starts_with("HTTP/1.1 200 "), "{text}");
}

#[tokio::test]
async fn an_alert_is_an_alert() {
    let (answers, records) = three(FaultKind::TlsAlert).await;
    let error = answers[1].as_ref().expect_err("no answer");
    let causes = std::iter::successors(error.source(), |e| (*e).source()).map(ToString::to_string);
    let causes: Vec<_> = causes.collect();
    assert!(causes.iter().any(|cause| cause.contains("received fatal alert: BadRecordMac")), "{causes:?}");
    assert_eq!(records[1], (0, Some("tls-alert".to_owned())));
    assert!(answers[2].is_ok());
}

#[tokio::test]
async fn a_stall_ends_without_an_answer() {
    let (answers, records) = three(FaultKind::Stall).await;
    assert!(answers[1].as_ref().is_err_and(hyper::Error::is_incomplete_message), "{:?}", answers[1]);
    assert_eq!(records[1], (0, Some("stall".to_owned())));
    assert!(answers[2].is_ok());
}

fn cutoff(idle_cutoff_ms: u64, time_scale: f64) -> Config {
    Config { time_scale, ..config(Endpoint { idle_cutoff_ms: Some(idle_cutoff_ms), ..Endpoint::default() }) }
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_order() {
    let lab = Lab::start(cutoff(1_500, 10.0)).await;
    // Without close_notify rustls would say `UnexpectedEof`.
    let mut stream = lab.tls(crate::common::HOST).await.expect("handshake");
    let read = timeout(SOON, stream.read(&mut [0; 16])).await.expect("closed after 150 ms");
    assert_eq!(read.expect("close_notify"), 0);
}

#[tokio::test]
async fn the_idle_clock_starts_with_the_last_response() {
    let lab = Lab::start(cutoff(4_000, 10.0)).await;
    let Client { mut sender, connection } = lab.connect().await;
    for _ in 0..4 {
        let mut client = Client { sender, connection: tokio::spawn(async { Ok(()) }) };
        client.get_one().await.expect("kept: idle for half of the cut-off only");
        sender = client.sender;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let ended = timeout(SOON, connection).await.expect("closed 400 ms after the last response");
    ended.expect("no panic").expect("closed in order");
}

#[tokio::test]
async fn no_cutoff_is_none() {
    let lab = Lab::start(cutoff(0, 1.0)).await;
    let mut stream = lab.tls(crate::common::HOST).await.expect("handshake");
    assert!(timeout(Duration::from_millis(300), stream.read(&mut [0; 16])).await.is_err());
}
