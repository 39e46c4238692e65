//! Ways to a secret, on danki: caches that people use, unmodified, and the extension `danki-secrets` when it is killed and when the
//! service breaks off.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]
#![allow(clippy::print_stdout, reason = "`make test` counts the lines that begin with `skipped:`")]

use danki_model::FunctionSpec;
use danki_record::Start;
use danki_region::SecretsManager;
use danki_testkit::{Lab, Settings, function, repository, skipped};
use serde_json::{Value, json};
use std::path::PathBuf;

fn settings(faults: &Value) -> Settings {
    let secretsmanager: SecretsManager = serde_json::from_value(json!({
        "endpoint": { "service_time": { "constant_ms": 1.0 }, "kms_time": { "constant_ms": 0.0 }, "faults": faults },
        "secrets": [{ "name": "prod/db", "value": { "user": "app", "password": "not a real one" } }],
    }))
    .unwrap();
    Settings { secretsmanager: Some(secretsmanager), ..Settings::default() }
}

fn stop(lab: Lab) {
    assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
}

/// Asks each handler of a sample function for the secret; all find the same.
fn each_finds_it(folder: &str, installed: &str, like: &str, handlers: &[&str]) {
    let code = repository().join("functions").join(folder).canonicalize().unwrap();
    let dependencies = code.join(installed);
    if skipped(folder) {
        return;
    }
    if !dependencies.exists() {
        println!("skipped: {folder}: not installed; `make functions` does that");
        return;
    }
    let lab = Lab::start(folder, settings(&json!([]))).unwrap();
    for handler in handlers {
        let mut spec = function(like).unwrap();
        spec.layers = if installed == ".deps" { vec![dependencies.clone()] } else { Vec::new() };
        (spec.code, spec.handler, spec.timeout_ms) = (code.clone(), format!("{handler}.handler"), 30_000);
        spec.memory = 1_769.try_into().unwrap();
        let reply = lab.deploy(spec).unwrap().invoke(&json!({ "calls": 3 })).unwrap();
        assert_eq!(reply.function_error, None, "{handler}: {}", reply.text());
        let found = reply.json();
        let value = r#"{"user":"app","password":"not a real one"}"#;
        assert_eq!(found["length"], value.len(), "{handler}: {found}");
        assert_eq!(found["hit_ms"].as_array().map(Vec::len), Some(2), "{handler}: {found}");
    }
    stop(lab);
}

#[test]
fn caches_of_python_find_a_secret() {
    let handlers = ["powertools", "caching", "plain_dict", "reused_client", "new_client"];
    each_finds_it("secrets-python", ".deps", "hello-python", &handlers);
}

#[test]
fn caches_of_node_find_a_secret() {
    let handlers = ["powertools", "middy", "plain-map", "reused-client", "new-client"];
    each_finds_it("secrets-node", "node_modules", "hello-node", &handlers);
}

const ASKS: &str = r#"
import http.client, json, os, signal, time
from urllib.parse import quote

def get(more=''):
    connection = http.client.HTTPConnection('localhost', 2773, timeout=10)
    token = {'X-Aws-Parameters-Secrets-Token': os.environ['AWS_SESSION_TOKEN']}
    connection.request('GET', '/secretsmanager/get?secretId=prod/db' + more, headers=token)
    answer = connection.getresponse()
    body = answer.read().decode()
    return json.loads(json.loads(body)['SecretString'])['user'] if answer.status == 200 else [answer.status, body]

def kill(name):
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with open(f'/proc/{pid}/cmdline') as command:
            if name in command.read():
                os.kill(int(pid), signal.SIGKILL)

def handler(event, context):
    if 'kill' in event:
        kill(event['kill'])
        time.sleep(3)
    return [get(more) for more in event.get('ask', [''])]
"#;

/// A function that asks the extension; none, in words, if that was not built beside this test.
fn asks(lab: &Lab) -> Option<FunctionSpec> {
    let test = std::env::current_exe().unwrap();
    let built: PathBuf = test.ancestors().nth(2).unwrap().join("danki-secrets");
    if !built.exists() {
        println!("skipped: danki-secrets: {} is not there; `make test` builds it", built.display());
        return None;
    }
    let layer = lab.dir().join("layer");
    std::fs::create_dir_all(layer.join("extensions")).unwrap();
    std::fs::copy(built, layer.join("extensions/AWSParametersAndSecretsLambdaExtension")).unwrap();
    let mut spec = lab.write("lambda_function.py", ASKS).unwrap();
    (spec.memory, spec.timeout_ms, spec.layers) = (1_769.try_into().unwrap(), 20_000, vec![layer]);
    let variables = [
        ("AWS_CA_BUNDLE", "/etc/danki/ca-root.crt"),
        ("DANKI_SECRETS_READY", "init"),
        // One connection, so that each request but the first finds it kept.
        ("PARAMETERS_SECRETS_EXTENSION_MAX_CONNECTIONS", "1"),
    ];
    spec.environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    Some(spec)
}

#[test]
fn a_killed_extension_fails_the_invocation_and_the_next_has_a_new_one() {
    if skipped("a killed extension") {
        return;
    }
    let lab = Lab::start("secrets-killed", settings(&json!([]))).unwrap();
    let Some(spec) = asks(&lab) else { return };
    let function = lab.deploy(spec).unwrap();
    assert_eq!(function.invoke(&json!({})).unwrap().json(), json!(["app"]));
    let failed = function.invoke(&json!({ "kill": "AWSParametersAndSecrets" })).unwrap();
    let id = &failed.invocation.request_id;
    let expect = json!({ "errorType": "Extension.Crash", "errorMessage": format!("RequestId: {id} Error: signal: killed") });
    assert_eq!((failed.json(), failed.function_error.as_deref()), (expect, Some("Unhandled")));
    let after = function.invoke(&json!({})).unwrap();
    assert_eq!((after.json(), after.invocation.start), (json!(["app"]), Start::Suppressed));
    stop(lab);
}

#[test]
fn what_the_service_breaks_off_is_asked_for_again_or_named() {
    const FRESH: &str = "&refreshNow=true";
    let unexpected = json!([400, "an unexpected error occurred while executing request"]);
    for (kind, every, said) in [
        ("reset-mid-body", 1, "the answer broke off"),
        ("tls-alert", 1, "received fatal alert: BadRecordMac"),
        ("reset-mid-body", 2, ""),
        ("tls-alert", 2, ""),
    ] {
        if skipped("faults behind the extension") {
            return;
        }
        let lab = Lab::start("secrets-faults", settings(&json!([{ "kind": kind, "every": every }]))).unwrap();
        let Some(spec) = asks(&lab) else { return };
        let reply = lab.deploy(spec).unwrap().invoke(&json!({ "ask": ["", FRESH, FRESH] })).unwrap();
        // Each second request breaks: it was sent on a kept connection, and is sent once more on a new one.
        let expect = if every == 1 { &unexpected } else { &json!("app") };
        assert_eq!(reply.json(), json!([expect, expect, expect]), "{kind}, each {every}");
        let log = lab.log(reply.invocation.env).join("\n");
        assert!(log.contains(said), "{kind}: {log}");
        stop(lab);
    }
}
