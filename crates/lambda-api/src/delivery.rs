//! Where the end of an asynchronous event is told: a destination, a dead letter target, both functions or files.
//!
//! danki has no SQS, SNS, EventBridge or S3 to deliver to. What was meant for one of them is appended to a file named after it, so that
//! nothing is lost and a test can read it.

use crate::api::{Api, now_ms};
use crate::arn;
use crate::asynchronous::{self, Event};
use crate::ops::invoke::EVENT_BYTES;
use crate::store::{EventInvoke, LATEST};
use danki_host::Outcome;
use danki_model::RequestId;
use danki_model::metrics::Metric;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How an event ended.
pub enum Ended {
    Succeeded {
        outcome: Box<Outcome>,
        attempts: u32,
    },
    Exhausted {
        outcome: Box<Outcome>,
        attempts: u32,
    },
    TooOld {
        attempts: u32,
    },
    /// Reserved concurrency is zero: it was never tried.
    Zero,
    /// The function was deleted meanwhile.
    Gone,
}

/// Longest error message of a dead letter's attributes (§7.4: the first KB).
const MESSAGE_BYTES: usize = 1_024;

/// Tells destination and dead letter target.
pub fn deliver(api: &Arc<Api>, event: &Event, ended: &Ended) {
    let (settings, dead_letter) = targets(api, event);
    let destination = match ended {
        Ended::Succeeded { .. } => settings.on_success,
        Ended::Gone => None,
        _ => settings.on_failure,
    };
    if let Some(target) = destination {
        let record = record(api, event, ended);
        let sent = send(api, event, &target, &record.to_string(), &record);
        failed_to_send(api, event, sent, Metric::DestinationDeliveryFailures);
    }
    let failed = !matches!(ended, Ended::Succeeded { .. } | Ended::Gone);
    if let Some(target) = dead_letter.filter(|_| failed) {
        let letter = letter(event, ended);
        let sent = send(api, event, &target, &String::from_utf8_lossy(&event.payload), &letter);
        failed_to_send(api, event, sent, Metric::DeadLetterErrors);
    }
}

fn targets(api: &Arc<Api>, event: &Event) -> (EventInvoke, Option<String>) {
    let account = api.account();
    let Some(function) = account.functions.get(&event.function) else { return Default::default() };
    let qualifier = event.qualifier.as_deref().unwrap_or(LATEST);
    let dead_letter = function.resolve(qualifier).and_then(|v| v.configuration.dead_letter.clone());
    (function.event_invoke.get(qualifier).cloned().unwrap_or_default(), dead_letter)
}

/// To a function as its event, or to a file as a line. Err says why not.
fn send(api: &Arc<Api>, event: &Event, target: &str, payload: &str, line: &Value) -> Result<(), String> {
    let function = target.contains(":function:").then(|| arn::function_name(target).ok()).flatten();
    if let Some(function) = function {
        if payload.len() > EVENT_BYTES {
            return Err(format!(
                "{target}: the record has {} bytes, more than an event may have",
                payload.len()
            ));
        }
        let next = Event {
            id: RequestId(api.uuid()),
            function: function.name,
            qualifier: function.qualifier,
            payload: payload.to_owned().into(),
            client_context: None,
            trace_id: event.trace_id.clone(),
            chain: event.chain + 1,
        };
        return asynchronous::accept(api, next).map_err(|fault| format!("{target}: {}", fault.message));
    }
    let path = file(&api.queue.files, target);
    append(&path, line).map_err(|error| format!("{target}: {}: {error}", path.display()))
}

fn failed_to_send(api: &Arc<Api>, event: &Event, sent: Result<(), String>, metric: Metric) {
    if let Err(why) = sent {
        event.count(api, metric, 1.0);
        api.logs.take("/danki", "destinations", now_ms(), &format!("cannot deliver to {why}"));
    }
}

/// `file:/a/path` is that file; any other target is a file of its name.
fn file(dir: &Path, target: &str) -> PathBuf {
    if let Some(path) = target.strip_prefix("file:") {
        return PathBuf::from(path);
    }
    let legal = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = target.chars().map(legal).take(200).collect();
    dir.join(format!("{name}.jsonl"))
}

fn append(path: &Path, line: &Value) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// The record that a destination gets.
fn record(api: &Arc<Api>, event: &Event, ended: &Ended) -> Value {
    let (condition, attempts, outcome) = match ended {
        Ended::Succeeded { outcome, attempts } => ("Success", *attempts, Some(outcome)),
        Ended::Exhausted { outcome, attempts } => ("RetriesExhausted", *attempts, Some(outcome)),
        Ended::TooOld { attempts } => ("EventAgeExceeded", *attempts, None),
        Ended::Zero | Ended::Gone => ("ZeroReservedConcurrency", 0, None),
    };
    let qualifier = event.qualifier.as_deref().unwrap_or(LATEST);
    let mut record = json!({
        "version": "1.0",
        "timestamp": danki_model::time::iso(now_ms()),
        "requestContext": {
            "requestId": event.id.0,
            "functionArn": arn::function(api.region(), &event.function, Some(qualifier)),
            "condition": condition,
            "approximateInvokeCount": attempts,
        },
        "requestPayload": parsed(&event.payload),
    });
    if let Some(outcome) = outcome {
        let version = api
            .account()
            .functions
            .get(&event.function)
            .and_then(|f| Some(f.resolve(qualifier)?.number.clone()));
        let mut context = json!({ "statusCode": 200, "executedVersion": version });
        if let Some(error) = &outcome.function_error {
            context["functionError"] = error.clone().into();
        }
        record["responseContext"] = context;
        record["responsePayload"] = parsed(&outcome.payload);
    }
    record
}

/// What a queue would get: the event as its body, and attributes.
fn letter(event: &Event, ended: &Ended) -> Value {
    let (code, message) = match ended {
        Ended::Exhausted { outcome, .. } => (200, error_message(&outcome.payload)),
        Ended::TooOld { .. } => (429, "Event age exceeded".to_owned()),
        _ => (429, "Rate Exceeded.".to_owned()),
    };
    json!({
        "body": String::from_utf8_lossy(&event.payload),
        "attributes": { "RequestID": event.id.0, "ErrorCode": code.to_string(), "ErrorMessage": message },
    })
}

fn error_message(payload: &[u8]) -> String {
    let said = parsed(payload)["errorMessage"].as_str().map(str::to_owned);
    said.unwrap_or_default().chars().take(MESSAGE_BYTES).collect()
}

/// A payload as JSON; what is none becomes a string.
fn parsed(payload: &[u8]) -> Value {
    serde_json::from_slice(payload).unwrap_or_else(|_| String::from_utf8_lossy(payload).into_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_file_of_its_name() {
        let dir = Path::new("/state");
        assert_eq!(file(dir, "file:/tmp/x"), Path::new("/tmp/x"));
        let queue = file(dir, "arn:aws:sqs:us-east-1:123456789012:../dead");
        assert_eq!(queue, Path::new("/state/arn_aws_sqs_us-east-1_123456789012_.._dead.jsonl"));
    }
}
