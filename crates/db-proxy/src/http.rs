//! Serves the metrics: one request at a time, any path, then closes.

use crate::Error;
use crate::metrics::Metrics;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Somebody who does not ask in this time is not answered.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(listener: TcpListener, proxy: String, metrics: Arc<Metrics>) -> Result<Self, Error> {
        let system = |what| move |error| Error::System { what, error };
        let address = listener.local_addr().map_err(system("the listener's address"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serve = move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                if let Ok(stream) = stream {
                    // Who asks may be gone before the answer.
                    let _gone = answer(stream, &metrics.text(&proxy));
                }
            }
        };
        let thread =
            std::thread::Builder::new().name("metrics".into()).spawn(serve).map_err(system("a thread"))?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the thread out of `accept`.
        let _woken = TcpStream::connect_timeout(&self.address, PATIENCE);
        if let Some(thread) = self.thread.take() {
            let _panicked_already_said_so = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, body: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = [0; 4096];
    let _ignored = stream.read(&mut request)?;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
