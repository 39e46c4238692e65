//! danki's PHP runtime, run with the PHP of this machine.

#![allow(clippy::unwrap_used, reason = "helpers of tests: clippy sees only the tests themselves")]

use crate::bootstraps::{call, error, fixtures};
use crate::common::process::{Process, root};
use crate::common::{Api, invoke};
use danki_runtime_api::MAX_PAYLOAD_BYTES;
use serde_json::{Value, json};

/// Each process serves so many invocations.
fn php(api: &Api, handler: &str, loops: &str) -> Process {
    let bootstrap = root().join("runtimes/php/bootstrap.sh").display().to_string();
    Process::with(
        api,
        "/bin/sh",
        &[&bootstrap, "php"],
        &fixtures("php"),
        handler,
        &[("BREF_LOOP_MAX", loops)],
    )
}

/// Without its API the runtime ends; what it had printed.
async fn end(api: Api, process: Process) -> String {
    drop(api);
    process.end().await.1
}

#[tokio::test]
async fn php_serves_and_survives() {
    let mut api = Api::start();
    let process = php(&api, "index.php", "100");
    for value in [json!({"k": [1, "é", null, 1.5]}), json!(null), json!("text"), json!([])] {
        assert_eq!(call(&mut api, json!({"op": "echo", "value": value})).await, Ok(value));
    }
    let large = "y".repeat(2_000_000);
    assert_eq!(call(&mut api, json!({"op": "echo", "value": large})).await, Ok(json!(large)));
    assert_eq!(call(&mut api, json!({"op": "nothing"})).await, Ok(json!(null)));
    let failed = call(&mut api, json!({"op": "throws"})).await.unwrap_err();
    assert_eq!((&failed["errorType"], &failed["errorMessage"]), (&json!("DomainException"), &json!("boom")));
    assert!(failed["stackTrace"][0].as_str().unwrap().starts_with("#0 "), "{failed}");
    let check = async |api: &mut Api, op: &str, kind: &str, message: &str| {
        let (is_kind, said) = error(api, json!({"op": op})).await;
        assert_eq!(is_kind, kind, "{said}");
        assert!(said.starts_with(message), "{said}");
    };
    check(&mut api, "error", "TypeError", "strlen(): Argument #1").await;
    check(&mut api, "unknown", "Error", "Call to undefined function nowhere()").await;
    check(&mut api, "resource", "Runtime.MarshalError", "Unable to marshal response: ").await;
    let too_large = error(&mut api, json!({"op": "big", "value": MAX_PAYLOAD_BYTES + 1})).await;
    assert_eq!(too_large.0, "Function.ResponseSizeTooLarge");
    assert_eq!(call(&mut api, json!({"op": "big", "value": 3})).await, Ok(json!("xxx")));
    assert_eq!(call(&mut api, json!({"op": "warns"})).await, Ok(json!(null)));
    let printed = end(api, process).await;
    assert!(printed.contains("an-id\tInvoke Error\t{\"errorType\":\"DomainException\","), "{printed}");
}

#[tokio::test]
async fn php_s_context_is_complete() {
    let mut api = Api::start();
    let process = php(&api, "index.php", "100");
    let expect = json!({
        "id": "an-id",
        "arn": "arn:aws:lambda:us-east-1:123456789012:function:f",
        "remaining": true,
        "trace": true,
    });
    assert_eq!(call(&mut api, json!({"op": "context"})).await, Ok(expect));
    end(api, process).await;
}

#[tokio::test]
async fn php_processes_last_as_long_as_asked() {
    let check = async |loops: &str, expect: &[u64]| {
        let mut api = Api::start();
        let process = php(&api, "index.php", loops);
        let (mut counts, mut pids) = (Vec::new(), Vec::new());
        for _ in 0..expect.len() {
            let answer = call(&mut api, json!({"op": "process"})).await.unwrap();
            counts.push(answer["count"].as_u64().unwrap());
            pids.push(answer["pid"].as_u64().unwrap());
        }
        assert_eq!(counts, expect, "{loops}");
        pids.dedup();
        let processes = expect.iter().filter(|count| **count == 1).count();
        assert_eq!(pids.len(), processes, "{loops}");
        end(api, process).await;
    };
    check("1", &[1, 1, 1]).await;
    check("", &[1, 1]).await;
    check("2", &[1, 2, 1, 2]).await;
    check("100", &[1, 2, 3]).await;
}

#[tokio::test]
async fn php_finds_handlers_and_reports_init_errors() {
    let mut api = Api::start();
    let process = php(&api, "object.php", "1");
    assert_eq!(call(&mut api, json!({})).await, Ok(json!("handled")));
    end(api, process).await;
    let check = async |handler: &str, kind: &str, reported: &str, message: &str| {
        let mut api = Api::start();
        let process = php(&api, handler, "1");
        let (error_type, payload): (String, Value) = api.init_error().await;
        assert_eq!((&*error_type, &payload["errorType"]), (reported, &json!(kind)), "{handler}");
        assert!(payload["errorMessage"].as_str().unwrap().contains(message), "{payload}");
        let (code, printed) = process.end().await;
        assert_eq!(code, Some(1), "{handler}");
        assert!(printed.contains("Init Error\t{\"errorType\":"), "{printed}");
    };
    check(
        "nowhere.php",
        "Runtime.ImportModuleError",
        "Runtime.ImportModuleError",
        "nowhere.php` doesn't exist",
    )
    .await;
    check("syntax.php", "Runtime.UserCodeSyntaxError", "Runtime.UserCodeSyntaxError", "syntax.php:1)").await;
    check("number.php", "Runtime.HandlerNotFound", "Runtime.HandlerNotFound", "returns neither a callable")
        .await;
    check("throws.php", "LogicException", "Runtime.Unknown", "at load").await;
}

#[tokio::test]
async fn php_s_exits_are_exits() {
    for (op, code) in [("exit", 3), ("exitZero", 0)] {
        let api = Api::start();
        let process = php(&api, "index.php", "100");
        api.session.deliver(invoke("an-id", json!({"op": op}).to_string())).unwrap();
        assert_eq!(process.end().await.0, Some(code), "{op}");
    }
}
