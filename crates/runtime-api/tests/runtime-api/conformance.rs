//! AWS's own runtime clients, unmodified, against the session. `conformance/install` installs them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests: clippy sees only the tests themselves"
)]

use crate::common::process::{Process, root};
use crate::common::{Api, counting};
use danki_runtime_api::{MAX_PAYLOAD_BYTES, RuntimeEvent};
use serde_json::{Value, json};
use std::path::PathBuf;

const ARN: &str = "arn:aws:lambda:us-east-1:123456789012:function:f";

/// Where `conformance/install` puts a client; `None`, with words, if it is not there.
fn installed(client: &str) -> Option<PathBuf> {
    let folder = root().join("target/conformance").join(client);
    if !folder.join("installed").exists() {
        println!("skipped: {client}: not installed, see conformance/README.md");
        return None;
    }
    Some(folder)
}

fn sources(client: &str) -> PathBuf {
    root().join("conformance").join(client)
}

fn python(api: &Api, installed: &std::path::Path, handler: &str) -> Process {
    let path = format!("PYTHONPATH={}:{}", installed.display(), sources("python").display());
    Process::start(
        api,
        "env",
        &[&path, "python3", "-m", "awslambdaric", handler],
        &sources("python"),
        handler,
    )
}

fn node(api: &Api, installed: &std::path::Path, handler: &str) -> Process {
    let client = installed.join("node_modules/aws-lambda-ric/index.mjs");
    Process::start(api, "node", &[client], &sources("node"), handler)
}

/// The function's result, or its error's payload.
async fn call(api: &mut Api, id: &str, event: Value) -> Result<Value, Value> {
    let parse = |body: bytes::Bytes| serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{body:?}"));
    api.invoke(id, event.to_string()).await.map(parse).map_err(|(_, body)| parse(body))
}

/// Everything that all clients must do, on connections that they keep.
async fn serves(api: &mut Api, connections: &counting::Count, at_most: usize, error_type: &str) {
    assert_eq!(call(api, "first", json!({"op": "echo", "value": {"k": "é"}})).await, Ok(json!({"k": "é"})));
    let failed = call(api, "second", json!({"op": "fail"})).await.unwrap_err();
    assert_eq!(
        (&failed["errorType"], &failed["errorMessage"]),
        (&json!(error_type), &json!("boom")),
        "{failed}"
    );
    let context = call(api, "third", json!({"op": "context"})).await;
    assert_eq!(context, Ok(json!({"id": "third", "arn": ARN})));
    let large = "x".repeat(1_000_000);
    assert_eq!(call(api, "fourth", json!({"op": "echo", "value": large})).await, Ok(json!(large)));
    assert_eq!(call(api, "fifth", json!({"op": "echo", "value": null})).await, Ok(json!(null)));
    for n in 0..20 {
        assert_eq!(call(api, &format!("warm-{n}"), json!({"op": "echo", "value": n})).await, Ok(json!(n)));
    }
    assert!((1..=at_most).contains(&connections.get()), "{} connections, not kept", connections.get());
}

/// A response over the limit is the platform's error, for whatever the client makes of the 413.
async fn too_large(api: &mut Api) {
    let half = "x".repeat(MAX_PAYLOAD_BYTES / 2);
    let failed = call(api, "large", json!({"op": "twice", "value": half})).await.unwrap_err();
    assert_eq!(failed["errorType"], "Function.ResponseSizeTooLarge");
}

async fn survives(api: &mut Api) {
    assert_eq!(call(api, "after", json!({"op": "echo", "value": 1})).await, Ok(json!(1)));
}

#[tokio::test]
async fn awslambdaric() {
    let Some(folder) = installed("python") else { return };
    let (mut api, connections) = counting::start().await;
    let process = python(&api, &folder, "app.handler");
    serves(&mut api, &connections, 1, "ValueError").await;
    too_large(&mut api).await;
    assert_eq!(process.end().await.0, Some(1), "this client ends its process at a 413");
    let mut api = Api::start();
    let process = python(&api, &folder, "nowhere.handler");
    let (reported, payload) = api.init_error().await;
    assert_eq!(
        (&*reported, &payload["errorType"]),
        ("Runtime.ImportModuleError", &json!("Runtime.ImportModuleError"))
    );
    assert_eq!(process.end().await.0, Some(1));
}

#[tokio::test]
async fn aws_lambda_ric() {
    let Some(folder) = installed("node") else { return };
    let (mut api, connections) = counting::start().await;
    let process = node(&api, &folder, "index.handler");
    // Its native client has one connection per thread: libuv's four that wait in /next, and the main one that posts.
    serves(&mut api, &connections, 5, "TypeError").await;
    too_large(&mut api).await;
    survives(&mut api).await;
    process.kill().await;
    let mut api = Api::start();
    let process = node(&api, &folder, "nowhere.handler");
    let (reported, _) = api.init_error().await;
    assert_eq!(reported, "Runtime.ImportModuleError");
    assert_ne!(process.end().await.0, Some(0));
}

#[tokio::test]
async fn aws_lambda_ric_streaming() {
    let Some(folder) = installed("node") else { return };
    let mut api = Api::start();
    let _process = node(&api, &folder, "index.streaming");
    api.session.deliver(crate::common::invoke("a", "{}")).unwrap();
    api.ready().await;
    api.delivered("a").await;
    match api.event().await {
        RuntimeEvent::Response { body, streaming, .. } => {
            let prelude = streaming.expect("streaming mode").prelude.expect("a prelude");
            assert_eq!(serde_json::from_slice::<Value>(&prelude).unwrap()["statusCode"], 201);
            assert!(body.ends_with(b"first second"), "{body:?}");
        }
        other => panic!("{other:?}"),
    }
    let (_, payload) = api.invoke("b", "{\"op\":\"fail\"}").await.unwrap_err();
    let payload: Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!((&payload["errorType"], &payload["errorMessage"]), (&json!("TypeError"), &json!("half-way")));
}

#[tokio::test]
async fn aws_lambda_go() {
    let Some(folder) = installed("go") else { return };
    let (mut api, connections) = counting::start().await;
    let process = Process::start::<&str>(&api, folder.join("handler").to_str().unwrap(), &[], &folder, "x");
    serves(&mut api, &connections, 1, "errorString").await;
    // This client streams readers without saying `streaming`: for a buffered call AWS ignores its trailers, too.
    assert_eq!(api.invoke("stream", "{\"op\":\"stream\"}").await, Ok("first ".into()));
    too_large(&mut api).await;
    assert_eq!(process.end().await.0, Some(1), "this client ends its process at a 413");
}

#[tokio::test]
async fn lambda_runtime() {
    let Some(folder) = installed("rust") else { return };
    let (mut api, connections) = counting::start().await;
    let program = folder.join("debug/conformance");
    let process = Process::start::<&str>(&api, program.to_str().unwrap(), &[], &folder, "x");
    serves(
        &mut api,
        &connections,
        1,
        "&alloc::boxed::Box<dyn core::error::Error + core::marker::Send + core::marker::Sync>",
    )
    .await;
    too_large(&mut api).await;
    survives(&mut api).await;
    process.kill().await;
}
