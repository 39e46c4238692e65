//! The extension and its platform: registration, readiness, prefetch, turns, snapshots, the end.

use crate::support::{Call, Client, Reply, Running, TOKEN, Upstream};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

const A: &str = "/secretsmanager/get?secretId=a";
const NOT_READY: &str = "not ready to serve traffic, please wait";

fn values() -> Upstream {
    Upstream::start(|call| Reply::value(call, "v"))
}

#[test]
fn it_registers_as_awss_does() {
    let upstream = values();
    let mut running = Running::start(&upstream.url, &[]);
    running.platform.wait_for_next();
    let seen = running.platform.seen.lock().expect("sound").clone();
    assert!(seen[0].starts_with("POST /2020-01-01/extension/register HTTP/1.1\r\n"), "{seen:?}");
    assert!(
        seen[0].contains("\r\nLambda-Extension-Name: AWSParametersAndSecretsLambdaExtension\r\n"),
        "{seen:?}"
    );
    assert!(seen[0].ends_with(r#"{"events":["SHUTDOWN","INVOKE"]}"#), "{seen:?}");
    assert!(seen[1].starts_with("GET /2020-01-01/extension/event/next HTTP/1.1\r\n"), "{seen:?}");
    assert!(seen[1].contains("\r\nLambda-Extension-Identifier: id-1\r\n"), "{seen:?}");
    running.stop().expect("a SHUTDOWN is a good end");
    assert!(running.logged().contains(&format!("INFO Serving on port {}\n", running.port)));
}

#[test]
fn by_default_it_serves_from_the_first_invocation_on() {
    let upstream = values();
    let running = Running::start(&upstream.url, &[("DANKI_SECRETS_READY", "")]);
    running.platform.wait_for_next();
    for target in [A, "/secretsmanager/get", "/systemsmanager/parameters/get?name=a"] {
        assert!(running.get(target).is(400, NOT_READY), "{target}");
    }
    assert_eq!(running.get("/ping").status, 200);
    assert_eq!(upstream.count(), 0);
    running.platform.invoke();
    running.platform.wait_for_next();
    assert_eq!(running.get(A).status, 200);
    assert!(running.logged().contains("INFO ready to serve traffic\n"));
}

#[test]
fn if_asked_to_it_serves_during_init() {
    let upstream = values();
    let running = Running::start(&upstream.url, &[("DANKI_SECRETS_READY", "init")]);
    assert_eq!(running.get(A).status, 200);
}

/// Answers batches with what they ask for, but for names that end in `missing`.
fn batches(call: &Call) -> Reply {
    let names = |field: &str| -> Vec<String> {
        let list = call.body[field].as_array().expect("a list");
        list.iter()
            .map(|name| name.as_str().expect("text").to_owned())
            .filter(|name| !name.ends_with("missing"))
            .collect()
    };
    match call.operation() {
        "BatchGetSecretValue" => {
            let values: Vec<_> = names("SecretIdList")
                .into_iter()
                .map(|name| json!({"Name": name, "ARN": "arn", "SecretString": "v"}))
                .collect();
            Reply::Json(200, json!({"SecretValues": values, "Errors": []}).to_string())
        }
        "GetParameters" => {
            let values: Vec<_> =
                names("Names").into_iter().map(|name| json!({"Name": name, "Value": "v"})).collect();
            Reply::Json(200, json!({"Parameters": values, "InvalidParameters": []}).to_string())
        }
        _ if call.id().ends_with("missing") => Reply::refusal(400, "ResourceNotFoundException"),
        _ => Reply::value(call, "v"),
    }
}

#[test]
fn a_prefetch_list_is_fetched_in_batches_before_init_ends() {
    let upstream = Upstream::start(batches);
    let list = "secretId=a secretId=b secretId=c secretId=missing secretId=a&versionStage=AWSPREVIOUS name=/p name=/q name=/r&withDecryption=true";
    let running = Running::start(&upstream.url, &[("DANKI_SECRETS_PREFETCH", list)]);
    running.platform.wait_for_next();
    let mut operations: Vec<String> =
        upstream.calls.lock().expect("sound").iter().map(|call| call.operation().to_owned()).collect();
    operations.sort();
    // One batch of secrets, one that it did not bring, one with a stage; one batch of parameters, one that is decrypted.
    let expect = ["BatchGetSecretValue", "GetParameter", "GetParameters", "GetSecretValue", "GetSecretValue"];
    assert_eq!(operations, expect);
    for target in [A, "/secretsmanager/get?secretId=c", "/systemsmanager/parameters/get?name=%2Fq"] {
        assert_eq!(running.get(target).status, 200, "{target}");
    }
    assert_eq!(upstream.count(), expect.len());
    assert!(running.logged().contains("ResourceNotFoundException"));
}

#[test]
fn without_the_right_to_batches_values_are_fetched_alone() {
    let upstream = Upstream::start(|call| match call.operation() {
        "BatchGetSecretValue" | "GetParameters" => Reply::refusal(400, "AccessDeniedException"),
        _ => Reply::value(call, "v"),
    });
    let running = Running::start(&upstream.url, &[("DANKI_SECRETS_PREFETCH", "secretId=a secretId=b")]);
    running.platform.wait_for_next();
    assert_eq!(upstream.count(), 3);
    assert_eq!(running.get(A).status, 200);
    assert_eq!(upstream.count(), 3);
}

#[test]
fn a_prefetch_that_hangs_does_not_hold_up_init() {
    let upstream = Upstream::start(|call| {
        Reply::After(std::time::Duration::from_secs(20), Box::new(Reply::value(call, "late")))
    });
    let limits = [("DANKI_SECRETS_PREFETCH", "secretId=a"), ("DANKI_SECRETS_PREFETCH_TIMEOUT_MILLIS", "50")];
    let running = Running::start(&upstream.url, &limits);
    running.platform.wait_for_next();
    assert!(!running.logged().contains("ERROR"));
}

#[test]
fn nothing_is_kept_in_a_snapshot_and_its_credentials_are_fetched_after_the_restore() {
    let upstream = Upstream::start(|call| {
        if call.head.starts_with("GET /credentials ") {
            assert_eq!(call.field("Authorization"), Some("the key"));
            let keys = json!({"AccessKeyId": format!("AKID{}", call.index), "SecretAccessKey": "s", "Token": TOKEN,
                "Expiration": "2037-11-16T08:22:40Z"});
            return Reply::Json(200, keys.to_string());
        }
        Reply::value(call, "v")
    });
    let uri = format!("{}/credentials", upstream.url);
    let running = Running::start(
        &upstream.url,
        &[
            ("AWS_LAMBDA_INITIALIZATION_TYPE", "snap-start"),
            ("AWS_ACCESS_KEY_ID", ""),
            ("AWS_SESSION_TOKEN", ""),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &uri),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "the key"),
            ("DANKI_SECRETS_PREFETCH", "secretId=a"),
        ],
    );
    running.platform.wait_for_next();
    assert_eq!(upstream.count(), 0, "nothing is fetched into a snapshot");
    running.platform.invoke();
    running.platform.wait_for_next();
    assert_eq!(running.get(A).status, 200);
    assert_eq!(running.get(A).status, 200);
    let calls = upstream.calls.lock().expect("sound").clone();
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(calls[1].field("authorization").expect("signed").contains("Credential=AKID0/"));
    assert_eq!(calls[1].field("x-amz-security-token"), Some(TOKEN));
}

#[test]
fn a_platform_that_is_gone_ends_it() {
    let upstream = values();
    let mut running = Running::start(&upstream.url, &[]);
    running.platform.wait_for_next();
    running.platform.vanish();
    let error = running.stop().expect_err("it cannot go on").to_string();
    assert!(error.contains("cannot get the next event"), "{error}");
}

#[test]
fn a_port_that_is_taken_is_told_to_the_platform() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port();
    let platform = crate::support::Platform::start();
    let mut variables = crate::support::variables("http://127.0.0.1:1");
    variables.push(("AWS_LAMBDA_RUNTIME_API".to_owned(), platform.address.clone()));
    variables.push(("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT".to_owned(), port.to_string()));
    let get = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let settings = danki_secrets::settings::Settings::read(&get).expect("valid");
    let error = danki_secrets::run(&settings, "name", &crate::support::silent(), |_| {})
        .expect_err("taken")
        .to_string();
    assert!(error.contains(&port.to_string()) && error.contains("hint: "), "{error}");
    let seen = platform.seen.lock().expect("sound").clone();
    assert!(seen[1].contains("/extension/exit/error") && seen[1].contains("Extension.Listen"), "{seen:?}");
}

#[test]
fn metrics_are_a_line_per_turn() {
    let upstream = values();
    let settings = [("DANKI_SECRETS_METRICS", "true"), ("AWS_LAMBDA_FUNCTION_NAME", "f")];
    let mut running = Running::start(&upstream.url, &settings);
    for _ in 0..3 {
        running.get(A);
    }
    Client::connect(running.port, None).get(A);
    running.stop().expect("a good end");
    let log = running.logged();
    let line = log.lines().find(|line| line.starts_with('{')).expect("a line of metrics");
    let metrics: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let of = |name: &str| metrics[name].as_u64();
    assert_eq!(
        (of("Hits"), of("Misses"), of("Fetches"), of("Refused")),
        (Some(2), Some(1), Some(1), Some(1))
    );
    assert_eq!(metrics["FunctionName"], "f");
}

#[test]
fn a_unix_socket_serves_too_and_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secrets.sock");
    let upstream = values();
    let mut running =
        Running::start(&upstream.url, &[("DANKI_SECRETS_UNIX_SOCKET", path.to_str().expect("UTF-8"))]);
    let mut stream = UnixStream::connect(&path).expect("it listens");
    let request =
        format!("GET {A} HTTP/1.1\r\nX-Aws-Parameters-Secrets-Token: {TOKEN}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\"SecretString\":\"v\""),
        "{answer}"
    );
    running.stop().expect("a good end");
    assert!(!path.exists());
}
