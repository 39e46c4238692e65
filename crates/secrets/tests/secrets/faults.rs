//! What goes wrong behind the extension, and what its client sees of it.

use crate::support::{Call, Reply, Running, Upstream, tls};
use std::time::Duration;

const UNEXPECTED: &str = "an unexpected error occurred while executing request";
const A: &str = "/secretsmanager/get?secretId=a";
const DETAILED: (&str, &str) = ("DANKI_SECRETS_DETAILED_ERRORS", "true");

fn value_of(answer: &crate::support::Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["SecretString"].as_str().expect("a string").to_owned()
}

/// One request to an upstream that always answers so: status in AWS's way and in detail, and upstream calls made for one.
fn check(script: fn(&Call) -> Reply, more: &[(&str, &str)], detailed: u16, calls: usize, logged: &str) {
    let upstream = Upstream::start(script);
    let running = Running::start(&upstream.url, more);
    assert!(running.get(A).is(400, UNEXPECTED));
    assert_eq!(upstream.count(), calls);
    let log = running.logged();
    assert!(log.contains("ERROR GetSecretValue request encountered an error: operation error Secrets Manager: GetSecretValue, "), "{log}");
    assert!(log.contains(logged), "{log}");
    let in_detail = Running::start(&upstream.url, &[more, &[DETAILED]].concat());
    let answer = in_detail.get(A);
    assert_eq!(answer.status, detailed, "{answer:?}");
    assert_eq!(answer.json()["status"], detailed);
}

#[test]
fn refusals_are_told_as_aws_tells_them() {
    let denied =
        "https response error StatusCode: 400, RequestID: r-1, api error AccessDeniedException: because";
    check(|_| Reply::refusal(400, "AccessDeniedException"), &[], 400, 1, denied);
    check(
        |_| Reply::refusal(400, "com.amazonaws.secretsmanager#ResourceNotFoundException"),
        &[],
        400,
        1,
        "api error ResourceNotFoundException",
    );
    check(|_| Reply::refusal(400, "ExpiredTokenException"), &[], 400, 1, "ExpiredTokenException");
}

#[test]
fn what_may_pass_is_tried_three_times() {
    check(|_| Reply::refusal(500, "InternalServiceError"), &[], 500, 3, "StatusCode: 500");
    check(|_| Reply::refusal(400, "ThrottlingException"), &[], 400, 3, "ThrottlingException");
    check(|_| Reply::Close, &[], 502, 3, "the answer broke off");
    let half = |_: &Call| {
        Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"SecretString\":\"hal".to_vec())
    };
    check(half, &[], 502, 3, "the answer broke off");
}

#[test]
fn a_slow_service_ends_at_the_timeout() {
    let slow = |call: &Call| Reply::After(Duration::from_secs(20), Box::new(Reply::value(call, "late")));
    check(slow, &[("SECRETS_MANAGER_TIMEOUT_MILLIS", "100")], 504, 1, "the request took longer than 100 ms");
}

#[test]
fn nonsense_is_not_passed_on() {
    check(|_| Reply::Json(200, "<html>".into()), &[], 502, 1, "the answer cannot be read");
    check(|_| Reply::Raw(b"220 smtp.example ESMTP\r\n".to_vec()), &[], 502, 3, "the answer broke off");
}

#[test]
fn another_try_may_succeed() {
    let upstream = Upstream::start(|call| match call.index {
        0 => Reply::refusal(503, "ServiceUnavailable"),
        1 => Reply::refusal(400, "ThrottlingException"),
        _ => Reply::value(call, "v"),
    });
    let running = Running::start(&upstream.url, &[]);
    assert_eq!(value_of(&running.get(A)), "v");
}

#[test]
fn a_connection_that_died_of_idleness_costs_no_error() {
    // Each answer's connection is ended without a word, though it said nothing of that.
    let upstream = Upstream::start(|call| {
        let Reply::Json(_, json) = Reply::value(call, "v") else { unreachable!() };
        Reply::Raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{json}", json.len()).into_bytes())
    });
    let running = Running::start(&upstream.url, &[("SECRETS_MANAGER_TTL", "0")]);
    let mut client = running.client();
    for _ in 0..5 {
        assert_eq!(value_of(&client.get(A)), "v");
    }
    assert_eq!(upstream.count(), 5);
}

#[test]
fn a_wrong_clock_is_put_right_once() {
    let upstream = Upstream::start(|call| {
        let signed_at = call.field("x-amz-date").expect("a date");
        if signed_at.starts_with("20371116T08") {
            return Reply::value(call, "v");
        }
        let words = r#"{"__type":"InvalidSignatureException","message":"Signature expired: x is now earlier than y"}"#;
        Reply::With(400, "Date: Mon, 16 Nov 2037 08:22:40 GMT", words.into())
    });
    let running = Running::start(&upstream.url, &[]);
    assert_eq!(value_of(&running.get(A)), "v");
    assert_eq!(value_of(&running.get("/secretsmanager/get?secretId=b")), "v");
    assert_eq!(upstream.count(), 3);
}

#[test]
fn tls_is_trusted_by_the_named_bundle_only() {
    let authority = tls::authority();
    let upstream = Upstream::start_with(Some(authority.server), |call| Reply::value(call, "v"));
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("root.pem");
    std::fs::write(&bundle, authority.root).expect("written");
    let trusting = Running::start(&upstream.url, &[("AWS_CA_BUNDLE", bundle.to_str().expect("UTF-8"))]);
    assert_eq!(value_of(&trusting.get(A)), "v");
    let before = upstream.count();
    let distrusting = Running::start(&upstream.url, &[]);
    assert!(distrusting.get(A).is(400, UNEXPECTED));
    let log = distrusting.logged();
    assert!(log.contains("request send failed, tls: ") && log.contains("UnknownIssuer"), "{log}");
    assert_eq!(upstream.count(), before);
    let unreadable = Running::start(&upstream.url, &[("AWS_CA_BUNDLE", "/nowhere/at/all"), DETAILED]);
    assert_eq!(unreadable.get(A).status, 502);
}

#[test]
fn a_tls_alert_is_not_a_value() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = stream;
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            // A fatal alert, handshake_failure.
            let _ = std::io::Write::write_all(&mut stream, &[21, 3, 3, 0, 2, 2, 40]);
        }
    });
    let running = Running::start(&url, &[]);
    assert!(running.get(A).is(400, UNEXPECTED));
    assert!(running.logged().contains("tls: received fatal alert"), "{}", running.logged());
}

#[test]
fn nobody_there_is_an_error() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let running = Running::start(&format!("http://{free}"), &[DETAILED]);
    let answer = running.get(A);
    assert_eq!(answer.status, 502);
    assert!(answer.body.contains("request send failed"), "{answer:?}");
}

#[test]
fn a_rotated_secret_is_seen_when_asked_for_and_a_deleted_one_is_gone() {
    let upstream = Upstream::start(|call| match call.index {
        0 => Reply::value(call, "old"),
        1 => Reply::value(call, "new"),
        _ => Reply::refusal(400, "ResourceNotFoundException"),
    });
    let running = Running::start(&upstream.url, &[("DANKI_SECRETS_STALE_IF_ERROR", "600")]);
    assert_eq!(value_of(&running.get(A)), "old");
    assert_eq!(value_of(&running.get(A)), "old");
    assert_eq!(value_of(&running.get(&format!("{A}&refreshNow=true"))), "new");
    assert_eq!(value_of(&running.get(A)), "new");
    assert!(running.get(&format!("{A}&refreshNow=1")).is(400, UNEXPECTED));
    assert!(running.get(A).is(400, UNEXPECTED));
}

#[test]
fn a_full_cache_forgets_the_least_recently_used() {
    let upstream = Upstream::start(|call| Reply::value(call, "v"));
    let running = Running::start(&upstream.url, &[("PARAMETERS_SECRETS_EXTENSION_CACHE_SIZE", "2")]);
    let get = |id: &str| value_of(&running.get(&format!("/secretsmanager/get?secretId={id}")));
    for id in ["a", "b", "a", "c", "a"] {
        get(id);
    }
    assert_eq!(upstream.count(), 3);
    get("b");
    assert_eq!(upstream.count(), 4);
}

#[test]
fn switched_off_the_cache_keeps_nothing() {
    for off in [("PARAMETERS_SECRETS_EXTENSION_CACHE_ENABLED", "FALSE"), ("SECRETS_MANAGER_TTL", "0")] {
        let upstream = Upstream::start(|call| Reply::value(call, "v"));
        let running = Running::start(&upstream.url, &[off]);
        for _ in 0..3 {
            running.get(A);
        }
        assert_eq!(upstream.count(), 3, "{off:?}");
    }
}

#[test]
fn a_hundred_concurrent_misses_make_one_upstream_call() {
    let upstream =
        Upstream::start(|call| Reply::After(Duration::from_millis(200), Box::new(Reply::value(call, "v"))));
    let running = Running::start(&upstream.url, &[]);
    let mut clients: Vec<_> = (0..100).map(|_| running.client()).collect();
    for client in &mut clients {
        client.ask(A);
    }
    for client in &mut clients {
        assert_eq!(value_of(&client.answer().expect("an answer")), "v");
    }
    assert_eq!(upstream.count(), 1);
}

#[test]
fn upstream_sees_at_most_the_allowed_connections() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (inside, peak) = (Arc::clone(&now), Arc::clone(&most));
    let upstream = Upstream::start(move |call| {
        peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::park_timeout(Duration::from_millis(20));
        inside.fetch_sub(1, Ordering::SeqCst);
        Reply::value(call, call.id())
    });
    let running = Running::start(&upstream.url, &[]);
    let mut clients: Vec<_> = (0..20).map(|_| running.client()).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("/secretsmanager/get?secretId={index}"));
    }
    for (index, client) in clients.iter_mut().enumerate() {
        assert_eq!(value_of(&client.answer().expect("an answer")), index.to_string());
    }
    assert_eq!((upstream.count(), most.load(Ordering::SeqCst)), (20, 3));
}

#[test]
fn no_value_and_no_token_is_ever_logged() {
    let upstream = Upstream::start(|call| match call.index {
        0 => Reply::value(call, "very hidden value"),
        _ => Reply::refusal(400, "AccessDeniedException"),
    });
    let mut running = Running::start(&upstream.url, &[("DANKI_SECRETS_METRICS", "true")]);
    running.get(A);
    running.get(A);
    running.get("/systemsmanager/parameters/get?name=b");
    running.stop().expect("a good end");
    let log = running.logged();
    assert!(log.contains("api error AccessDeniedException") && log.contains("\"Hits\":1"), "{log}");
    assert!(
        !log.contains("hidden") && !log.contains(crate::support::TOKEN) && !log.contains("AWS4-HMAC"),
        "{log}"
    );
}
