//! X-Ray's SDKs for Python and Node, unmodified, against the daemon beside the env: what they send becomes one trace with Lambda's own segments.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]
#![allow(clippy::print_stdout, reason = "`make test` counts the lines that begin with `skipped:`")]

use danki_model::FunctionSpec;
use danki_record::Event;
use danki_region::SecretsManager;
use danki_testkit::{Lab, Settings, eventually, function, repository, skipped};
use danki_xray::{Entity, Run, Trace, traces};
use serde_json::json;
use std::time::Duration;

fn settings() -> Settings {
    let secretsmanager: SecretsManager = serde_json::from_value(json!({
        "endpoint": { "service_time": { "constant_ms": 1.0 }, "kms_time": { "constant_ms": 0.0 } },
        "secrets": [{ "name": "lambda/extension/test", "value": "s" }],
    }))
    .unwrap();
    Settings { secretsmanager: Some(secretsmanager), xray_sampling: Some(1.0), ..Settings::default() }
}

/// The sample function with its dependencies; none if they were not installed.
fn sample(folder: &str, installed: &str, handler: &str, like: &str) -> Option<FunctionSpec> {
    let code = repository().join("functions").join(folder).canonicalize().unwrap();
    let dependencies = code.join(installed);
    if !dependencies.exists() {
        println!("skipped: X-Ray's SDK in {folder}: not installed; `make functions` does that");
        return None;
    }
    let layers = if installed == ".deps" { vec![dependencies] } else { Vec::new() };
    let mut spec = function(like).unwrap();
    (spec.code, spec.layers, spec.handler, spec.timeout_ms) = (code, layers, handler.to_owned(), 30_000);
    spec.memory = danki_model::MemoryMb::try_from(1_769).unwrap();
    Some(spec)
}

/// Invokes once and reads the one trace there is.
fn one_trace(name: &str, spec: FunctionSpec, event: &serde_json::Value) -> Trace {
    let lab = Lab::start(name, settings()).unwrap();
    let reply = lab.deploy(spec).unwrap().invoke(event).unwrap();
    assert_eq!(reply.function_error, None, "{:?}", reply.payload);
    // The last datagrams are in flight when the response is posted.
    assert!(eventually(Duration::from_secs(5), || read(&lab.events()).entities.len() > 6));
    // A connection is a fact when it ends, at the latest with its env.
    let recorded = lab.stop().unwrap();
    assert_eq!(recorded.left, Vec::<String>::new());
    read(&recorded.events)
}

fn read(events: &[Event]) -> Trace {
    traces(&Run { events, epoch_offset_ns: danki_sys::clock::epoch_offset_ns() }).remove(0)
}

fn named<'a>(trace: &'a Trace, name: &str) -> Vec<&'a Entity> {
    trace.entities.iter().filter(|e| e.name == name).collect()
}

#[test]
fn python_s_sdk_with_everything_patched() {
    if skipped("X-Ray's SDK for Python") {
        return;
    }
    let Some(spec) = sample("secrets-extension-python", ".deps", "direct.handler", "hello-python") else {
        return;
    };
    let trace = one_trace("xray-python", spec, &json!({ "direct_calls": 2 }));
    let calls = named(&trace, "secretsmanager");
    assert_eq!(calls.len(), 3, "a miss and two more: {:?}", trace.entities);
    let invocation = &named(&trace, "Invocation")[0].id;
    for call in calls {
        assert_eq!((call.parent.as_ref(), call.namespace.as_deref()), (Some(invocation), Some("aws")));
        assert_eq!(call.details["aws"]["operation"], "GetSecretValue");
    }
    assert_eq!(named(&trace, "tls handshake").len(), 1, "danki's own view lies inside");
    assert!(trace.sampled);
}

#[test]
fn node_s_sdk_with_a_segment_of_its_own() {
    if skipped("X-Ray's SDK for Node") {
        return;
    }
    let Some(spec) = sample("xray-node", "node_modules", "index.handler", "hello-node") else { return };
    let trace = one_trace("xray-node", spec, &json!({ "secret": "lambda/extension/test" }));
    let work = named(&trace, "work")[0];
    assert_eq!(work.parent.as_ref(), Some(&named(&trace, "Invocation")[0].id));
    assert_eq!(work.details["annotations"]["secret"], "lambda/extension/test");
    let call = trace.entities.iter().find(|e| e.parent.as_ref() == Some(&work.id)).expect("the call");
    assert_eq!(
        (call.namespace.as_deref(), &call.details["http"]["response"]["status"]),
        (Some("remote"), &json!(200))
    );
}
