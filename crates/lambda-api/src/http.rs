//! HTTP to operations and back.

use crate::api::Api;
use crate::fault::{Fault, Kind};
use crate::request::{Content, Outcome, Reply, Request, pairs, percent_decode};
use crate::routes::{self, Handler};
use crate::services::{self, Service};
use crate::sigv4::{self, Signed};
use bytes::Bytes;
use danki_dashboard::Dashboard;
use danki_model::environment;
use danki_serve::{Answer, BodyError, Call, Peer};
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// A request's body: a zip on its way to S3 may be as large as its unpacked files.
const BODY_BYTES: usize = 256 * 1024 * 1024;
/// SDKs keep connections; AWS closes idle ones after about this long.
const IDLE: Duration = Duration::from_secs(350);

/// Answers requests.
pub struct Front {
    api: Arc<Api>,
}

/// The server's bounds.
pub fn config() -> danki_serve::Config {
    danki_serve::Config {
        max_body_bytes: BODY_BYTES,
        request_timeout: Duration::from_secs(120),
        ..danki_serve::Config::default()
    }
}

impl Front {
    pub fn new(api: Arc<Api>) -> Front {
        Front { api }
    }
}

impl danki_serve::Service for Front {
    fn idle_cutoff(&self, _: &Peer) -> Option<Duration> {
        Some(IDLE)
    }

    async fn call(&self, call: Call) -> Answer {
        if Dashboard::owns(call.head.uri.path())
            && let Some(dashboard) = self.api.dashboard.get()
        {
            return dashboard.answer(call).await;
        }
        let id = self.api.uuid();
        let service = service(&call);
        let outcome = answer(&self.api, call, service, id.clone()).await;
        let reply = outcome.unwrap_or_else(|fault| services::refusal(service, &fault, &id));
        respond(reply, &id)
    }
}

/// The service is in the signature; what is not signed is for Lambda.
fn service(call: &Call) -> Service {
    let header = call.head.headers.get("authorization").and_then(|v| v.to_str().ok());
    let query = call.head.uri.query().filter(|q| q.contains("X-Amz-Credential="));
    match header.or(query).and_then(sigv4::scope) {
        Some(scope) => Service::named(&scope.service, &call.head.headers),
        None => Service::Lambda,
    }
}

async fn answer(api: &Arc<Api>, call: Call, service: Service, id: String) -> Outcome {
    let body = match call.body {
        Ok(body) => body.bytes,
        Err(BodyError::TooLarge { limit }) => {
            let message = format!("Request must be smaller than {limit} bytes");
            return Err(Fault::new(Kind::RequestEntityTooLarge, message));
        }
        Err(BodyError::Broken { reason }) => return Err(Fault::new(Kind::InvalidRequestContent, reason)),
    };
    let (path, query) =
        (call.head.uri.path().to_owned(), call.head.uri.query().unwrap_or_default().to_owned());
    if api.config.verify_signatures && !path.starts_with("/_danki/") {
        verify(call.head.method.as_str(), &path, &query, &call.head.headers, &body)?;
    }
    let host = call.head.headers.get("host").and_then(|h| h.to_str().ok());
    let request = Request {
        host: host.map_or_else(|| call.peer.local.to_string(), str::to_owned),
        method: call.head.method,
        path: percent_decode(&path),
        parameters: Vec::new(),
        query: pairs(&query),
        headers: call.head.headers,
        body,
        id,
    };
    if service != Service::Lambda {
        return services::answer(api, service, &request);
    }
    dispatch(api, request, &path).await
}

/// Answers a request to Lambda by the operation that its method and path (escapes kept) name.
pub async fn dispatch(api: &Arc<Api>, mut request: Request, path: &str) -> Outcome {
    let Some((route, parameters)) = routes::find(request.method.as_str(), path) else {
        let message =
            format!("Unable to determine service/operation name to be authorized: {} {path}", request.method);
        return Err(Fault::new(Kind::UnknownOperation, message));
    };
    request.parameters = parameters;
    match route.3 {
        Handler::Now(handler) => handler(api, &request),
        Handler::Later(handler) => handler(Arc::clone(api), request).await,
        Handler::Missing => Err(Fault::new(
            Kind::NotOffered,
            format!("danki does not offer {}; docs/parity.md lists what it leaves out", route.2),
        )),
    }
}

fn verify(method: &str, path: &str, query: &str, headers: &HeaderMap, body: &Bytes) -> Result<(), Fault> {
    let signed = Signed { method, path, query, headers, body };
    sigv4::verify(&signed, environment::ACCESS_KEY_ID, environment::SECRET_ACCESS_KEY)
}

fn respond(reply: Reply, id: &str) -> Answer {
    let mut headers = HeaderMap::new();
    // A 204 has no body, and therefore no type.
    if reply.status != 204 {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    }
    let mut put = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            // Names are our own; SDKs compare them without case.
            headers
                .insert(hyper::header::HeaderName::from_bytes(name.as_bytes()).expect("a legal name"), value);
        }
    };
    put("x-amzn-RequestId", id);
    reply.headers.iter().for_each(|(name, value)| put(name, value));
    let status = StatusCode::from_u16(reply.status).expect("operations answer legal statuses");
    match reply.body {
        Content::Whole(bytes) => {
            let mut response = Response::new(Full::new(bytes));
            (*response.status_mut(), *response.headers_mut()) = (status, headers);
            Answer::reply(response)
        }
        Content::Stream(chunks) => {
            let mut response = Response::new(chunks);
            (*response.status_mut(), *response.headers_mut()) = (status, headers);
            Answer::Stream { response }
        }
    }
}
