//! `danki trace --otlp`: a run's traces to a collector, over OTLP/HTTP in JSON.

use crate::exit::Failure;
use crate::terminal;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Spans of one request: a collector takes 20 MiB at once by default, and a span is some 500 bytes.
const SPANS: usize = 5_000;
/// For each request.
const PATIENCE: Duration = Duration::from_secs(30);
/// Of a refusal that is shown.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Sends `trace.otlp.json` of a run. `headers` are "name: value".
pub fn push(run: &Path, url: &str, headers: &[String]) -> Result<(), Failure> {
    let path = run.join("trace.otlp.json");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    let all: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let url = endpoint(url)?;
    let headers = headers.iter().map(|header| pair(header)).collect::<Result<Vec<_>, _>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::machine(format!("no async runtime: {error}")))?;
    let client = collector(&url)?;
    let (mut sent, mut rejected) = (0, 0);
    for part in parts(&all) {
        sent += count(&part);
        rejected += runtime.block_on(post(&client, &url, &headers, part.to_string()))?;
    }
    let of_them = if rejected > 0 { format!(", of which it rejected {rejected}") } else { String::new() };
    terminal::print(&format!("{sent} spans sent to {url}{of_them}\n"));
    Ok(())
}

/// A collector's address; its path for traces unless another is given.
fn endpoint(url: &str) -> Result<Uri, Failure> {
    let wrong = || {
        let hint = "an http:// or https:// URL, such as http://localhost:4318";
        Failure::usage(format!("--otlp {url}: not a collector's address")).hint(hint)
    };
    let parsed: Uri = url.parse().map_err(|_| wrong())?;
    if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.host().is_none() {
        return Err(wrong());
    }
    match parsed.path() {
        "" | "/" => format!("{}/v1/traces", url.trim_end_matches('/')).parse().map_err(|_| wrong()),
        _ => Ok(parsed),
    }
}

fn pair(header: &str) -> Result<(&str, &str), Failure> {
    header.split_once(':').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(|| {
        Failure::usage(format!("--header {header:?}: no colon")).hint("--header 'authorization: Bearer …'")
    })
}

/// Requests of a size that collectors take.
fn parts(all: &Value) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut parts = Vec::new();
    for of_resource in list(&all["resourceSpans"]) {
        for of_scope in list(&of_resource["scopeSpans"]) {
            for spans in list(&of_scope["spans"]).chunks(SPANS) {
                let (mut resource, mut scope) = (of_resource.clone(), of_scope.clone());
                scope["spans"] = spans.into();
                resource["scopeSpans"] = json!([scope]);
                parts.push(json!({ "resourceSpans": [resource] }));
            }
        }
    }
    parts
}

fn count(part: &Value) -> usize {
    part["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().map_or(0, Vec::len)
}

type Collector = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Connects to nothing yet; one connection serves all parts.
fn collector(url: &Uri) -> Result<Collector, Failure> {
    let connector = HttpsConnectorBuilder::new()
        .with_native_roots()
        .map_err(|error| failed(url, error.to_string()))?
        .https_or_http()
        .enable_http1()
        .build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

fn failed(url: &Uri, why: String) -> Failure {
    Failure::machine(format!("{url}: {why}")).hint("is a collector there that takes OTLP over HTTP?")
}

/// How many spans the collector rejected.
async fn post(client: &Collector, url: &Uri, headers: &[(&str, &str)], body: String) -> Result<u64, Failure> {
    let failed = |why: String| failed(url, why);
    let mut request = Request::post(url.clone()).header(CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| failed(error.to_string()))?;
    let exchange = async {
        let response = client.request(request).await.map_err(|error| failed(causes(&error)))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), LONGEST_ANSWER).collect().await;
        let said = body.map(|body| body.to_bytes()).unwrap_or_default();
        if status.is_success() {
            return Ok(rejected(&said));
        }
        let said = String::from_utf8_lossy(&said).chars().take(500).collect::<String>();
        Err(failed(format!("it answers {status}: {said}")))
    };
    let slow = |_| failed(format!("no answer in {} s", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, exchange).await.map_err(slow)?
}

/// `partialSuccess`, whose number is text in protobuf's JSON.
fn rejected(answer: &[u8]) -> u64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let count = &answer["partialSuccess"]["rejectedSpans"];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0)
}

/// hyper's own text says only "client error (Connect)".
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_s_address_needs_no_path() {
        let check = |url: &str, expect: Option<&str>| {
            assert_eq!(endpoint(url).ok().map(|uri| uri.to_string()).as_deref(), expect, "{url}");
        };
        check("http://localhost:4318", Some("http://localhost:4318/v1/traces"));
        check("https://otel.example/", Some("https://otel.example/v1/traces"));
        check("http://[::1]:4318/api/otlp", Some("http://[::1]:4318/api/otlp"));
        for wrong in ["localhost:4318", "ftp://a", "http://", "", "a b"] {
            check(wrong, None);
        }
    }

    #[test]
    fn many_spans_go_in_parts_and_none_is_lost() {
        let spans = |n: usize| (0..n).map(|id| json!({ "spanId": id })).collect::<Vec<_>>();
        let scope = |n: usize| json!({ "scope": { "name": "danki" }, "spans": spans(n) });
        let all = json!({ "resourceSpans": [
            { "resource": { "a": 1 }, "scopeSpans": [scope(SPANS + 1), scope(0)] },
            { "resource": { "a": 2 }, "scopeSpans": [scope(3)] },
        ] });
        let parts = parts(&all);
        assert_eq!(parts.iter().map(count).collect::<Vec<_>>(), [SPANS, 1, 3]);
        assert_eq!(parts[2]["resourceSpans"][0]["resource"]["a"], 2);
        assert_eq!(parts[1]["resourceSpans"][0]["scopeSpans"][0]["scope"]["name"], "danki");
    }

    #[test]
    fn what_a_collector_rejects_is_read() {
        for (answer, expect) in [
            (&b"{}"[..], 0),
            (b"", 0),
            (br#"{"partialSuccess": {"rejectedSpans": "7", "errorMessage": "old"}}"#, 7),
            (br#"{"partialSuccess": {"rejectedSpans": 2}}"#, 2),
        ] {
            assert_eq!(rejected(answer), expect);
        }
    }
}
