//! A socket whose every wait ends at a deadline.

use super::failure::Failure;
use super::{CONNECT, LONGEST};
use crate::clock::{Now, now};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// When the waiting ends.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    began: Now,
    patience: Duration,
}

impl Deadline {
    /// From now on; no patience at all means the longest that is possible.
    pub fn after(patience: Duration) -> Deadline {
        let patience = if patience.is_zero() { LONGEST } else { patience.min(LONGEST) };
        Deadline { began: now(), patience }
    }

    /// What is left. By the monotonic clock alone: a function that was frozen in between has not waited.
    pub fn left(self) -> io::Result<Duration> {
        let passed = now().monotonic.saturating_sub(self.began.monotonic);
        match self.patience.checked_sub(passed) {
            Some(left) if !left.is_zero() => Ok(left),
            _ => Err(ErrorKind::TimedOut.into()),
        }
    }

    /// What an I/O error under this deadline means.
    pub fn failure(self, error: &io::Error) -> Failure {
        match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Failure::Timeout(self.patience.as_millis()),
            _ => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(tls) => Failure::Tls(tls.to_string()),
                None => Failure::Broken(error.to_string()),
            },
        }
    }
}

/// TCP.
#[derive(Debug)]
pub struct Plain {
    socket: TcpStream,
    /// Of the request under way.
    pub deadline: Deadline,
}

impl Plain {
    /// Connects to `host:port`, trying each of its addresses.
    pub fn connect(address: &str, deadline: Deadline) -> Result<Plain, Failure> {
        let addresses =
            address.to_socket_addrs().map_err(|error| Failure::Connect(format!("{address}: {error}")))?;
        let mut last = Failure::Connect(format!("{address}: no address"));
        for candidate in addresses {
            let left = deadline.left().map_err(|error| deadline.failure(&error))?;
            match TcpStream::connect_timeout(&candidate, left.min(CONNECT)) {
                Ok(socket) => {
                    // A request is one write; without this its TLS records could wait for acknowledgments. Not vital.
                    let _ = socket.set_nodelay(true);
                    return Ok(Plain { socket, deadline });
                }
                Err(error) if error.kind() == ErrorKind::TimedOut && deadline.left().is_err() => {
                    return Err(deadline.failure(&error));
                }
                Err(error) => last = Failure::Connect(format!("{candidate}: {error}")),
            }
        }
        Err(last)
    }
}

impl Read for Plain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.deadline.left()?))?;
        self.socket.read(buffer)
    }
}

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.deadline.left()?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
