//! An endpoint: what answers, and when.

use crate::behaviour::FaultKind;
use crate::draws::{Drawn, Draws};
use crate::dynamodb::{Engine, Reply};
use crate::kind::{Kind, Trouble};
use crate::store::Stores;
use crate::upstream::Upstream;
use crate::{Config, Error};
use bytes::Bytes;
use danki_record::{Event, Recorder, Request, Span, Tls};
use danki_serve::{Answer, BodyError, Call, sleep_until};
use danki_sys::clock::monotonic_ns;
use http_body_util::Full;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, SERVER};
use hyper::{Method, Response, StatusCode};
use std::time::Duration;

const AMZ_TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const SDK_REQUEST: HeaderName = HeaderName::from_static("amz-sdk-request");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
const CRC32: HeaderName = HeaderName::from_static("x-amz-crc32");

/// Recorded when the client went away before it had its response (the number is nginx's).
const CLIENT_GONE: u16 = 499;

/// An upstream's whole exchange: what SDKs wait by default is longer (60 s), so they see the error that names it.
const UPSTREAM_DEADLINE: Duration = Duration::from_secs(30);

/// What is recorded as the fault of a request that was one too many.
const OVER_RATE: &str = "rate";

/// A service under its own names.
pub(crate) struct Endpoint {
    pub(crate) kind: Kind,
    pub(crate) idle_cutoff: Option<Duration>,
    draws: Draws,
    backend: Backend,
    recorder: Recorder,
}

enum Backend {
    Engine(Engine),
    Stores(Stores),
    Upstream(Box<Upstream>),
}

impl Endpoint {
    /// A service as configured; fills DynamoDB's tables, which blocks.
    pub(crate) fn create(
        config: &Config,
        kind: Kind,
        stores: &Stores,
        recorder: Recorder,
    ) -> Result<Endpoint, Error> {
        let settings = config.endpoints().find(|(k, _)| *k == kind).map(|(_, settings)| settings.clone());
        let settings = settings.unwrap_or_default();
        let tables = config.dynamodb.as_ref().map_or(&[][..], |dynamodb| &dynamodb.tables);
        let backend = match (&settings.upstream, kind) {
            (Some(url), _) => Backend::Upstream(Box::new(Upstream::create(url, UPSTREAM_DEADLINE)?)),
            (None, Kind::DynamoDb) => Backend::Engine(Engine::create(tables)?),
            (None, Kind::SecretsManager | Kind::Ssm) => Backend::Stores(stores.clone()),
        };
        let cutoff = Duration::from_millis(settings.timing(kind).idle_cutoff_ms).div_f64(config.time_scale);
        Ok(Endpoint {
            kind,
            idle_cutoff: (!cutoff.is_zero()).then_some(cutoff),
            draws: Draws::new(config, kind, &settings),
            backend,
            recorder,
        })
    }

    /// Answers a request: when its service time is over, unless a fault was drawn.
    pub(crate) async fn call(&self, call: Call) -> Answer {
        let effort = self.kind.effort(self.operation(&call).unwrap_or_default());
        let drawn = self.draws.next(call.ordinal == 1, effort, call.received_ns);
        let due_ns = call.received_ns.saturating_add(drawn.service_ns);
        let mut pending = Pending::new(self, &call, &drawn);
        let (reply, kms) = match drawn.fault {
            Some((FaultKind::Reset, _)) => {
                sleep_until(due_ns).await;
                return pending.unanswered(Answer::Reset);
            }
            Some((FaultKind::TlsAlert, _)) => {
                sleep_until(due_ns).await;
                return pending.unanswered(Answer::Alert);
            }
            Some((FaultKind::ResetMidBody, _)) => {
                let whole = self.answer(call, &drawn.request_id).await;
                sleep_until(due_ns).await;
                let half = |(response, _)| Answer::ResetMidBody { response };
                return pending.unanswered(whole.map_or(Answer::HangUp, half));
            }
            Some((FaultKind::Stall, stall)) => {
                tokio::time::sleep(stall).await;
                return pending.unanswered(Answer::HangUp);
            }
            Some((kind, _)) => (self.response(self.injected(kind), &drawn.request_id), false),
            None if drawn.over_rate => {
                (self.response(self.kind.error(Trouble::Throttled, None), &drawn.request_id), false)
            }
            None => match self.answer(call, &drawn.request_id).await {
                Ok(answered) => answered,
                Err(BodyError::Broken { .. }) => return pending.unanswered(Answer::HangUp),
                Err(error @ BodyError::TooLarge { .. }) => {
                    let reply = self.kind.error(Trouble::TooLarge, Some((413, &error.to_string())));
                    (self.response(reply, &drawn.request_id), false)
                }
            },
        };
        sleep_until(due_ns.saturating_add(if kms { drawn.kms_ns } else { 0 })).await;
        pending.request.status = reply.status().as_u16();
        Answer::Reply { response: reply, on_sent: Some(Box::new(move |at_ns| pending.sent(at_ns))) }
    }

    /// The response, and whether a key of KMS was needed for it.
    async fn answer(&self, call: Call, request_id: &str) -> Result<(Response<Full<Bytes>>, bool), BodyError> {
        let body = call.body.clone()?.bytes;
        if let Backend::Upstream(upstream) = &self.backend {
            let forwarded = upstream.forward(&call, body).await.unwrap_or_else(|reason| {
                self.response(self.kind.error(Trouble::Internal, Some((502, &reason))), request_id)
            });
            return Ok((forwarded, false));
        }
        if call.head.method == Method::GET {
            return Ok((self.response(healthy(&call), request_id), false));
        }
        let operation = self.operation(&call).unwrap_or_default();
        let (reply, kms) = match &self.backend {
            Backend::Engine(engine) if Engine::knows(operation) => {
                (self.execute(engine.clone(), operation.to_owned(), body).await, false)
            }
            Backend::Stores(stores) => stores.execute(self.kind, operation, &body),
            _ => (self.kind.unknown_operation(), false),
        };
        Ok((self.response(reply, request_id), kms))
    }

    fn operation<'a>(&self, call: &'a Call) -> Option<&'a str> {
        call.head.headers.get(AMZ_TARGET)?.to_str().ok().and_then(|target| self.kind.operation(target))
    }

    /// The answer that a fault gives.
    fn injected(&self, fault: FaultKind) -> Reply {
        let trouble = match fault {
            FaultKind::Throttle => Trouble::Capacity,
            FaultKind::ThrottlingException => Trouble::Throttled,
            FaultKind::Http500
            | FaultKind::Reset
            | FaultKind::ResetMidBody
            | FaultKind::TlsAlert
            | FaultKind::Stall => Trouble::Internal,
        };
        self.kind.error(trouble, None)
    }

    /// The reply with AWS's headers, in its order; hyper adds the date. No `Keep-Alive`: AWS sends none, and
    /// Node's agent would act on it.
    fn response(&self, reply: Reply, request_id: &str) -> Response<Full<Bytes>> {
        let crc = crc32fast::hash(&reply.body);
        let mut response = Response::new(Full::new(reply.body));
        *response.status_mut() =
            StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        if self.kind != Kind::SecretsManager {
            headers.insert(SERVER, HeaderValue::from_static("Server"));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind.content_type()));
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        if let Ok(id) = HeaderValue::from_str(request_id) {
            headers.insert(REQUEST_ID, id);
        }
        if self.kind == Kind::DynamoDb {
            headers.insert(CRC32, HeaderValue::from(crc));
        }
        response
    }

    /// SQLite blocks, and a large scan for long: not on the runtime's workers, which also carry everybody else's timing.
    async fn execute(&self, engine: Engine, operation: String, body: Bytes) -> Reply {
        let run = tokio::task::spawn_blocking(move || engine.execute(&operation, &body));
        run.await.unwrap_or_else(|error| {
            let text = format!("danki: the DynamoDB engine broke off: {error}");
            self.kind.error(Trouble::Internal, Some((500, &text)))
        })
    }
}

/// `amz-sdk-request: attempt=2; max=3`, which SDKs since 2020 send with each request.
fn attempt(call: &Call) -> Option<u32> {
    let text = call.head.headers.get(SDK_REQUEST)?.to_str().ok()?;
    text.split(';').find_map(|part| part.trim().strip_prefix("attempt=")?.parse().ok())
}

/// What DynamoDB answers to a GET (seen in aws-sdk-js issue 862).
fn healthy(call: &Call) -> Reply {
    let host = call.head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    Reply { status: 200, body: format!("healthy: {host} ").into() }
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
        let over_rate = drawn.over_rate.then_some(OVER_RATE);
        let request = Request {
            service: endpoint.kind.name().to_owned(),
            operation: endpoint.operation(call).unwrap_or("unknown").to_owned(),
            client: call.peer.client,
            ordinal: call.ordinal,
            tls,
            received: Span { from_ns: call.first_byte_ns, to_ns: call.received_ns },
            service_time: Span { from_ns: call.received_ns, to_ns: call.received_ns },
            status: CLIENT_GONE,
            fault: drawn.fault.map(|(kind, _)| kind.as_str()).or(over_rate).map(str::to_owned),
            attempt: attempt(call),
        };
        Pending { request, recorder: endpoint.recorder.clone() }
    }

    fn sent(mut self, at_ns: u64) {
        self.request.service_time.to_ns = at_ns;
    }

    /// The connection ends without a whole response: status 0.
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
