//! danki's Node and Python runtimes, run with the interpreters of this machine.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests: clippy sees only the tests themselves"
)]

use crate::common::process::{Process, root};
use crate::common::{Api, invoke};
use danki_runtime_api::{MAX_PAYLOAD_BYTES, RuntimeEvent};
use serde_json::{Value, json};

pub fn fixtures(language: &str) -> std::path::PathBuf {
    root().join("crates/runtime-api/tests/fixtures").join(language)
}

fn node(api: &Api, handler: &str) -> Process {
    Process::start(api, "node", &[root().join("runtimes/node/bootstrap.mjs")], &fixtures("node"), handler)
}

fn python(api: &Api, handler: &str) -> Process {
    Process::start(
        api,
        "python3",
        &[root().join("runtimes/python/bootstrap.py")],
        &fixtures("python"),
        handler,
    )
}

/// The function's answer to `event`: its result, or its error's payload.
pub async fn call(api: &mut Api, event: Value) -> Result<Value, Value> {
    let answer = api.invoke("an-id", event.to_string()).await;
    let parse = |body: bytes::Bytes| serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{body:?}"));
    answer.map(parse).map_err(|(_, body)| parse(body))
}

/// `errorType` and `errorMessage` of a failed call.
pub async fn error(api: &mut Api, event: Value) -> (String, String) {
    let payload = call(api, event).await.expect_err("an error");
    let text = |key: &str| payload[key].as_str().unwrap().to_owned();
    (text("errorType"), text("errorMessage"))
}

/// Up to Node 22 handlers may use callbacks; the tests of that are skipped, with words, on later ones.
fn has_callbacks(what: &str) -> bool {
    let version = std::process::Command::new("node").arg("--version").output().unwrap().stdout;
    let major: u32 = String::from_utf8(version).unwrap()[1..].split('.').next().unwrap().parse().unwrap();
    if major >= 24 {
        println!("skipped: {what}: Node {major} refuses callbacks");
    }
    major < 24
}

#[tokio::test]
async fn node_serves_and_survives() {
    let mut api = Api::start();
    let process = node(&api, "index.handler");
    for value in [json!({"k": [1, "é", null]}), json!(null), json!("text"), json!(0)] {
        assert_eq!(call(&mut api, json!({"op": "echo", "value": value})).await, Ok(value));
    }
    let large = "y".repeat(2_000_000);
    assert_eq!(call(&mut api, json!({"op": "echo", "value": large})).await, Ok(json!(large)));
    assert_eq!(call(&mut api, json!({"op": "nothing"})).await, Ok(json!(null)));
    let failed = call(&mut api, json!({"op": "throws"})).await.unwrap_err();
    assert_eq!((&failed["errorType"], &failed["errorMessage"]), (&json!("TypeError"), &json!("boom")));
    assert_eq!(failed["trace"][0], "TypeError: boom");
    assert_eq!(
        failed.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["errorMessage", "errorType", "trace"]
    );
    let check = async |api: &mut Api, op: &str, kind: &str, message: &str| {
        assert_eq!(error(api, json!({"op": op})).await, (kind.to_owned(), message.to_owned()));
    };
    check(&mut api, "throwsAtOnce", "RangeError", "at once").await;
    check(&mut api, "rejectsText", "string", "just text").await;
    check(&mut api, "circular", "Error", "Unable to stringify response body").await;
    let too_large = error(&mut api, json!({"op": "big", "value": MAX_PAYLOAD_BYTES + 1})).await;
    assert_eq!(too_large.0, "Function.ResponseSizeTooLarge");
    assert_eq!(call(&mut api, json!({"op": "big", "value": 3})).await, Ok(json!("xxx")));
    process.kill().await;
}

#[tokio::test]
async fn node_s_context_is_complete() {
    let mut api = Api::start();
    let process = node(&api, "index.handler");
    let mut event = invoke("an-id", "{\"op\":\"context\"}");
    event.client_context = Some("{\"custom\":{\"k\":\"é\"}}".to_owned());
    event.cognito_identity = Some("{\"cognitoIdentityId\":\"i\",\"cognitoIdentityPoolId\":\"p\"}".to_owned());
    let trace = event.trace_id.clone().unwrap();
    api.session.deliver(event).unwrap();
    api.ready().await;
    api.delivered("an-id").await;
    let context: Value = serde_json::from_slice(&api.answer("an-id").await.unwrap()).unwrap();
    for (key, value) in [
        ("awsRequestId", json!("an-id")),
        ("invokedFunctionArn", json!("arn:aws:lambda:us-east-1:123456789012:function:f")),
        ("functionName", json!("f")),
        ("functionVersion", json!("$LATEST")),
        ("memoryLimitInMB", json!("128")),
        ("logGroupName", json!("/aws/lambda/f")),
        ("logStreamName", json!("2026/11/20/[$LATEST]0")),
        ("identity", json!({"cognitoIdentityId": "i", "cognitoIdentityPoolId": "p"})),
        ("clientContext", json!({"custom": {"k": "é"}})),
        ("remaining", json!(true)),
        ("trace", json!(trace)),
    ] {
        assert_eq!(context[key], value, "{key}");
    }
    process.kill().await;
}

#[tokio::test]
async fn node_s_callbacks() {
    if !has_callbacks("node_s_callbacks") {
        return;
    }
    let mut api = Api::start();
    let process = node(&api, "index.handler");
    for (op, expect) in [
        ("callback", json!("v")),
        ("succeed", json!("v")),
        ("waits", json!({"waited": true})),
        ("doesNotWait", json!("at once")),
        ("forgets", json!(null)),
    ] {
        assert_eq!(call(&mut api, json!({"op": op, "value": "v"})).await, Ok(expect), "{op}");
    }
    assert_eq!(error(&mut api, json!({"op": "callbackError"})).await, ("Error".into(), "called back".into()));
    process.kill().await;
}

#[tokio::test]
async fn node_finds_handlers() {
    for (handler, expect) in [
        ("esm.handler", json!({"loaded": "function", "event": {}})),
        ("common.handler", json!("cjs")),
        ("dir/file.handler", json!("cjs")),
        ("dir/module/index.handler", json!("index.js")),
        ("index.nested.handler", json!("nested")),
    ] {
        let mut api = Api::start();
        let _process = node(&api, handler);
        assert_eq!(call(&mut api, json!({})).await, Ok(expect), "{handler}");
    }
}

#[tokio::test]
async fn node_s_init_errors() {
    let check = async |handler: &str, kind: &str, reported: &str, message: &str| {
        let mut api = Api::start();
        let process = node(&api, handler);
        let (error_type, payload) = api.init_error().await;
        assert_eq!((&*error_type, &payload["errorType"]), (reported, &json!(kind)), "{handler}");
        assert!(payload["errorMessage"].as_str().unwrap().starts_with(message), "{payload}");
        assert!(payload["trace"][0].as_str().unwrap().starts_with(&format!("{kind}: ")), "{payload}");
        let (code, printed) = process.end().await;
        assert_eq!(code, Some(129), "{handler}");
        assert!(printed.contains("\tundefined\tERROR\tUncaught Exception \t{\"errorType\":"), "{printed}");
    };
    let known = async |handler: &str, kind: &str, message: &str| check(handler, kind, kind, message).await;
    known(
        "nowhere.handler",
        "Runtime.ImportModuleError",
        "Error: Cannot find module 'nowhere'\nRequire stack:\n- ",
    )
    .await;
    known("missing.handler", "Runtime.ImportModuleError", "Error: Cannot find module 'no-such-package'")
        .await;
    known("syntax.handler", "Runtime.UserCodeSyntaxError", "SyntaxError: Unexpected token ';'").await;
    known("index.absent", "Runtime.HandlerNotFound", "index.absent is undefined or not exported").await;
    known("index.notAFunction", "Runtime.HandlerNotFound", "index.notAFunction is not a function").await;
    known("index", "Runtime.MalformedHandlerName", "Bad handler").await;
    known(
        "../index.handler",
        "Runtime.MalformedHandlerName",
        "'../index.handler' is not a valid handler name. ",
    )
    .await;
    check("throws.handler", "EvalError", "Runtime.Unknown", "at load").await;
}

#[tokio::test]
async fn node_dies_as_on_lambda() {
    let mut api = Api::start();
    let check = async |api: &mut Api, op: &str, kind: &str, message: &str, code: i32, logged: &str| {
        let process = node(api, "index.handler");
        assert_eq!(error(api, json!({"op": op})).await, (kind.to_owned(), message.to_owned()));
        let (exit, printed) = process.end().await;
        assert_eq!(exit, Some(code), "{op}");
        assert!(printed.contains(logged), "{printed}");
        api.session.reset();
    };
    check(&mut api, "uncaught", "Error", "later", 129, "\tan-id\tERROR\tUncaught Exception \t{").await;
    let kind = "Runtime.UnhandledPromiseRejection";
    check(&mut api, "rejection", kind, "Error: nobody cares", 128, "ERROR\tUnhandled Promise Rejection \t{")
        .await;
    let process = node(&api, "index.handler");
    api.session.deliver(invoke("an-id", "{\"op\":\"exit\"}")).unwrap();
    assert_eq!(process.end().await.0, Some(3));
    api.session.reset();
    while !matches!(api.event().await, RuntimeEvent::Delivered { .. }) {}
    let process = node(&api, "index.settlesNever");
    let (kind, message) = error(&mut api, json!({})).await;
    assert_eq!(kind, "Runtime.NodeJsExit");
    assert!(message.contains("never settled"), "{message}");
    process.kill().await;
}

#[tokio::test]
async fn node_s_log_is_lambda_s() {
    let mut api = Api::start();
    let process = node(&api, "index.handler");
    assert_eq!(call(&mut api, json!({"op": "log"})).await, Ok(json!(null)));
    let printed = process.kill().await;
    let lines: Vec<_> =
        printed.lines().map(|line| line.split_once('\t').map_or(line, |(_, rest)| rest)).collect();
    assert_eq!(
        lines,
        [
            "an-id\tINFO\ttwo\rlines 7",
            "an-id\tWARN\t{ a: 1 }",
            "an-id\tERROR\tbad",
            "an-id\tDEBUG\tfine",
            "raw"
        ]
    );
    let stamp = printed.split('\t').next().unwrap();
    assert!(stamp.len() == 24 && stamp.ends_with('Z') && stamp.as_bytes()[10] == b'T', "{stamp}");
}

#[tokio::test]
async fn python_serves_and_survives() {
    let mut api = Api::start();
    let process = python(&api, "app.handler");
    for value in [json!({"k": [1, "é", null]}), json!(null), json!("text"), json!(0)] {
        assert_eq!(call(&mut api, json!({"op": "echo", "value": value})).await, Ok(value));
    }
    let large = "y".repeat(2_000_000);
    assert_eq!(call(&mut api, json!({"op": "echo", "value": large})).await, Ok(json!(large)));
    assert_eq!(call(&mut api, json!({"op": "nothing"})).await, Ok(json!(null)));
    assert_eq!(call(&mut api, json!({"op": "numbers"})).await, Ok(json!([3, 19.99])));
    let failed = call(&mut api, json!({"op": "throws"})).await.unwrap_err();
    assert_eq!(
        failed.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["errorMessage", "errorType", "requestId", "stackTrace"]
    );
    assert_eq!((&failed["errorType"], &failed["requestId"]), (&json!("ValueError"), &json!("an-id")));
    let first = failed["stackTrace"][0].as_str().unwrap();
    assert!(first.contains("app.py\", line ") && first.contains(", in handler\n"), "{first}");
    let (kind, message) = error(&mut api, json!({"op": "unserialisable"})).await;
    assert_eq!(kind, "Runtime.MarshalError");
    assert_eq!(message, "Unable to marshal response: Object of type object is not JSON serializable");
    let too_large = error(&mut api, json!({"op": "big", "value": MAX_PAYLOAD_BYTES + 1})).await;
    assert_eq!(too_large.0, "Function.ResponseSizeTooLarge");
    assert_eq!(api.invoke("an-id", "{\"op\":\"raw\"}").await, Ok("raw bytes".into()));
    let (_, body) = api.invoke("an-id", "not json").await.unwrap_err();
    assert!(String::from_utf8_lossy(&body).contains("\"errorType\": \"Runtime.UnmarshalError\""), "{body:?}");
    process.kill().await;
}

#[tokio::test]
async fn python_s_context_is_complete() {
    let mut api = Api::start();
    let process = python(&api, "app.handler");
    let mut event = invoke("an-id", "{\"op\":\"context\"}");
    event.client_context = Some("{\"custom\":{\"k\":\"é\"},\"client\":{\"app_title\":\"t\"}}".to_owned());
    event.cognito_identity = Some("{\"cognitoIdentityId\":\"i\",\"cognitoIdentityPoolId\":\"p\"}".to_owned());
    let trace = event.trace_id.clone().unwrap();
    api.session.deliver(event).unwrap();
    api.ready().await;
    api.delivered("an-id").await;
    let context: Value = serde_json::from_slice(&api.answer("an-id").await.unwrap()).unwrap();
    for (key, value) in [
        ("aws_request_id", json!("an-id")),
        ("invoked_function_arn", json!("arn:aws:lambda:us-east-1:123456789012:function:f")),
        ("function_name", json!("f")),
        ("function_version", json!("$LATEST")),
        ("memory_limit_in_mb", json!("128")),
        ("log_group_name", json!("/aws/lambda/f")),
        ("log_stream_name", json!("2026/11/20/[$LATEST]0")),
        ("identity", json!("i")),
        ("custom", json!({"k": "é"})),
        ("app_title", json!("t")),
        ("remaining", json!(true)),
        ("trace", json!(trace)),
    ] {
        assert_eq!(context[key], value, "{key}");
    }
    assert_eq!(context["path"][0], fixtures("python").to_str().unwrap());
    assert_eq!(context["path"][2], "/opt/python");
    process.kill().await;
}

#[tokio::test]
async fn python_finds_handlers_and_reports_init_errors() {
    for handler in ["pkg/mod.fn", "pkg.mod.fn"] {
        let mut api = Api::start();
        let _process = python(&api, handler);
        assert_eq!(call(&mut api, json!({})).await, Ok(json!("nested")));
    }
    let check = async |handler: &str, kind: &str, reported: &str, message: &str| {
        let mut api = Api::start();
        let process = python(&api, handler);
        let (error_type, payload) = api.init_error().await;
        assert_eq!((&*error_type, &payload["errorType"]), (reported, &json!(kind)), "{handler}");
        assert!(payload["errorMessage"].as_str().unwrap().starts_with(message), "{payload}");
        assert_eq!(payload["requestId"], "");
        let (code, printed) = process.end().await;
        assert_eq!(code, Some(1), "{handler}");
        assert!(printed.starts_with(&format!("[ERROR] {kind}: {message}")), "{printed}");
        assert_eq!(printed.lines().count(), 1, "one event: {printed}");
    };
    let known = async |handler: &str, kind: &str, message: &str| check(handler, kind, kind, message).await;
    let import = "Runtime.ImportModuleError";
    known("nowhere.handler", import, "Unable to import module 'nowhere': No module named 'nowhere'").await;
    known("missing.handler", import, "Unable to import module 'missing': No module named 'no_such_package'")
        .await;
    known("syntax.handler", "Runtime.UserCodeSyntaxError", "Syntax error in module 'syntax': invalid syntax")
        .await;
    known("app.absent", "Runtime.HandlerNotFound", "Handler 'absent' missing on module 'app'").await;
    known("app", "Runtime.MalformedHandlerName", "Bad handler 'app': not enough values to unpack").await;
    known("sys.exit", "Runtime.BuiltInModuleConflict", "Cannot use built-in module sys as a handler module")
        .await;
    check("throws.handler", "KeyError", "Runtime.Unknown", "'at load'").await;
}

#[tokio::test]
async fn python_s_log_is_lambda_s_and_exits_are_exits() {
    let mut api = Api::start();
    let process = python(&api, "app.handler");
    assert_eq!(call(&mut api, json!({"op": "log"})).await, Ok(json!(null)));
    assert_eq!(error(&mut api, json!({"op": "throws"})).await, ("ValueError".into(), "boom".into()));
    api.session.deliver(invoke("an-id", "{\"op\":\"leaves\"}")).unwrap();
    let (code, printed) = process.end().await;
    assert_eq!(code, Some(7));
    let lines: Vec<_> = printed.lines().collect();
    assert!(lines[0].starts_with("[INFO]\t20") && lines[0].ends_with("Z\tan-id\thello world"), "{printed}");
    assert_eq!(lines[1], "printed");
    assert!(lines[2].ends_with("Z\tan-id\ttwo") && lines[3] == "lines", "{printed}");
    assert!(
        lines[4]
            .starts_with("[ERROR] ValueError: boom\rTraceback (most recent call last):\r\u{a0}\u{a0}File \""),
        "{printed}"
    );
    assert_eq!(lines[5], "leaving");
}

#[tokio::test]
async fn a_shell_script_is_a_runtime() {
    let mut api = Api::start();
    let code = root().join("functions/hello-provided");
    let process = Process::start::<&str>(&api, code.join("bootstrap").to_str().unwrap(), &[], &code, "any");
    for _ in 0..3 {
        assert_eq!(call(&mut api, json!({})).await, Ok(json!({"statusCode": 200, "body": "hello"})));
    }
    process.kill().await;
}

/// Invokes with a caller that takes a stream: chunks put together, and how it ended.
async fn stream(api: &mut Api, event: Value) -> (Option<String>, Vec<u8>, Result<u64, (String, Value)>) {
    let invoke = danki_runtime_api::Invoke { stream: true, ..invoke("an-id", event.to_string()) };
    api.session.deliver(invoke).unwrap();
    let (mut content_type, mut body) = (None, Vec::new());
    loop {
        match api.event().await {
            RuntimeEvent::StreamBegun { content_type: kind, mut chunks, .. } => {
                content_type = kind;
                while let Some(chunk) = chunks.recv().await {
                    body.extend_from_slice(&chunk);
                }
            }
            RuntimeEvent::Response { streaming: Some(streaming), .. } => {
                return (content_type, body, Ok(streaming.bytes));
            }
            RuntimeEvent::Error { error_type, body: payload, .. } => {
                return (content_type, body, Err((error_type, serde_json::from_slice(&payload).unwrap())));
            }
            RuntimeEvent::NextRequested { .. } | RuntimeEvent::Delivered { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn node_streams() {
    let mut api = Api::start();
    let process = node(&api, "streams.handler");
    let (kind, body, end) = stream(&mut api, json!({"op": "text"})).await;
    assert_eq!((kind.as_deref(), &body[..], end), (Some("text/plain"), &b"hello an-id"[..], Ok(11)));
    let (kind, body, _) = stream(&mut api, json!({"op": "http"})).await;
    assert_eq!(kind.as_deref(), Some("application/vnd.awslambda.http-integration-response"));
    assert_eq!(body, b"{\"statusCode\":201,\"headers\":{\"a\":\"b\"}}\0\0\0\0\0\0\0\0body");
    let (kind, body, end) = stream(&mut api, json!({"op": "nothing"})).await;
    assert_eq!((kind.as_deref(), body.len(), end), (Some("application/octet-stream"), 0, Ok(0)));
    let (_, body, end) = stream(&mut api, json!({"op": "big"})).await;
    assert_eq!((body.len(), end), (1_000_000, Ok(1_000_000)));
    let (_, _, end) = stream(&mut api, json!({"op": "throws"})).await;
    let (_, payload) = end.unwrap_err();
    assert_eq!((&payload["errorType"], &payload["errorMessage"]), (&json!("TypeError"), &json!("before")));
    let (_, body, end) = stream(&mut api, json!({"op": "breaks"})).await;
    let (error_type, payload) = end.unwrap_err();
    assert_eq!((&body[..], error_type.as_str()), (&b"some"[..], "Runtime.Unknown"));
    assert_eq!((&payload["errorType"], &payload["errorMessage"]), (&json!("TypeError"), &json!("within")));
    // A caller that takes its answer whole gets it whole.
    let answer = api.invoke("an-id", "{\"op\":\"text\"}").await;
    assert_eq!(answer, Ok("hello an-id".into()));
    process.kill().await;
}

/// What a runtime prints in JSON format, without timestamps.
fn records(printed: &str) -> Vec<Value> {
    let parse = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?}"));
        assert!(record["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
        record.as_object_mut().unwrap().remove("timestamp");
        record
    };
    printed.lines().map(parse).collect()
}

const JSON_LOG: [(&str, &str); 2] = [("AWS_LAMBDA_LOG_FORMAT", "JSON"), ("AWS_LAMBDA_LOG_LEVEL", "INFO")];

#[tokio::test]
async fn node_logs_in_json() {
    let mut api = Api::start();
    let bootstrap = root().join("runtimes/node/bootstrap.mjs");
    let process = Process::with(&api, "node", &[bootstrap], &fixtures("node"), "logs.handler", &JSON_LOG);
    assert_eq!(call(&mut api, json!({})).await, Ok(json!(null)));
    let printed = records(&process.kill().await);
    let level = |n: usize| printed[n]["level"].as_str().unwrap();
    assert_eq!([level(0), level(1), level(2), level(3)], ["INFO", "INFO", "WARN", "ERROR"]);
    assert!(printed.iter().all(|record| record["requestId"] == "an-id"), "{printed:#?}");
    assert_eq!((&printed[0]["message"], &printed[1]["message"]), (&json!("2 things"), &json!({"a": [1]})));
    assert_eq!(
        (&printed[2]["errorType"], &printed[2]["errorMessage"]),
        (&json!("RangeError"), &json!("boom"))
    );
    assert_eq!(printed[3]["message"]["errorMessage"], "alone");
    assert_eq!(printed.len(), 4);
}

#[tokio::test]
async fn python_logs_in_json() {
    let mut api = Api::start();
    let bootstrap = root().join("runtimes/python/bootstrap.py");
    let process =
        Process::with(&api, "python3", &[bootstrap], &fixtures("python"), "logs.handler", &JSON_LOG);
    assert_eq!(error(&mut api, json!({})).await.0, "KeyError");
    let printed = records(&process.kill().await);
    let expect =
        json!({"level": "INFO", "message": "2 things", "logger": "mine", "a": [1], "requestId": "an-id"});
    assert_eq!(printed[0], expect);
    assert_eq!((&printed[1]["level"], &printed[1]["message"]), (&json!("ERROR"), &json!("careful")));
    assert_eq!(
        (&printed[1]["errorType"], &printed[1]["errorMessage"]),
        (&json!("ValueError"), &json!("boom"))
    );
    assert!(printed[1]["location"].as_str().unwrap().contains("logs.py:handler:"), "{}", printed[1]);
    assert_eq!((&printed[2]["log_level"], &printed[2]["errorType"]), (&json!("ERROR"), &json!("KeyError")));
    assert_eq!(printed.len(), 3);
}
