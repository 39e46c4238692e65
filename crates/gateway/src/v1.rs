//! Format 1.0: repeated names stand twice, as the last value and as a list of all.

use crate::query::pairs;
use crate::request::{Arrival, Call, Front, domain_prefix};
use serde_json::{Map, Value, json};

pub(crate) fn event(arrival: &Arrival<'_>, call: &Call<'_>) -> Value {
    let (body, is_base64) = arrival.event_body();
    // An HTTP API gives its names in lower case and says the version; a REST API keeps the names as they came.
    let lower = call.front != Front::Rest;
    let name_of = |name: &String| if lower { name.to_ascii_lowercase() } else { name.clone() };
    let headers: Vec<(String, String)> =
        arrival.headers.iter().map(|(name, value)| (name_of(name), value.clone())).collect();
    let query: Vec<(String, String)> = pairs(arrival.query).collect();
    let mut event = json!({
        "resource": call.resource,
        "path": arrival.path,
        "httpMethod": arrival.method,
        "headers": last(&headers),
        "multiValueHeaders": all(&headers),
        "queryStringParameters": nullable(last(&query)),
        "multiValueQueryStringParameters": nullable(all(&query)),
        "pathParameters": if call.parameters.is_empty() { Value::Null } else { json!(call.parameters) },
        "stageVariables": null,
        "requestContext": context(arrival, call),
        "body": body,
        "isBase64Encoded": is_base64,
    });
    if lower {
        event["version"] = Value::String("1.0".to_owned());
    }
    event
}

fn context(arrival: &Arrival<'_>, call: &Call<'_>) -> Value {
    // A REST API's context has the stage in its path, as the caller sees it.
    let path = if call.stage == "$default" {
        arrival.path.to_owned()
    } else {
        format!("/{}{}", call.stage, arrival.path)
    };
    json!({
        "accountId": call.account,
        "apiId": call.api,
        "domainName": call.domain,
        "domainPrefix": domain_prefix(call.domain),
        "extendedRequestId": call.request_id,
        "httpMethod": arrival.method,
        "identity": {
            "sourceIp": arrival.source_ip,
            "userAgent": arrival.header("user-agent"),
        },
        "path": path,
        "protocol": "HTTP/1.1",
        "requestId": call.request_id,
        "requestTime": arrival.common_log_time(),
        "requestTimeEpoch": arrival.epoch_ms,
        "resourceId": "danki",
        "resourcePath": call.resource,
        "stage": call.stage,
    })
}

fn last(pairs: &[(String, String)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect()
}

fn all(pairs: &[(String, String)]) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, value) in pairs {
        match map.get_mut(name) {
            Some(Value::Array(values)) => values.push(Value::String(value.clone())),
            _ => {
                map.insert(name.clone(), json!([value]));
            }
        }
    }
    map
}

/// A REST API says null where there is nothing.
fn nullable(map: Map<String, Value>) -> Value {
    if map.is_empty() { Value::Null } else { Value::Object(map) }
}
