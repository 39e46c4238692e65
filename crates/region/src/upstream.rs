//! Forwarding to a server that answers instead of the engine: DynamoDB Local, moto, LocalStack, or real AWS.
//!
//! The request goes out as it came, with its original `Host` (a SigV4 signature covers it), minus hop-by-hop headers.
//! Nothing waits without end: a deadline ends in an error that names the upstream.

use crate::Error;
use bytes::Bytes;
use danki_serve::Call;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{HeaderMap, Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::time::Duration;

/// DynamoDB's responses end at 16 MB (BatchGetItem).
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;

/// Connections kept to the upstream.
const MAX_IDLE_CONNECTIONS: usize = 64;

/// Headers that concern one connection only.
const HOP_BY_HOP: [HeaderName; 6] =
    [CONNECTION, TRANSFER_ENCODING, UPGRADE, TE, CONTENT_LENGTH, HeaderName::from_static("keep-alive")];

/// A server that answers instead of the engine.
pub(crate) struct Upstream {
    url: Uri,
    deadline: Duration,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Upstream {
    /// Reads the URL and the system's roots; connects to nothing yet.
    pub(crate) fn create(url: &str, deadline: Duration) -> Result<Upstream, Error> {
        let refuse = || Error::Setting {
            key: "upstream".to_owned(),
            value: url.to_owned(),
            allowed: "an http:// or https:// URL with a host, e.g. http://127.0.0.1:8000",
        };
        let parsed: Uri = url.parse().map_err(|_| refuse())?;
        if !(parsed.scheme() == Some(&Scheme::HTTP) || parsed.scheme() == Some(&Scheme::HTTPS)) {
            return Err(refuse());
        }
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
            .map_err(Error::Upstream)?
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .set_host(false)
            .build(connector);
        Ok(Upstream { url: parsed, deadline, client })
    }

    /// The upstream's response, or why there is none.
    pub(crate) async fn forward(&self, call: &Call, body: Bytes) -> Result<Response<Full<Bytes>>, String> {
        match tokio::time::timeout(self.deadline, self.exchange(call, body)).await {
            Ok(result) => result.map_err(|reason| format!("danki: upstream {}: {reason}", self.url)),
            Err(_) => Err(format!("danki: upstream {} did not answer within {:?}", self.url, self.deadline)),
        }
    }

    async fn exchange(&self, call: &Call, body: Bytes) -> Result<Response<Full<Bytes>>, String> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = call.head.method.clone();
        *request.uri_mut() = self.target(&call.head.uri)?;
        *request.headers_mut() = end_to_end(&call.head.headers);
        if !request.headers().contains_key(HOST) {
            let host = self.url.authority().map(|a| a.as_str()).unwrap_or_default();
            request.headers_mut().insert(HOST, host.parse().map_err(|_| "its host is no header value")?);
        }
        let response = self.client.request(request).await.map_err(|e| chain(&e))?;
        let (mut head, body) = response.into_parts();
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(|e| e.to_string())?;
        head.headers = end_to_end(&head.headers);
        Ok(Response::from_parts(head, Full::new(body.to_bytes())))
    }

    fn target(&self, path: &Uri) -> Result<Uri, String> {
        let mut parts = self.url.clone().into_parts();
        let path = path.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).map_err(|e| e.to_string())
    }
}

fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    headers
        .iter()
        .filter(|(name, _)| !HOP_BY_HOP.contains(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The error and its causes: hyper's own text alone says only "client error (Connect)".
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |e| e.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use danki_serve::{Body, Peer};
    use std::sync::Arc;

    #[tokio::test]
    async fn a_silent_upstream_ends_in_an_error_that_names_it() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = silent.local_addr().expect("bound");
        let upstream =
            Upstream::create(&format!("http://{address}"), Duration::from_millis(100)).expect("a url");
        let peer = Peer { client: address, local: address, accepted_ns: 0, tls: None };
        let call = Call {
            head: Request::new(()).into_parts().0,
            body: Ok(Body::default()),
            ordinal: 1,
            first_byte_ns: 0,
            received_ns: 0,
            peer: Arc::new(peer),
        };
        let reason = upstream.forward(&call, Bytes::new()).await.expect_err("no answer");
        assert!(reason.contains(&address.to_string()) && reason.contains("100ms"), "{reason}");
    }
}
