//! Secrets Manager and Parameter Store as a client sees them, and what is recorded of them.

use crate::common::{Client, Lab, Response, ca_dir};
use bytes::Bytes;
use danki_region::{Config, Distribution, Endpoint, Fault, FaultKind, Secret, SecretsManager, Ssm};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

const SECRETS: &str = "secretsmanager.eu-west-1.amazonaws.com";
const SSM: &str = "ssm.eu-west-1.amazonaws.com";

fn quick() -> Endpoint {
    let none = Some(Distribution::Constant { ms: 0.0 });
    Endpoint { service_time: none, kms_time: none, ..Endpoint::default() }
}

fn config(endpoint: Endpoint) -> Config {
    fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("valid")
    }
    Config {
        secretsmanager: Some(SecretsManager {
            endpoint: endpoint.clone(),
            secrets: from(
                json!([{ "name": "one", "value": "first", "rotate_after_s": 0.2, "rotate_to": "second" },
                                 { "name": "table", "value": { "user": "u" } }]),
            ),
        }),
        ssm: Some(Ssm {
            endpoint,
            parameters: from(
                json!([{ "name": "/secure", "value": "s", "type": "SecureString" }, { "name": "/plain", "value": "p" }]),
            ),
        }),
        ca_dir: Some(ca_dir()),
        ..Config::default()
    }
}

struct Service(Client, &'static str);

async fn connect(lab: &Lab, host: &'static str) -> Service {
    let io = TokioIo::new(lab.tls(host).await.expect("handshake"));
    let (sender, connection) = hyper::client::conn::http1::handshake(io).await.expect("http");
    Service(Client { sender, connection: tokio::spawn(connection) }, host)
}

impl Service {
    async fn call(&mut self, operation: &str, body: Value) -> Response {
        let prefix = if self.1 == SSM { "AmazonSSM" } else { "secretsmanager" };
        let request = hyper::Request::post("/")
            .header("host", self.1)
            .header("content-type", "application/x-amz-json-1.1")
            .header("x-amz-target", format!("{prefix}.{operation}"))
            .body(Full::new(Bytes::from(body.to_string())))
            .expect("a request");
        self.0.send(request).await.expect("answered")
    }
}

#[tokio::test]
async fn both_services_answer_under_their_names_and_errors_are_400() {
    let lab = Lab::start(config(quick())).await;
    let mut secrets = connect(&lab, SECRETS).await;
    let reply = secrets.call("GetSecretValue", json!({ "SecretId": "table" })).await;
    assert_eq!((reply.status, reply.json()["SecretString"].as_str()), (200, Some(r#"{"user":"u"}"#)));
    assert_eq!(reply.headers["content-type"], "application/x-amz-json-1.1");
    assert_eq!(reply.headers["x-amzn-requestid"].len(), 36);
    let reply = secrets.call("GetSecretValue", json!({ "SecretId": "none" })).await;
    let expect = json!({ "__type": "ResourceNotFoundException", "Message": "Secrets Manager can't find the specified secret." });
    assert_eq!((reply.status, reply.json()), (400, expect));
    let mut ssm = connect(&lab, SSM).await;
    let reply = ssm.call("GetParameter", json!({ "Name": "/none" })).await;
    assert_eq!((reply.status, reply.json()), (400, json!({ "__type": "ParameterNotFound" })));
    let by_reference = json!({ "Name": "/aws/reference/secretsmanager/table", "WithDecryption": true });
    assert_eq!(ssm.call("GetParameter", by_reference).await.json()["Parameter"]["Version"], 0);
    assert_eq!(ssm.call("MeltParameter", json!({})).await.json()["__type"], "UnknownOperationException");
    let seen: Vec<_> = lab.requests().await.into_iter().map(|r| (r.service, r.operation, r.status)).collect();
    assert_eq!(seen[1], ("secretsmanager".to_owned(), "GetSecretValue".to_owned(), 400));
    assert_eq!(seen[4], ("ssm".to_owned(), "MeltParameter".to_owned(), 400));
}

#[tokio::test]
async fn a_secret_changes_while_clients_ask() {
    let lab = Lab::start(config(quick())).await;
    let mut secrets = connect(&lab, SECRETS).await;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    let mut values = Vec::new();
    while tokio::time::Instant::now() < deadline && values.len() < 2 {
        let reply = secrets.call("GetSecretValue", json!({ "SecretId": "one" })).await.json();
        let value = reply["SecretString"].as_str().expect("text").to_owned();
        if values.last() != Some(&value) {
            values.push(value);
        }
    }
    assert_eq!(values.last().map(String::as_str), Some("second"));
    let previous = json!({ "SecretId": "one", "VersionStage": "AWSPREVIOUS" });
    assert_eq!(secrets.call("GetSecretValue", previous).await.json()["SecretString"], "first");
}

#[tokio::test]
async fn a_key_of_kms_takes_its_time_where_one_is_needed() {
    let kms = Some(Distribution::Constant { ms: 30.0 });
    let lab = Lab::start(config(Endpoint { kms_time: kms, ..quick() })).await;
    let mut ssm = connect(&lab, SSM).await;
    ssm.call("GetParameter", json!({ "Name": "/secure" })).await;
    ssm.call("GetParameter", json!({ "Name": "/secure", "WithDecryption": true })).await;
    ssm.call("GetParameter", json!({ "Name": "/plain", "WithDecryption": true })).await;
    let mut secrets = connect(&lab, SECRETS).await;
    secrets.call("GetSecretValue", json!({ "SecretId": "table" })).await;
    secrets.call("DescribeSecret", json!({ "SecretId": "table" })).await;
    let took: Vec<bool> =
        lab.requests().await.iter().map(|r| r.service_time.len_ns() >= 30_000_000).collect();
    assert_eq!(took, [false, true, false, true, false]);
}

#[tokio::test]
async fn too_many_requests_are_throttled_and_faults_are_the_service_s() {
    let lab = Lab::start(config(Endpoint { rate_per_s: Some(2.0), ..quick() })).await;
    let mut ssm = connect(&lab, SSM).await;
    let mut bodies = Vec::new();
    for _ in 0..6 {
        bodies.push(ssm.call("GetParameter", json!({ "Name": "/plain" })).await.json());
    }
    let throttled = json!({ "__type": "ThrottlingException", "message": "Rate exceeded" });
    assert!(bodies.contains(&throttled), "{bodies:?}");
    let faults: Vec<_> = lab.requests().await.into_iter().filter_map(|r| r.fault).collect();
    assert!(faults.iter().all(|fault| fault == "rate") && !faults.is_empty());

    let fault = Fault { kind: FaultKind::Http500, ratio: None, every: Some(1), after: 0, stall_ms: 1 };
    let lab = Lab::start(config(Endpoint { faults: vec![fault], ..quick() })).await;
    let reply = connect(&lab, SECRETS).await.call("GetSecretValue", json!({ "SecretId": "one" })).await;
    assert_eq!((reply.status, reply.json()["__type"].as_str()), (500, Some("InternalServiceError")));
}

#[tokio::test]
async fn a_bad_seed_is_named() {
    let (recorder, _recording) = danki_record::Recorder::bounded(1);
    let https = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut config = config(quick());
    let secret: Secret = serde_json::from_value(json!({ "name": "in valid", "value": "x" })).expect("valid");
    config.secretsmanager.as_mut().expect("there").secrets.push(secret);
    let started = danki_region::Region::start(config, danki_region::Sockets { https }, recorder).await;
    let error = started.err().expect("refused").to_string();
    assert!(error.contains("\"in valid\"") && error.contains("ValidationException"), "{error}");
}
