//! Bodies and errors captured from AWS's extension (November 2022, published in github.com/fedonev/lambda-params-secrets,
//! `data/test-responses.json`, MIT; the values are its authors' dummies). Each is what ours must answer, byte for byte, from what the
//! service sends for it.

use crate::support::{Call, Reply, Running, Upstream};
use serde_json::{Value, json};

fn captured() -> Vec<(String, Value)> {
    let all: serde_json::Map<String, Value> =
        serde_json::from_str(include_str!("../fixtures/captured.json")).expect("JSON");
    all.into_iter().collect()
}

/// What the service sends: no nulls, dates in seconds.
fn as_sent(captured: &Value) -> Value {
    let mut sent = serde_json::Map::new();
    for (name, value) in captured.as_object().expect("an object") {
        match (name.as_str(), value) {
            (_, Value::Null) | ("ResultMetadata", _) => {}
            ("CreatedDate" | "LastModifiedDate", date) => {
                sent.insert(name.clone(), json!(seconds(date.as_str().expect("text"))));
            }
            (_, Value::Object(_)) => {
                sent.insert(name.clone(), as_sent(value));
            }
            _ => {
                sent.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(sent)
}

/// All captures are of one morning.
fn seconds(date: &str) -> f64 {
    let clock =
        date.strip_prefix("2022-11-16T").and_then(|rest| rest.strip_suffix('Z')).expect("that morning");
    let parts: Vec<f64> = clock.split(':').map(|part| part.parse().expect("a number")).collect();
    1_668_556_800.0 + parts[0] * 3600.0 + parts[1] * 60.0 + parts[2]
}

/// JSON as one line with its keys in the order of the file, which is the captured one.
fn compact(target: &str, value: &Value) -> String {
    let order: &[&str] = if target.starts_with("/secretsmanager") {
        &["ARN", "CreatedDate", "Name", "SecretBinary", "SecretString", "VersionId", "VersionStages"]
    } else {
        &[
            "ARN",
            "DataType",
            "LastModifiedDate",
            "Name",
            "Selector",
            "SourceResult",
            "Type",
            "Value",
            "Version",
        ]
    };
    let inner = if target.starts_with("/secretsmanager") { value } else { &value["Parameter"] };
    let members: Vec<String> = order.iter().map(|name| format!("\"{name}\":{}", inner[name])).collect();
    let members = members.join(",");
    if target.starts_with("/secretsmanager") {
        format!("{{{members},\"ResultMetadata\":{{}}}}")
    } else {
        format!("{{\"Parameter\":{{{members}}},\"ResultMetadata\":{{}}}}")
    }
}

/// Finds the capture that a call is for, by what the call asks.
fn find(call: &Call, all: &[(String, Value)]) -> Option<Value> {
    let text = |name: &str| call.body[name].as_str().map(str::to_owned);
    let target = if call.operation() == "GetSecretValue" {
        let mut target = format!("/secretsmanager/get?secretId={}", text("SecretId")?);
        for (field, query) in [("VersionStage", "versionStage"), ("VersionId", "versionId")] {
            target += &text(field).map(|value| format!("&{query}={value}")).unwrap_or_default();
        }
        target
    } else {
        let name = text("Name")?;
        let (name, selector) =
            name.split_once(':').map_or((name.as_str(), None), |(name, selector)| (name, Some(selector)));
        let kind = if selector.is_some_and(|selector| selector.parse::<u32>().is_ok()) {
            "version"
        } else {
            "label"
        };
        let selector = selector.map(|selector| format!("&{kind}={selector}")).unwrap_or_default();
        let decrypt = if call.body["WithDecryption"] == json!(true) { "&withDecryption=true" } else { "" };
        format!("/systemsmanager/parameters/get?name={}{selector}{decrypt}", name.replace('/', "%2F"))
    };
    all.iter()
        .find(|(known, value)| *known == target && value.get("error").is_none())
        .map(|(_, value)| as_sent(value))
}

#[test]
fn captured_bodies_and_errors_are_answered_byte_for_byte() {
    let all = captured();
    let known = all.clone();
    let upstream = Upstream::start(move |call| match find(call, &known) {
        Some(value) => Reply::Json(200, value.to_string()),
        None => Reply::refusal(400, "ResourceNotFoundException"),
    });
    let running = Running::start(&upstream.url, &[]);
    let (mut bodies, mut errors) = (0, 0);
    for (target, value) in &all {
        // The first request fetches, the second is a hit, and the paths are forgiving.
        for form in [
            target.clone(),
            target.clone(),
            format!("/{target}"),
            target.replace("/get?", "/get/?").replace("%2F", "/"),
        ] {
            let answer = running.get(&form);
            match value.get("error").and_then(Value::as_str) {
                None => {
                    assert!(answer.is(200, &compact(target, value)), "{form}: {answer:?}");
                    bodies += 1;
                }
                Some(error) => {
                    assert_eq!(format!("{} Bad Request: {}", answer.status, answer.body), error, "{form}");
                    errors += 1;
                }
            }
        }
    }
    assert_eq!((bodies, errors), (4 * 14, 4 * 3));
    // A value is fetched once; an error each time, as nothing about it is remembered.
    assert_eq!(upstream.count(), 14 + 4 * 3);
}
