//! The API as a runtime sees it, byte by byte.

#![allow(clippy::unwrap_used, reason = "helpers of tests: clippy sees only the tests themselves")]

use crate::common::{Api, DEADLINE, Peer, invoke};
use bytes::Bytes;
use danki_runtime_api::{Error, Limits, MAX_PAYLOAD_BYTES, RuntimeEvent, Streaming};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const OK: &str = "{\"status\":\"OK\"}\n";

/// A peer that has the event `id`.
async fn running(api: &mut Api, id: &str) -> Peer {
    let mut peer = api.connect().await;
    api.session.deliver(invoke(id, "{}")).unwrap();
    assert_eq!(peer.next().await.status, 200);
    api.ready().await;
    api.delivered(id).await;
    peer
}

#[tokio::test]
async fn invocations_on_one_connection() {
    let mut api = Api::start();
    let mut peer = api.connect().await;
    for n in 0..3 {
        let id = format!("id-{n}");
        peer.get("/runtime/invocation/next").await;
        api.ready().await;
        api.session.deliver(invoke(&id, format!("{{\"n\":{n}}}"))).unwrap();
        let event = peer.reply().await;
        assert_eq!((event.status, event.text()), (200, &*format!("{{\"n\":{n}}}")));
        for (name, value) in [
            ("Lambda-Runtime-Aws-Request-Id", &*id),
            ("Lambda-Runtime-Deadline-Ms", "4102444800000"),
            ("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:f"),
            (
                "Lambda-Runtime-Trace-Id",
                "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
            ),
            ("Content-Type", "application/json"),
        ] {
            assert_eq!(event.header(name), Some(value));
        }
        assert!(event.header("Lambda-Runtime-Invocation-Id").is_some());
        assert!(!event.head.contains("Cognito") && !event.head.contains("Client-Context"), "{}", event.head);
        api.delivered(&id).await;
        let reply = peer.post(&format!("/invocation/{id}/response"), "", "answer").await;
        assert_eq!(
            (reply.status, reply.text(), reply.header("Content-Type")),
            (202, OK, Some("application/json"))
        );
        assert_eq!(api.answer(&id).await, Ok("answer".into()));
    }
}

#[tokio::test]
async fn context_headers_are_passed_on() {
    let mut api = Api::start();
    let mut peer = api.connect().await;
    let mut event = invoke("a", "{}");
    event.client_context = Some("{\"custom\":{\"k\":\"é\"}}".to_owned());
    event.cognito_identity = Some("{\"cognitoIdentityId\":\"i\",\"cognitoIdentityPoolId\":\"p\"}".to_owned());
    api.session.deliver(event).unwrap();
    let got = peer.next().await;
    assert_eq!(got.header("Lambda-Runtime-Client-Context"), Some("{\"custom\":{\"k\":\"é\"}}"));
    assert_eq!(
        got.header("Lambda-Runtime-Cognito-Identity"),
        Some("{\"cognitoIdentityId\":\"i\",\"cognitoIdentityPoolId\":\"p\"}")
    );
    api.ready().await;
}

#[tokio::test]
async fn what_cannot_be_delivered_is_refused() {
    let mut api = Api::start();
    let mut bad = invoke("a", "{}");
    bad.client_context = Some("{\n}".to_owned());
    assert!(matches!(
        api.session.deliver(bad),
        Err(Error::NotAHeader { header: "lambda-runtime-client-context", .. })
    ));
    let big = invoke("a", vec![b' '; MAX_PAYLOAD_BYTES + 1]);
    assert!(matches!(api.session.deliver(big), Err(Error::PayloadTooLarge(n)) if n == MAX_PAYLOAD_BYTES + 1));
    let _peer = running(&mut api, "a").await;
    let busy = api.session.deliver(invoke("b", "{}")).unwrap_err();
    assert_eq!(busy.to_string(), "the runtime cannot take an event now: a is under way");
}

#[tokio::test]
async fn an_unanswered_event_comes_again() {
    let mut api = Api::start();
    let mut peer = running(&mut api, "a").await;
    assert_eq!(peer.next().await.header("Lambda-Runtime-Aws-Request-Id"), Some("a"));
    api.delivered("a").await;
    let mut another = api.connect().await;
    assert_eq!(another.next().await.header("Lambda-Runtime-Aws-Request-Id"), Some("a"));
    api.delivered("a").await;
    assert_eq!(another.post("/invocation/a/error", "", "{}").await.status, 202);
    assert_eq!(api.answer("a").await, Err(("Runtime.Unknown".to_owned(), "{}".into())));
}

#[tokio::test]
async fn refusals_in_aws_s_words() {
    let mut api = Api::start();
    let mut peer = running(&mut api, "a").await;
    let check = async |peer: &mut Peer, path: &str, status: u16, body: &str| {
        let reply = peer.post(path, "", "{}").await;
        assert_eq!((reply.status, reply.text()), (status, body), "{path}");
    };
    let bad_id = "{\"errorMessage\":\"Invalid request ID\",\"errorType\":\"InvalidRequestID\"}\n";
    let forbidden = |from: &str, to: &str| {
        format!(
            "{{\"errorMessage\":\"State transition from {from} to {to} failed for runtime. Error: State transition is \
             not allowed\",\"errorType\":\"InvalidStateTransition\"}}\n"
        )
    };
    check(&mut peer, "/invocation/b/response", 400, bad_id).await;
    check(&mut peer, "/init/error", 403, &forbidden("Running", "InitError")).await;
    check(&mut peer, "/invocation/a/response", 202, OK).await;
    check(
        &mut peer,
        "/invocation/a/response",
        403,
        &forbidden("RuntimeResponseSentState", "InvocationResponse"),
    )
    .await;
    check(
        &mut peer,
        "/invocation/a/error",
        403,
        &forbidden("RuntimeResponseSentState", "InvocationErrorResponse"),
    )
    .await;
    check(&mut peer, "/invocation/b/error", 400, bad_id).await;
    check(&mut peer, "/restore/error", 404, "404 page not found\n").await;
    peer.send("PUT /2022-07-01/telemetry HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}").await;
    assert_eq!(peer.reply().await.status, 403, "only extensions subscribe");
    peer.get("/ping").await;
    let pong = peer.reply().await;
    assert_eq!((pong.status, pong.text()), (200, "pong"));
    assert_eq!(api.answer("a").await, Ok("{}".into()));
}

#[tokio::test]
async fn a_failed_init_is_reported_once() {
    let mut api = Api::start();
    let mut peer = api.connect().await;
    let header = "Lambda-Runtime-Function-Error-Type: Runtime.ImportModuleError\r\n";
    assert_eq!(peer.post("/init/error", header, "{\"errorMessage\":\"x\"}").await.status, 202);
    match api.event().await {
        RuntimeEvent::InitError { error_type, body, .. } => {
            assert_eq!(
                (&*error_type, &body[..]),
                ("Runtime.ImportModuleError", &b"{\"errorMessage\":\"x\"}"[..])
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(peer.post("/init/error", header, "{}").await.status, 403);
    assert_eq!(peer.next().await.status, 403);
}

#[tokio::test]
async fn too_large_fails_the_invocation_not_the_env() {
    let mut api = Api::start();
    let mut peer = running(&mut api, "a").await;
    let full = vec![b'x'; MAX_PAYLOAD_BYTES];
    assert_eq!(peer.post("/invocation/a/response", "", &full).await.status, 202);
    assert_eq!(api.answer("a").await, Ok(full.clone().into()));
    let over = [&full[..], b"x"].concat();
    for (n, chunked) in [false, true].into_iter().enumerate() {
        let id = format!("big-{n}");
        api.session.deliver(invoke(&id, "{}")).unwrap();
        assert_eq!(peer.next().await.status, 200);
        let path = format!("/invocation/{id}/response");
        let reply = if chunked {
            peer.send(format!(
                "POST /2018-06-01/runtime{path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            ))
            .await;
            peer.send(format!("{:x}\r\n", over.len())).await;
            peer.send([&over[..], b"\r\n0\r\n\r\n"].concat()).await;
            peer.reply().await
        } else {
            peer.post(&path, "", &over).await
        };
        assert_eq!(reply.status, 413);
        assert_eq!(
            reply.text(),
            "{\"errorMessage\":\"Exceeded maximum allowed payload size (6291556 bytes).\",\
             \"errorType\":\"RequestEntityTooLarge\"}\n"
        );
        api.ready().await;
        api.delivered(&id).await;
        let payload = "{\"errorMessage\":\"Response payload size exceeded maximum allowed payload size (6291556 bytes).\",\
                       \"errorType\":\"Function.ResponseSizeTooLarge\"}";
        assert_eq!(api.answer(&id).await, Err(("Function.ResponseSizeTooLarge".to_owned(), payload.into())));
    }
}

/// curl asks before it sends a large body.
#[tokio::test]
async fn a_body_may_be_announced() {
    let mut api = Api::start();
    let mut peer = running(&mut api, "a").await;
    let head = "POST /2018-06-01/runtime/invocation/a/response HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n";
    peer.send(format!("{head}Expect: 100-continue\r\n\r\n")).await;
    let mut go_on = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
    timeout(DEADLINE, peer.0.read_exact(&mut go_on)).await.expect("an answer in time").unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    peer.send("{}").await;
    assert_eq!(peer.reply().await.status, 202);
    assert_eq!(api.answer("a").await, Ok("{}".into()));
}

#[tokio::test]
async fn a_truncated_body_fails_the_invocation() {
    let mut api = Api::start();
    for (n, head) in
        ["Transfer-Encoding: chunked\r\n\r\n5\r\nab", "Content-Length: 5\r\n\r\nab"].into_iter().enumerate()
    {
        for half_close in [true, false] {
            let id = format!("{n}-{half_close}");
            let mut peer = running(&mut api, &id).await;
            peer.send(format!(
                "POST /2018-06-01/runtime/invocation/{id}/response HTTP/1.1\r\nHost: x\r\n{head}"
            ))
            .await;
            if half_close {
                peer.0.shutdown().await.unwrap();
                let reply = peer.reply().await;
                assert_eq!(
                    (reply.status, reply.text()),
                    (
                        400,
                        "{\"errorMessage\":\"HTTP request detected as truncated\",\"errorType\":\"TruncatedHTTPRequest\"}\n"
                    )
                );
            }
            drop(peer);
            let (error_type, _) = api.answer(&id).await.unwrap_err();
            assert_eq!(error_type, "Runtime.TruncatedResponse");
        }
    }
}

#[tokio::test]
async fn streaming_responses() {
    let mut api = Api::start();
    let mut peer = running(&mut api, "a").await;
    let stream = |id: &str, content_type: &str, rest: &str| {
        format!(
            "POST /2018-06-01/runtime/invocation/{id}/response HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\n\
             Lambda-Runtime-Function-Response-Mode: streaming\r\nTransfer-Encoding: chunked\r\n\
             Trailer: Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body\r\n\r\n{rest}"
        )
    };
    let body = "1b\r\n{\"statusCode\":201}\0\0\0\0\0\0\0\0h\r\n4\r\nello\r\n0\r\n\r\n";
    peer.send(stream("a", "application/vnd.awslambda.http-integration-response", body)).await;
    assert_eq!(peer.reply().await.status, 202);
    match api.event().await {
        RuntimeEvent::Response { body, content_type, streaming, .. } => {
            assert_eq!(&body[..], b"{\"statusCode\":201}\0\0\0\0\0\0\0\0hello");
            assert_eq!(content_type.as_deref(), Some("application/vnd.awslambda.http-integration-response"));
            assert_eq!(
                streaming,
                Some(Streaming { prelude: Some(Bytes::from_static(b"{\"statusCode\":201}")), bytes: 31 })
            );
        }
        other => panic!("{other:?}"),
    }
    api.session.deliver(invoke("b", "{}")).unwrap();
    assert_eq!(peer.next().await.status, 200);
    api.ready().await;
    api.delivered("b").await;
    let body = "2\r\nab\r\n0\r\nLambda-Runtime-Function-Error-Type: Function.Broken\r\n\
                Lambda-Runtime-Function-Error-Body: eyJhIjoxfQ==\r\n\r\n";
    peer.send(stream("b", "application/octet-stream", body)).await;
    assert_eq!(peer.reply().await.status, 202);
    assert_eq!(api.answer("b").await, Err(("Function.Broken".to_owned(), "{\"a\":1}".into())));
}

#[tokio::test]
async fn a_bad_response_mode_fails_the_invocation() {
    let mut api = Api::start();
    let mut peer = running(&mut api, "a").await;
    let reply =
        peer.post("/invocation/a/response", "Lambda-Runtime-Function-Response-Mode: fast\r\n", "{}").await;
    assert_eq!(
        (reply.status, reply.text()),
        (
            400,
            "{\"errorMessage\":\"Invalid function response mode\",\"errorType\":\"InvalidFunctionResponseMode\"}\n"
        )
    );
    let (error_type, _) = api.answer("a").await.unwrap_err();
    assert_eq!(error_type, "Runtime.InvalidResponseModeHeader");
    peer.get("/runtime/invocation/next").await;
    api.ready().await;
}

#[tokio::test]
async fn posts_of_an_earlier_attempt_are_gone() {
    let api = Api::start();
    let mut peer = api.connect().await;
    api.session.deliver(invoke("a", "{}")).unwrap();
    let first = peer.next().await.header("Lambda-Runtime-Invocation-Id").unwrap().to_owned();
    api.session.reset();
    let mut peer = api.connect().await;
    api.session.deliver(invoke("a", "{}")).unwrap();
    let second = peer.next().await.header("Lambda-Runtime-Invocation-Id").unwrap().to_owned();
    for (echo, status) in [(first, 410), (second, 202)] {
        let header = format!("Lambda-Runtime-Invocation-Id: {echo}\r\n");
        assert_eq!(peer.post("/invocation/a/response", &header, "{}").await.status, status);
    }
}

#[tokio::test]
async fn a_killed_runtime_is_forgotten() {
    let mut api = Api::start();
    let mut waiting = api.connect().await;
    waiting.get("/runtime/invocation/next").await;
    api.ready().await;
    let mut idle = api.connect().await;
    idle.get("/ping").await;
    idle.reply().await;
    // Still in the backlog, with a request, when the reset comes: no await in between lets the accept loop run.
    let std = std::net::TcpStream::connect(api.address).unwrap();
    std::io::Write::write_all(
        &mut &std,
        b"GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: x\r\n\r\n",
    )
    .unwrap();
    api.session.reset();
    assert!(timeout(DEADLINE, waiting.try_reply()).await.expect("closed").is_none());
    idle.get("/runtime/invocation/next").await;
    assert!(timeout(DEADLINE, idle.try_reply()).await.expect("closed").is_none());
    // The next thing the host hears of is the new process.
    let mut fresh = api.connect().await;
    assert_eq!(fresh.post("/init/error", "", "{}").await.status, 202);
    assert!(matches!(api.event().await, RuntimeEvent::InitError { .. }));
}

#[tokio::test]
async fn connections_are_bounded_at_once_but_not_in_sequence() {
    let mut api = Api::with(Limits { connections: 3, events: 2 });
    for _ in 0..50 {
        let mut peer = api.connect().await;
        peer.send("GET /2018-06-01/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        assert_eq!(peer.reply().await.status, 200);
        assert!(peer.try_reply().await.is_none());
    }
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut peer = api.connect().await;
        peer.get("/ping").await;
        peer.reply().await;
        held.push(peer);
    }
    let mut over = api.connect().await;
    let _ = over.0.write_all(b"GET /2018-06-01/ping HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(timeout(DEADLINE, over.try_reply()).await.expect("closed").is_none());
    held[0].get("/runtime/invocation/next").await;
    api.ready().await;
}

#[tokio::test]
async fn the_end() {
    let mut api = Api::start();
    let mut peer = api.connect().await;
    peer.get("/runtime/invocation/next").await;
    api.ready().await;
    api.session.stop();
    assert!(timeout(DEADLINE, api.events.next()).await.expect("ended").is_none());
    assert!(timeout(DEADLINE, peer.try_reply()).await.expect("closed").is_none());
}
