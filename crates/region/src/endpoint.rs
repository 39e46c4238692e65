//! An endpoint: what answers, and when.

use crate::config::FaultKind;
use crate::draws::{Drawn, Draws};
use crate::dynamodb::{self, Engine, Reply};
use crate::upstream::Upstream;
use crate::{Config, DynamoDb, Error};
use bytes::Bytes;
use danki_record::{Event, Recorder, Request, Span, Tls};
use danki_serve::{Answer, BodyError, Call, sleep_until};
use danki_sys::clock::monotonic_ns;
use http_body_util::Full;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, SERVER};
use hyper::{Method, Response, StatusCode};
use std::time::Duration;

const AMZ_TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
const CRC32: HeaderName = HeaderName::from_static("x-amz-crc32");

/// Recorded when the client went away before it had its response (the number is nginx's).
const CLIENT_GONE: u16 = 499;

/// An upstream's whole exchange: what SDKs wait by default is longer (60 s), so they see the error that names it.
const UPSTREAM_DEADLINE: Duration = Duration::from_secs(30);

/// DynamoDB under its own names.
pub(crate) struct Endpoint {
    pub(crate) service: &'static str,
    pub(crate) idle_cutoff: Option<Duration>,
    draws: Draws,
    backend: Backend,
    recorder: Recorder,
}

enum Backend {
    Engine(Engine),
    Upstream(Box<Upstream>),
}

impl Endpoint {
    /// DynamoDB as configured; fills the engine's tables, which blocks.
    pub(crate) fn dynamodb(
        config: &Config,
        dynamodb: &DynamoDb,
        recorder: Recorder,
    ) -> Result<Endpoint, Error> {
        let settings = &dynamodb.endpoint;
        let backend = match &settings.upstream {
            Some(url) => Backend::Upstream(Box::new(Upstream::create(url, UPSTREAM_DEADLINE)?)),
            None => Backend::Engine(Engine::create(&dynamodb.tables)?),
        };
        let cutoff = Duration::from_millis(settings.idle_cutoff_ms).div_f64(config.time_scale);
        Ok(Endpoint {
            service: "dynamodb",
            idle_cutoff: (!cutoff.is_zero()).then_some(cutoff),
            draws: Draws::new(config, settings),
            backend,
            recorder,
        })
    }

    /// Answers a request: when its service time is over, unless a fault was drawn.
    pub(crate) async fn call(&self, call: Call) -> Answer {
        let drawn = self.draws.next(call.ordinal == 1);
        let due_ns = call.received_ns.saturating_add(drawn.service_ns);
        let mut pending = Pending::new(self, &call, &drawn);
        let response = match drawn.fault {
            Some((FaultKind::Reset, _)) => {
                sleep_until(due_ns).await;
                return pending.unanswered(Answer::Reset);
            }
            Some((FaultKind::Stall, stall)) => {
                tokio::time::sleep(stall).await;
                return pending.unanswered(Answer::HangUp);
            }
            Some((kind, _)) => self.response(injected(kind), &drawn.request_id),
            None => match self.answer(call, &drawn.request_id).await {
                Ok(response) => response,
                Err(BodyError::Broken { .. }) => return pending.unanswered(Answer::HangUp),
                Err(error @ BodyError::TooLarge { .. }) => {
                    let kind = "com.amazon.coral.service#RequestEntityTooLargeException";
                    self.response(dynamodb::error(413, kind, &error.to_string()), &drawn.request_id)
                }
            },
        };
        sleep_until(due_ns).await;
        pending.request.status = response.status().as_u16();
        Answer::Reply { response, on_sent: Some(Box::new(move |at_ns| pending.sent(at_ns))) }
    }

    async fn answer(&self, call: Call, request_id: &str) -> Result<Response<Full<Bytes>>, BodyError> {
        let body = call.body.clone()?.bytes;
        let engine = match &self.backend {
            Backend::Engine(engine) => engine,
            Backend::Upstream(upstream) => {
                return Ok(upstream.forward(&call, body).await.unwrap_or_else(|reason| {
                    let kind = "com.amazonaws.dynamodb.v20120810#InternalServerError";
                    self.response(dynamodb::error(502, kind, &reason), request_id)
                }));
            }
        };
        if call.head.method == Method::GET {
            return Ok(self.response(healthy(&call), request_id));
        }
        let reply = match operation(&call).filter(|operation| Engine::knows(operation)) {
            Some(operation) => execute(engine.clone(), operation.to_owned(), body).await,
            None => {
                let body = r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#;
                Reply { status: 400, body: Bytes::from_static(body.as_bytes()) }
            }
        };
        Ok(self.response(reply, request_id))
    }

    /// The reply with DynamoDB's headers, in its order; hyper adds the date. No `Keep-Alive`: AWS sends none, and
    /// Node's agent would act on it.
    fn response(&self, reply: Reply, request_id: &str) -> Response<Full<Bytes>> {
        let crc = crc32fast::hash(&reply.body);
        let mut response = Response::new(Full::new(reply.body));
        *response.status_mut() =
            StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(SERVER, HeaderValue::from_static("Server"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        if let Ok(id) = HeaderValue::from_str(request_id) {
            headers.insert(REQUEST_ID, id);
        }
        headers.insert(CRC32, HeaderValue::from(crc));
        response
    }
}

/// SQLite blocks, and a large scan for long: not on the runtime's workers, which also carry everybody else's timing.
async fn execute(engine: Engine, operation: String, body: Bytes) -> Reply {
    let run = tokio::task::spawn_blocking(move || engine.execute(&operation, &body));
    run.await.unwrap_or_else(|error| {
        let kind = "com.amazonaws.dynamodb.v20120810#InternalServerError";
        dynamodb::error(500, kind, &format!("danki: the DynamoDB engine broke off: {error}"))
    })
}

fn operation(call: &Call) -> Option<&str> {
    call.head.headers.get(AMZ_TARGET)?.to_str().ok().and_then(dynamodb::operation)
}

/// What DynamoDB answers to a GET (seen in aws-sdk-js issue 862).
fn healthy(call: &Call) -> Reply {
    let host = call.head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    Reply { status: 200, body: format!("healthy: {host} ").into() }
}

/// The answer that a fault gives. Texts are those of the DynamoDB API reference.
fn injected(kind: FaultKind) -> Reply {
    match kind {
        FaultKind::Throttle => dynamodb::error(
            400,
            "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "The level of configured provisioned throughput for the table was exceeded. Consider increasing your \
             provisioning level with the UpdateTable API.",
        ),
        FaultKind::ThrottlingException => dynamodb::error(
            400,
            "com.amazon.coral.availability#ThrottlingException",
            "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your \
             table or index so please try again shortly.",
        ),
        FaultKind::Http500 | FaultKind::Reset | FaultKind::Stall => dynamodb::error(
            500,
            "com.amazonaws.dynamodb.v20120810#InternalServerError",
            "The request processing has failed because of an unknown error, exception or failure.",
        ),
    }
}

/// A request that will be recorded, whatever happens: a client that gives up stays in the population.
struct Pending {
    request: Request,
    recorder: Recorder,
}

impl Pending {
    fn new(endpoint: &Endpoint, call: &Call, drawn: &Drawn) -> Pending {
        let handshake = call.peer.tls.as_ref().filter(|_| call.ordinal == 1);
        let tls = handshake.map(|tls| Tls {
            span: Span { from_ns: call.peer.accepted_ns, to_ns: tls.done_ns },
            resumed: tls.resumed,
            version: tls.version.to_owned(),
            server_name: tls.server_name.clone(),
        });
        let request = Request {
            service: endpoint.service.to_owned(),
            operation: operation(call).unwrap_or("unknown").to_owned(),
            client: call.peer.client,
            ordinal: call.ordinal,
            tls,
            received: Span { from_ns: call.first_byte_ns, to_ns: call.received_ns },
            service_time: Span { from_ns: call.received_ns, to_ns: call.received_ns },
            status: CLIENT_GONE,
            fault: drawn.fault.map(|(kind, _)| kind.as_str().to_owned()),
        };
        Pending { request, recorder: endpoint.recorder.clone() }
    }

    fn sent(mut self, at_ns: u64) {
        self.request.service_time.to_ns = at_ns;
    }

    /// The connection ends without a response: status 0.
    fn unanswered(mut self, how: Answer) -> Answer {
        self.request.status = 0;
        how
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let span = &mut self.request.service_time;
        if span.to_ns == span.from_ns {
            span.to_ns = monotonic_ns().max(span.from_ns);
        }
        self.recorder.record(Event::Request(self.request.clone()));
    }
}
