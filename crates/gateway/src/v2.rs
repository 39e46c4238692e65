//! Format 2.0: repeated names are joined by commas, cookies stand apart.

use crate::query::pairs;
use crate::request::{Arrival, Call, Front, domain_prefix};
use serde_json::{Map, Value, json};

pub(crate) fn event(arrival: &Arrival<'_>, call: &Call<'_>) -> Value {
    let (body, is_base64) = arrival.event_body();
    let route_key = route_key(call);
    let mut event = json!({
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": arrival.path,
        "rawQueryString": arrival.query,
        "headers": headers(arrival),
        "requestContext": context(arrival, call, &route_key),
        "isBase64Encoded": is_base64,
    });
    let cookies: Vec<&str> = arrival
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("cookie"))
        .flat_map(|(_, value)| value.split(';').map(str::trim).filter(|cookie| !cookie.is_empty()))
        .collect();
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies);
    }
    let mut query = Map::new();
    pairs(arrival.query).for_each(|(name, value)| join(&mut query, name, &value));
    if !query.is_empty() {
        event["queryStringParameters"] = Value::Object(query);
    }
    if !call.parameters.is_empty() {
        event["pathParameters"] = json!(call.parameters);
    }
    if let Some(body) = body {
        event["body"] = Value::String(body);
    }
    event
}

fn route_key(call: &Call<'_>) -> String {
    if call.front == Front::Url || call.resource == "$default" {
        return "$default".to_owned();
    }
    format!("{} {}", call.method, call.resource)
}

fn context(arrival: &Arrival<'_>, call: &Call<'_>, route_key: &str) -> Value {
    json!({
        "accountId": call.account,
        "apiId": call.api,
        "domainName": call.domain,
        "domainPrefix": domain_prefix(call.domain),
        "http": {
            "method": arrival.method,
            "path": arrival.path,
            "protocol": "HTTP/1.1",
            "sourceIp": arrival.source_ip,
            "userAgent": arrival.header("user-agent").unwrap_or_default(),
        },
        "requestId": call.request_id,
        "routeKey": route_key,
        "stage": call.stage,
        "time": arrival.common_log_time(),
        "timeEpoch": arrival.epoch_ms,
    })
}

/// Lower-case names; cookies are not among them.
fn headers(arrival: &Arrival<'_>) -> Map<String, Value> {
    let mut headers = Map::new();
    for (name, value) in arrival.headers {
        let name = name.to_ascii_lowercase();
        if name != "cookie" {
            join(&mut headers, name, value);
        }
    }
    headers
}

fn join(map: &mut Map<String, Value>, name: String, value: &str) {
    match map.get_mut(&name) {
        Some(Value::String(so_far)) => {
            so_far.push(',');
            so_far.push_str(value);
        }
        _ => {
            map.insert(name, Value::String(value.to_owned()));
        }
    }
}
