//! What clients may do to the extension: HTTP of all sorts, and of none.

use crate::support::process::{descriptors, free_port, rss_kib};
use crate::support::{Client, Reply, Running, TOKEN, Upstream};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const A: &str = "/secretsmanager/get?secretId=a";

fn start() -> (Upstream, Running) {
    let upstream = Upstream::start(|call| Reply::value(call, "v"));
    let running = Running::start(&upstream.url, &[]);
    (upstream, running)
}

#[test]
fn who_may_ask_and_how() {
    let (upstream, running) = start();
    let raw = |request: &str| {
        let mut client = running.client();
        client.send(request.as_bytes());
        let answer = client.answer().expect("an answer");
        (answer.status, answer.body)
    };
    let check = |request: &str, status: u16, body: &str| {
        assert_eq!(raw(request), (status, body.to_owned()), "{request}")
    };
    let wrong = "the X-Aws-Parameters-Secrets-Token header is missing or wrong";
    check(&format!("GET {A} HTTP/1.1\r\n\r\n"), 401, wrong);
    check(&format!("GET {A} HTTP/1.1\r\nX-Aws-Parameters-Secrets-Token: \r\n\r\n"), 401, wrong);
    check(&format!("GET {A} HTTP/1.1\r\nX-Aws-Parameters-Secrets-Token: {TOKEN}x\r\n\r\n"), 401, wrong);
    check("GET /v1/a HTTP/1.1\r\nX-Aws-Parameters-Secrets-Token: x\r\n\r\n", 403, "Bad Token");
    let token = format!("x-aws-PARAMETERS-secrets-token: {TOKEN}\r\n");
    check(&format!("GET {A} HTTP/1.1\r\n{token}X-Forwarded-For: 1.2.3.4\r\n\r\n"), 400, "Forwarded");
    check(&format!("POST {A} HTTP/1.1\r\n{token}Content-Length: 0\r\n\r\n"), 405, "Not allowed");
    check(
        &format!("GET {A} HTTP/1.1\r\n{token}Content-Length: 4\r\n\r\nbody"),
        413,
        "a request has no body here",
    );
    check(&format!("GET /elsewhere HTTP/1.1\r\n{token}\r\n"), 404, "404 page not found");
    check("GET /ping HTTP/1.1\r\n\r\n", 200, "healthy");
    check("\x16\x03\x01 hello\r\n\r\n", 400, "the request is not HTTP/1.1");
    check(&format!("GET /v1/a?force=1 HTTP/1.1\r\n{token}\r\n"), 400, "unknown parameter: force");
    assert_eq!(upstream.count(), 0);
    let agent = raw(&format!("GET /v1/a HTTP/1.1\r\nX-Vault-Token: {TOKEN}\r\n\r\n"));
    let body = r#"{"ARN":"arn","Name":"a","VersionId":"v","SecretString":"v","VersionStages":["AWSCURRENT"],"CreatedDate":"1668586960.499"}"#;
    assert_eq!(agent, (200, body.to_owned()));
}

#[test]
fn connections_are_kept_as_http_has_it() {
    let (_upstream, running) = start();
    let mut kept = running.client();
    for _ in 0..3 {
        assert_eq!(kept.get(A).status, 200);
    }
    let token = format!("X-Aws-Parameters-Secrets-Token: {TOKEN}\r\n");
    // Two requests in one packet, the second in two.
    let mut pipelined = running.client();
    pipelined.send(format!("GET {A} HTTP/1.1\r\n{token}\r\nGET /ping HTTP/1.1\r\n").as_bytes());
    assert_eq!(pipelined.answer().expect("the first").status, 200);
    pipelined.send(b"\r\n");
    assert_eq!(pipelined.answer().expect("the second").body, "healthy");
    for request in [
        format!("GET {A} HTTP/1.0\r\n{token}\r\n"),
        format!("GET {A} HTTP/1.1\r\nConnection: close\r\n{token}\r\nGET /ping HTTP/1.1\r\n\r\n"),
        "nonsense\r\n\r\n".to_owned(),
    ] {
        let mut closing = running.client();
        closing.send(request.as_bytes());
        assert!(closing.answer().expect("an answer").head.contains("Connection: close"), "{request}");
        assert!(closing.is_over(), "{request}");
    }
}

#[test]
fn a_request_may_come_byte_by_byte_and_its_sender_may_be_done() {
    let (_upstream, running) = start();
    let mut slow = running.client();
    for byte in format!("GET {A} HTTP/1.1\r\nX-Aws-Parameters-Secrets-Token: {TOKEN}\r\n\r\n").into_bytes() {
        slow.send(&[byte]);
    }
    assert_eq!(slow.answer().expect("an answer").status, 200);
    let mut half = running.client();
    half.ask("/secretsmanager/get?secretId=not-cached");
    half.stream.get_ref().shutdown(Shutdown::Write).expect("open");
    assert_eq!(half.answer().expect("an answer").status, 200);
    assert!(half.is_over());
}

#[test]
fn what_waits_for_upstream_keeps_its_place() {
    let upstream = Upstream::start(|call| {
        Reply::After(Duration::from_millis(100), Box::new(Reply::value(call, call.id())))
    });
    let running = Running::start(&upstream.url, &[]);
    let mut client = running.client();
    client.ask("/secretsmanager/get?secretId=a");
    client.ask("/secretsmanager/get?secretId=b");
    client.ask("/ping");
    // A client that goes while it waits is nobody's loss.
    let mut gone = running.client();
    gone.ask("/secretsmanager/get?secretId=a");
    drop(gone);
    for name in ["a", "b"] {
        assert_eq!(client.answer().expect("an answer").json()["SecretString"], name);
    }
    assert_eq!(client.answer().expect("an answer").body, "healthy");
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let (_upstream, running) = start();
    let mut client = running.client();
    let long = format!("GET {A} HTTP/1.1\r\nX-Padding: {}\r\n", "x".repeat(1_000_000));
    // The other side may end the connection before it has read all of that.
    let _ = client.stream.get_mut().write_all(long.as_bytes());
    if let Some(answer) = client.answer() {
        assert_eq!(answer.status, 431);
    }
    assert!(client.is_over());
    assert_eq!(running.get(A).status, 200);
}

#[test]
fn who_is_too_slow_is_dropped_and_who_is_idle_is_not() {
    let upstream = Upstream::start(|call| Reply::value(call, "v"));
    let running = Running::start_with(&upstream.url, &[], |settings| {
        settings.client_patience = Duration::from_millis(100);
    });
    let (mut slow, mut idle) = (running.client(), running.client());
    assert_eq!(idle.get(A).status, 200);
    slow.send(b"GET /ping HTTP/1.1\r\nX-Half: ");
    assert!(slow.is_over());
    assert_eq!(idle.get(A).status, 200);
}

#[test]
fn an_answer_is_sent_in_pieces_to_who_takes_it_slowly() {
    let large = "x".repeat(60_000);
    let body = large.clone();
    let upstream = Upstream::start(move |call| Reply::value(call, &body));
    let running = Running::start(&upstream.url, &[]);
    let mut client = running.client();
    const TIMES: usize = 300; // 18 MB: more than any socket's buffers
    let request = format!("GET {A} HTTP/1.1\r\nX-Aws-Parameters-Secrets-Token: {TOKEN}\r\n\r\n");
    let mut sender = client.stream.get_ref().try_clone().expect("a descriptor");
    let sending = std::thread::spawn(move || {
        for _ in 0..TIMES {
            sender.write_all(request.as_bytes()).expect("it reads");
        }
    });
    for _ in 0..TIMES {
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.json()["SecretString"].as_str().map(str::len), Some(large.len()));
    }
    sending.join().expect("all sent");
}

/// The program as a process, without a platform: what needs descriptors, and what kills.
struct Process(Child, u16);

impl Process {
    fn start(upstream: &str) -> Process {
        let port = free_port();
        let child = Command::new(env!("CARGO_BIN_EXE_danki-secrets"))
            .env_clear()
            .envs(crate::support::variables(upstream))
            .env("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", port.to_string())
            .env("PARAMETERS_SECRETS_EXTENSION_CACHE_SIZE", "100")
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut process = Process(child, port);
        process.wait_until_it_serves();
        process
    }

    fn wait_until_it_serves(&mut self) {
        let mut stdout = self.0.stdout.take().expect("piped");
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains("Serving on port") {
            let mut byte = [0];
            assert_eq!(stdout.read(&mut byte).expect("readable"), 1, "{}", String::from_utf8_lossy(&said));
            said.extend(byte);
        }
        // A pipe that nobody reads would fill up and hold up who writes.
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ten_thousand_connections_are_bounded_and_the_newest_served() {
    let wanted = 10_000;
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let possible = limits.maximum.unwrap_or(u64::MAX).min(wanted + 500);
    let raised = rustix::process::Rlimit { current: Some(possible), maximum: limits.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).expect("up to the maximum");
    let many = usize::try_from(possible - 500).expect("small");
    let upstream = Upstream::start(|call| Reply::value(call, "v"));
    let process = Process::start(&upstream.url);
    let mut clients = Vec::new();
    for index in 0..many {
        let mut client = Client::connect(process.1, Some(TOKEN));
        if index % 100 == 0 {
            assert_eq!(client.get(A).status, 200, "connection {index}");
        }
        clients.push(client);
    }
    let descriptors = descriptors(process.0.id());
    assert!(descriptors < 1000, "{descriptors} descriptors");
    let mut last = clients.pop().expect("there are some");
    assert_eq!(last.get(A).status, 200);
    assert!(many < 1000 || clients[0].is_over());
    drop(clients);
    // While all places are taken by requests under way, a new client is told.
    let mut busy: Vec<_> = (0..800).map(|_| Client::connect(process.1, Some(TOKEN))).collect();
    for client in &mut busy {
        client.send(b"GET ");
    }
    let told = (0..50)
        .any(|_| Client::connect(process.1, Some(TOKEN)).answer().is_some_and(|answer| answer.status == 429));
    assert!(told);
}

#[test]
fn memory_stays_where_it_is() {
    // Values, refusals and nonsense; connections that end in every way.
    let upstream = Upstream::start(|call| match call.index % 4 {
        0 => Reply::refusal(400, "ResourceNotFoundException"),
        1 => Reply::Json(200, "<html>".into()),
        _ => Reply::value(call, &"x".repeat(10_000)),
    });
    let process = Process::start(&upstream.url);
    let round = |first: usize| {
        let mut kept = Client::connect(process.1, Some(TOKEN));
        for index in first..first + 400 {
            kept.get(&format!("/secretsmanager/get?secretId={index}&refreshNow=true"));
            kept.get(A);
            let mut broken = Client::connect(process.1, None);
            broken.send(b"GET /half");
            Client::connect(process.1, None).get("/elsewhere");
        }
    };
    // The cache is full after the first round: a hundred values of ten kilobytes.
    (0..2).for_each(|number| round(number * 400));
    let before = rss_kib(process.0.id());
    (2..8).for_each(|number| round(number * 400));
    let after = rss_kib(process.0.id());
    assert!(after < before + 1024, "{before} KiB before, {after} KiB after");
}

#[test]
fn killed_it_leaves_errors_and_no_values() {
    let upstream = Upstream::start(|call| Reply::value(call, "v"));
    let mut process = Process::start(&upstream.url);
    let mut client = Client::connect(process.1, Some(TOKEN));
    assert_eq!(client.get(A).status, 200);
    process.0.kill().expect("it runs");
    process.0.wait().expect("it ends");
    assert!(client.is_over());
    assert!(std::net::TcpStream::connect(("127.0.0.1", process.1)).is_err());
}
