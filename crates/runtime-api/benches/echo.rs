//! What the Runtime API adds to a warm invocation: `cargo bench -p danki-runtime-api`.
//!
//! The span is from `deliver` to the `Response` event, as the host sees it, with the runtime waiting in `/next`. The `raw` client
//! does nothing but write and read, so its figure is the API's own; node and python add their bootstraps and an echo handler.
//! `floor` is one byte there and back between two threads with blocking sockets: what this machine's wake-ups cost.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::process::{Process, root};
use common::{Api, invoke};
use danki_runtime_api::RuntimeEvent;
use danki_sys::clock::monotonic_ns;
use std::io::{Read, Write};
use std::net::TcpStream;

const ROUNDS: usize = 5_000;
const WARM_UP: usize = 500;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        // In a task, as in danki: the main thread is not one of the workers.
        tokio::spawn(run()).await.unwrap();
    });
}

async fn run() {
    tokio::task::spawn_blocking(floor).await.unwrap();
    let mut api = Api::start();
    let address = api.address;
    std::thread::spawn(move || raw_runtime(TcpStream::connect(address).unwrap()));
    measure("raw", &mut api, "{}").await;
    let fixtures = root().join("crates/runtime-api/tests/fixtures");
    for (language, program, file, handler) in [
        ("node", "node", "runtimes/node/bootstrap.mjs", "index.handler"),
        ("python", "python3", "runtimes/python/bootstrap.py", "app.handler"),
    ] {
        let mut api = Api::start();
        let process = Process::start(&api, program, &[root().join(file)], &fixtures.join(language), handler);
        measure(language, &mut api, "{\"op\":\"echo\",\"value\":1}").await;
        process.kill().await;
    }
}

async fn measure(name: &str, api: &mut Api, payload: &'static str) {
    let mut spans = Vec::new();
    api.ready().await;
    for round in 0..WARM_UP + ROUNDS {
        let id = format!("8f5b7a3e-0000-4000-8000-{round:012}");
        let from = monotonic_ns();
        api.session.deliver(invoke(&id, payload)).unwrap();
        api.delivered(&id).await;
        assert!(matches!(api.event().await, RuntimeEvent::Response { .. }));
        let to = monotonic_ns();
        api.ready().await;
        if round >= WARM_UP {
            spans.push((to - from) / 100);
        }
    }
    print(name, spans);
}

fn floor() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    for stream in [&near, &far] {
        stream.set_nodelay(true).unwrap();
    }
    std::thread::spawn(move || {
        let mut byte = [0];
        while far.read_exact(&mut byte).is_ok() && far.write_all(&byte).is_ok() {}
    });
    let mut spans = Vec::new();
    for _ in 0..ROUNDS {
        let from = monotonic_ns();
        near.write_all(&[1]).unwrap();
        near.read_exact(&mut [0]).unwrap();
        spans.push((monotonic_ns() - from) / 100);
    }
    print("floor", spans);
}

fn print(name: &str, mut spans: Vec<u64>) {
    spans.sort_unstable();
    let at = |q: usize| spans[ROUNDS * q / 100] as f64 / 10.0;
    println!("{name}: n {ROUNDS}, p50 {} µs, p90 {} µs, p99 {} µs", at(50), at(90), at(99));
}

/// Blocking reads and writes; ends when the session does.
fn raw_runtime(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 65536];
    loop {
        stream.write_all(b"GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let Ok(n @ 1..) = stream.read(&mut buffer) else { return };
        let event = std::str::from_utf8(&buffer[..n]).unwrap();
        let id = event.split("Aws-Request-Id: ").nth(1).unwrap().split('\r').next().unwrap();
        let post = format!(
            "POST /2018-06-01/runtime/invocation/{id}/response HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        stream.write_all(post.as_bytes()).unwrap();
        let Ok(1..) = stream.read(&mut buffer) else { return };
    }
}
