//! Runtimes and extensions are somebody else's programs: whatever bytes they send to the Runtime, Extensions or Telemetry API, the session answers or closes, and lives on.
#![no_main]

use danki_runtime_api::{Limits, Profile, Session};
use libfuzzer_sys::fuzz_target;
use std::net::TcpListener;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// `/next` waits for an event that never comes: that is fine, after this time the input is done.
const PATIENCE: Duration = Duration::from_millis(5);

fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (session, _events) = Session::start(listener, Limits::default(), profile()).expect("session");
        exchange(address, data).await;
        let alive = exchange(address, b"GET /2018-06-01/ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        assert!(alive.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&alive));
        session.stop();
    });
});

/// With one external extension: what registers as `agent` gets an identifier that the seeds know.
fn profile() -> Profile {
    Profile { externals: vec!["agent".to_owned()], ..Profile::default() }
}

async fn exchange(address: std::net::SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("the session listens");
    let mut answer = Vec::new();
    // The session may close in the middle of what we send.
    let _ = stream.write_all(request).await;
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    answer
}
