//! OpenTelemetry's JSON: one `ExportTraceServiceRequest`, as the protocol's JSON mapping writes it (ids in hex, 64-bit numbers as text,
//! enums as numbers). X-Ray's and OpenTelemetry's ids are equally wide, so an id is the same in both but for the dashes.

use crate::document::{Entity, Outcome};
use crate::trace::Trace;
use serde_json::{Value, json};

/// Spans in one file; what is beyond is left out and said to be.
const MAX_SPANS: usize = 100_000;

/// `SpanKind` of the protocol.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const CLIENT: u8 = 3;

/// The traces as one request. Spans that did not fit are counted in the resource's `danki.spans_left_out`.
pub fn otlp(traces: &[Trace], run: &str, version: &str) -> Value {
    let all = || traces.iter().flat_map(|trace| trace.entities.iter().map(move |entity| (trace, entity)));
    let spans: Vec<Value> = all().take(MAX_SPANS).map(|(trace, entity)| span(trace, entity)).collect();
    let left_out = all().count() - spans.len();
    let resource = [("service.name", run), ("cloud.provider", "aws"), ("cloud.platform", "aws_lambda")];
    let mut resource: Vec<Value> =
        resource.iter().map(|(key, value)| attribute(key, &json!(value))).collect();
    if left_out > 0 {
        resource.push(attribute("danki.spans_left_out", &json!(left_out)));
    }
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": { "name": "danki", "version": version }, "spans": spans }],
    }]})
}

fn span(trace: &Trace, entity: &Entity) -> Value {
    let kind = match (entity.origin.as_deref(), entity.namespace.as_deref()) {
        (Some("AWS::Lambda"), _) => SERVER,
        (_, Some("aws" | "remote")) => CLIENT,
        _ => INTERNAL,
    };
    let mut attributes = Vec::new();
    for (key, text) in [("aws.xray.origin", &entity.origin), ("aws.xray.namespace", &entity.namespace)] {
        attributes.extend(text.as_ref().map(|text| attribute(key, &json!(text))));
    }
    let details = Value::Object(entity.details.clone());
    flatten("", &details, &mut attributes);
    let mut span = json!({
        "traceId": trace_id(&trace.id),
        "spanId": entity.id,
        "name": entity.name,
        "kind": kind,
        "startTimeUnixNano": entity.start_ns.to_string(),
        // The protocol knows no span under way: one that was never finished has no length.
        "endTimeUnixNano": entity.end_ns.unwrap_or(entity.start_ns).to_string(),
        "attributes": attributes,
        "status": match entity.outcome {
            Outcome::Ok => json!({}),
            _ => json!({ "code": 2 }),
        },
    });
    if let Some(parent) = &entity.parent {
        span["parentSpanId"] = json!(parent);
    }
    span
}

/// `1-581cf771-a006…` → `581cf771a006…`.
fn trace_id(id: &str) -> String {
    id.strip_prefix("1-").unwrap_or(id).replace('-', "")
}

/// Objects become dotted keys: `http.response.status`.
fn flatten(prefix: &str, value: &Value, attributes: &mut Vec<Value>) {
    const MOST: usize = 128;
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&key, value, attributes);
            }
        }
        Value::Null => {}
        _ if attributes.len() < MOST => attributes.push(attribute(prefix, value)),
        _ => {}
    }
}

fn attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(b) => json!({ "boolValue": b }),
        Value::Number(n) if n.is_i64() || n.is_u64() => json!({ "intValue": n.to_string() }),
        Value::Number(n) => json!({ "doubleValue": n }),
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    };
    json!({ "key": key, "value": value })
}
