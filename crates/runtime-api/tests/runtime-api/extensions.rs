//! The Extensions and Telemetry APIs as an extension sees them, and a response that is streamed to its caller.

#![allow(clippy::unwrap_used, reason = "helpers of tests: clippy sees only the tests themselves")]

use crate::common::{Api, DEADLINE, Peer, Reply, invoke};
use danki_model::crew::{ExtensionId, ExtensionKind, Registration};
use danki_model::shutdown::ShutdownReason;
use danki_runtime_api::{Destination, ExtensionWhat, RuntimeEvent, STREAM_BYTES_MAX};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use tokio::time::timeout;

/// An extension with a connection of its own.
struct Extension {
    peer: Peer,
    identifier: String,
}

async fn request(peer: &mut Peer, line: &str, headers: &str, body: &str) {
    let length = body.len();
    peer.send(format!("{line} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {length}\r\n\r\n{body}")).await;
}

async fn register(peer: &mut Peer, headers: &str, body: &str) -> Reply {
    request(peer, "POST /2020-01-01/extension/register", headers, body).await;
    peer.reply().await
}

impl Extension {
    async fn register(api: &mut Api, name: &str, events: &str) -> (Extension, Registration) {
        let mut peer = api.connect().await;
        let headers = format!("Lambda-Extension-Name: {name}\r\n");
        let reply = register(&mut peer, &headers, &format!("{{\"events\":[{events}]}}")).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let identifier = reply.header("Lambda-Extension-Identifier").unwrap().to_owned();
        let (said, what) = said(api).await;
        let ExtensionWhat::Registered(registration) = what else { panic!("{what:?}") };
        assert_eq!(said, name);
        (Extension { peer, identifier }, registration)
    }

    async fn ask(&mut self) {
        let headers = format!("Lambda-Extension-Identifier: {}\r\n", self.identifier);
        request(&mut self.peer, "GET /2020-01-01/extension/event/next", &headers, "").await;
    }

    async fn post(&mut self, path: &str, headers: &str, body: &str) -> Reply {
        let headers = format!("Lambda-Extension-Identifier: {}\r\n{headers}", self.identifier);
        request(&mut self.peer, path, &headers, body).await;
        self.peer.reply().await
    }

    async fn event(&mut self) -> serde_json::Value {
        let reply = self.peer.reply().await;
        assert_eq!(reply.status, 200);
        assert!(reply.header("Lambda-Extension-Event-Identifier").is_some());
        serde_json::from_slice(&reply.body).unwrap()
    }
}

/// What an extension did: its name and the rest.
async fn said(api: &mut Api) -> (String, ExtensionWhat) {
    match api.event().await {
        RuntimeEvent::Extension(call) => (call.name, call.what),
        other => panic!("{other:?}"),
    }
}

async fn waits(api: &mut Api, name: &str) {
    assert_eq!(said(api).await, (name.to_owned(), ExtensionWhat::NextRequested));
}

#[tokio::test]
async fn extensions_register_and_get_the_events_they_want() {
    let mut api = Api::with_extensions(&["agent", "quiet"]);
    let (mut agent, registration) = Extension::register(&mut api, "agent", "\"INVOKE\",\"SHUTDOWN\"").await;
    assert_eq!(
        (registration.kind, registration.invoke, registration.shutdown),
        (ExtensionKind::External, true, true)
    );
    let (mut quiet, registration) = Extension::register(&mut api, "quiet", "").await;
    assert!(!registration.invoke && !registration.shutdown);
    let (mut inside, registration) = Extension::register(&mut api, "inside", "\"INVOKE\"").await;
    assert_eq!(registration.kind, ExtensionKind::Internal);
    for (extension, name) in [(&mut agent, "agent"), (&mut quiet, "quiet"), (&mut inside, "inside")] {
        extension.ask().await;
        waits(&mut api, name).await;
    }
    let mut runtime = api.connect().await;
    runtime.get("/runtime/invocation/next").await;
    api.ready().await;
    api.session.deliver(invoke("id-1", "{}")).unwrap();
    let expect = serde_json::json!({
        "eventType": "INVOKE", "deadlineMs": 4_102_444_800_000_u64, "requestId": "id-1",
        "invokedFunctionArn": "arn:aws:lambda:us-east-1:123456789012:function:f",
        "tracing": {"type": "X-Amzn-Trace-Id",
            "value": "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"},
    });
    assert_eq!(agent.event().await, expect);
    assert_eq!(inside.event().await, expect);
    assert_eq!(runtime.reply().await.status, 200);
    api.delivered("id-1").await;
    agent.ask().await;
    waits(&mut api, "agent").await;
    api.session.shutdown(ShutdownReason::Spindown, 1_234, &[ExtensionId(0)]);
    let expect =
        serde_json::json!({"eventType": "SHUTDOWN", "shutdownReason": "spindown", "deadlineMs": 1_234});
    assert_eq!(agent.event().await, expect);
    assert!(timeout(std::time::Duration::from_millis(20), quiet.peer.try_reply()).await.is_err());
}

#[tokio::test]
async fn a_registration_is_answered_in_aws_s_words() {
    let mut api = Api::with_extensions(&["agent"]);
    let mut peer = api.connect().await;
    let name = "Lambda-Extension-Name: agent\r\nLambda-Extension-Accept-Feature: other, accountId\r\n";
    let reply = register(&mut peer, name, "{\"events\":[]}").await;
    let facts = "{\"functionName\":\"f\",\"functionVersion\":\"$LATEST\",\"handler\":\"index.handler\"";
    assert_eq!(reply.text(), format!("{facts},\"accountId\":\"123456789012\"}}"));
    said(&mut api).await;
    let other = "Lambda-Extension-Name: other\r\n";
    let reply = register(&mut peer, other, "{\"events\":[]}").await;
    assert_eq!(reply.text(), format!("{facts}}}"), "the account is told to those who accept it");
    said(&mut api).await;
    let mut check = async |headers: &str, body: &str, error_type: &str, message: &str| {
        let reply = register(&mut peer, headers, body).await;
        let expect = format!("{{\"errorMessage\":\"{message}\",\"errorType\":\"{error_type}\"}}\n");
        assert_eq!((reply.status, reply.text()), (403, expect.as_str()));
    };
    let empty = "{\"events\":[]}";
    check("", empty, "Extension.InvalidExtensionName", "Empty extension name").await;
    check(
        name,
        empty,
        "Extension.InvalidExtensionState",
        "State transition from Registered to Registered failed for extension agent. Error: State transition is not \
         allowed",
    )
    .await;
    check(other, empty, "Extension.InvalidExtensionState", "Extension with this name already registered")
        .await;
    check(
        "Lambda-Extension-Name: x\r\n",
        "{\"events\":[\"SHUTDOWN\"]}",
        "Extension.InvalidEventType",
        "SHUTDOWN: ShutdownEventNotSupportedForInternalExtension",
    )
    .await;
    for n in 0..8 {
        Extension::register(&mut api, &format!("internal-{n}"), "").await;
    }
    let x = "Lambda-Extension-Name: x\r\n";
    check(x, empty, "Extension.TooManyExtensions", "Extension limit (10) reached").await;
    let mut runtime = api.connect().await;
    runtime.get("/runtime/invocation/next").await;
    api.ready().await;
    check(x, empty, "Extension.RegistrationClosed", "Extension registration closed already").await;
}

#[tokio::test]
async fn identifiers_and_states_are_checked() {
    let mut api = Api::with_extensions(&["agent"]);
    let (mut agent, _) = Extension::register(&mut api, "agent", "\"INVOKE\"").await;
    let check = async |peer: &mut Peer, headers: &str, error_type: &str| {
        request(peer, "GET /2020-01-01/extension/event/next", headers, "").await;
        let reply = peer.reply().await;
        assert!(reply.status == 403 && reply.text().contains(error_type), "{}", reply.text());
    };
    let mut peer = api.connect().await;
    check(&mut peer, "", "Extension.MissingExtensionIdentifier").await;
    let bad = "Lambda-Extension-Identifier: nobody\r\n";
    check(&mut peer, bad, "Extension.InvalidExtensionIdentifier").await;
    let nobody = "Lambda-Extension-Identifier: 00000000-0000-4000-8000-000000000000\r\n";
    check(&mut peer, nobody, "Extension.UnknownExtensionIdentifier").await;
    agent.ask().await;
    waits(&mut api, "agent").await;
    let own = format!("Lambda-Extension-Identifier: {}\r\n", agent.identifier);
    check(&mut peer, &own, "State transition from Ready to Ready").await;
    let mut again = Extension { peer, identifier: agent.identifier.clone() };
    let init = "POST /2020-01-01/extension/init/error";
    let exit = "POST /2020-01-01/extension/exit/error";
    let kind = "Lambda-Extension-Function-Error-Type: Extension.Oops\r\n";
    assert!(again.post(exit, "", "{}").await.text().contains("Extension.MissingHeader"));
    assert!(again.post(init, kind, "{}").await.text().contains("from Ready to InitError"));
    for _ in 0..2 {
        assert_eq!(again.post(exit, kind, "{}").await.text(), "{\"status\":\"OK\"}\n");
        let what = ExtensionWhat::ExitError { error_type: "Extension.Oops".to_owned() };
        assert_eq!(said(&mut api).await, ("agent".to_owned(), what));
    }
}

#[tokio::test]
async fn a_reset_forgets_extensions_and_opens_registration() {
    let mut api = Api::with_extensions(&["agent"]);
    let (mut old, first) = Extension::register(&mut api, "agent", "").await;
    old.ask().await;
    waits(&mut api, "agent").await;
    api.session.reset();
    assert!(old.peer.try_reply().await.is_none(), "its connection is closed");
    let (_, second) = Extension::register(&mut api, "agent", "").await;
    assert_ne!(first.id, second.id);
}

#[tokio::test]
async fn telemetry_is_subscribed_to_during_init_only() {
    let mut api = Api::with_extensions(&["agent"]);
    let (mut agent, _) = Extension::register(&mut api, "agent", "").await;
    let path = "PUT /2022-07-01/telemetry";
    let body = "{\"schemaVersion\":\"2022-12-13\",\"types\":[\"platform\"],\
                \"destination\":{\"protocol\":\"HTTP\",\"URI\":\"http://sandbox.localdomain:8080\"}}";
    let reply = agent.post(path, "", body).await;
    assert_eq!((reply.status, reply.text()), (200, "OK"));
    let (_, what) = said(&mut api).await;
    let ExtensionWhat::Subscribed(subscription) = what else { panic!("{what:?}") };
    assert_eq!(subscription.destination, Destination::Http { port: 8080, path: "/".to_owned() });
    let reply = agent.post(path, "", "{}").await;
    assert!(reply.status == 400 && reply.text().contains("ValidationError"), "{}", reply.text());
    let reply = agent.post("PUT /2020-08-15/logs", "", body).await;
    assert!(reply.status == 202 && reply.text().contains("Logs.NotSupported"), "{}", reply.text());
    api.session.init_is_over();
    let reply = agent.post(path, "", body).await;
    assert!(reply.status == 403 && reply.text().contains("Telemetry.SubscriptionClosed"), "{}", reply.text());
}

const STREAMING: &str = "HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n\
     Lambda-Runtime-Function-Response-Mode: streaming\r\nTransfer-Encoding: chunked\r\n\
     Trailer: Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body\r\n\r\n";

/// A peer that has an event whose caller takes the answer as it comes, and has begun to answer.
async fn streaming(api: &mut Api) -> Peer {
    let mut peer = api.connect().await;
    api.session.deliver(danki_runtime_api::Invoke { stream: true, ..invoke("a", "{}") }).unwrap();
    assert_eq!(peer.next().await.status, 200);
    api.ready().await;
    api.delivered("a").await;
    peer.send(format!("POST /2018-06-01/runtime/invocation/a/response {STREAMING}")).await;
    peer
}

#[tokio::test]
async fn a_stream_is_handed_on_as_it_comes() {
    let mut api = Api::start();
    let mut peer = streaming(&mut api).await;
    peer.send("5\r\nhello\r\n").await;
    let RuntimeEvent::StreamBegun { mut chunks, content_type, .. } = api.event().await else { panic!() };
    assert_eq!(content_type.as_deref(), Some("text/plain"));
    assert_eq!(chunks.recv().await.unwrap(), "hello");
    peer.send("6\r\n world\r\n0\r\n\r\n").await;
    assert_eq!(chunks.recv().await.unwrap(), " world");
    assert_eq!(chunks.recv().await, None);
    assert_eq!(peer.reply().await.status, 202);
    match api.event().await {
        RuntimeEvent::Response { streaming: Some(streaming), body, .. } => {
            assert_eq!((streaming.bytes, body.len()), (11, 0));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_with_an_error() {
    for (rest, expect) in [
        ("0\r\nLambda-Runtime-Function-Error-Type: Function.Bad\r\n\r\n", "Function.Bad"),
        ("", "Runtime.TruncatedResponse"),
    ] {
        let mut api = Api::start();
        let mut peer = streaming(&mut api).await;
        peer.send("5\r\nhello\r\n").await;
        let RuntimeEvent::StreamBegun { mut chunks, .. } = api.event().await else { panic!() };
        peer.send(rest).await;
        match rest.is_empty() {
            true => drop(peer),
            false => assert_eq!(peer.reply().await.status, 202),
        }
        let (error_type, _) = api.answer("a").await.unwrap_err();
        assert_eq!(error_type, expect);
        assert_eq!(chunks.recv().await.unwrap(), "hello");
        assert_eq!(chunks.recv().await, None);
    }
}

#[tokio::test]
async fn a_stream_is_paced_beyond_its_burst_and_limited() {
    let mut api = Api::start();
    let mut peer = streaming(&mut api).await;
    let size = 7 * 1024 * 1024;
    let begun = Instant::now();
    let sent = async {
        peer.send(format!("{size:x}\r\n")).await;
        peer.0.write_all(&vec![b'x'; size]).await.unwrap();
        peer.send("\r\n0\r\n\r\n").await;
        assert_eq!(peer.reply().await.status, 202);
    };
    let read = async {
        let RuntimeEvent::StreamBegun { mut chunks, .. } = api.event().await else { panic!() };
        let mut length = 0;
        while let Some(chunk) = chunks.recv().await {
            length += chunk.len();
        }
        length
    };
    let ((), length) = timeout(DEADLINE, async { tokio::join!(sent, read) }).await.unwrap();
    assert_eq!(length, size);
    // 1 MiB beyond the burst at 2 MiB/s.
    assert!(begun.elapsed().as_millis() >= 450, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_stream_over_the_limit_is_refused_even_if_nobody_reads_it() {
    let mut api = Api::start();
    let mut peer = streaming(&mut api).await;
    peer.send("1\r\nx\r\n").await;
    let RuntimeEvent::StreamBegun { chunks, .. } = api.event().await else { panic!() };
    drop(chunks);
    let piece = vec![b'x'; 1024 * 1024];
    for _ in 0..STREAM_BYTES_MAX / (1024 * 1024) {
        peer.send("100000\r\n").await;
        peer.0.write_all(&piece).await.unwrap();
        peer.send("\r\n").await;
    }
    peer.send("0\r\n\r\n").await;
    assert_eq!(peer.reply().await.status, 413);
    assert_eq!(api.answer("a").await.unwrap_err().0, "Function.ResponseSizeTooLarge");
}
