//! A non-blocking socket with or without TLS, and the bytes that it has not taken yet.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{self, Read, Write};

/// More unsent bytes than this stop reading from the other side.
pub(crate) const FULL: usize = 256 * 1024;

pub(crate) struct Conduit {
    fd: OwnedFd,
    tls: Option<Box<rustls::Connection>>,
    unsent: Vec<u8>,
    sent: usize,
    /// What epoll was last told.
    pub interest: rustix::event::epoll::EventFlags,
}

/// What a read brought.
pub(crate) enum Got {
    Bytes(usize),
    Nothing,
    End,
}

impl Conduit {
    pub fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            tls: None,
            unsent: Vec::new(),
            sent: 0,
            interest: rustix::event::epoll::EventFlags::empty(),
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub const fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// TLS from here on; `early` is what came behind the last plain byte.
    pub fn start_tls(&mut self, connection: rustls::Connection, mut early: &[u8]) -> io::Result<()> {
        let mut connection = Box::new(connection);
        while !early.is_empty() {
            connection.read_tls(&mut early)?;
            connection.process_new_packets().map_err(io::Error::other)?;
        }
        self.tls = Some(connection);
        self.flush()
    }

    /// Reads what there is, once. With TLS there may be more although the socket is empty: see [`Conduit::has_more`].
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Got> {
        let Some(tls) = &mut self.tls else {
            return match recv(&self.fd, buffer, RecvFlags::empty()) {
                Ok((0, _)) => Ok(Got::End),
                Ok((length, _)) => Ok(Got::Bytes(length)),
                Err(Errno::AGAIN | Errno::INTR) => Ok(Got::Nothing),
                Err(error) => Err(error.into()),
            };
        };
        let mut ended = false;
        if tls.wants_read() {
            match tls.read_tls(&mut Socket(self.fd.as_fd())) {
                Ok(0) => ended = true,
                Ok(_) => {
                    if let Err(error) = tls.process_new_packets() {
                        // The alert that says why.
                        let _lost_anyway = self.flush();
                        return Err(io::Error::other(error));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        let got = match tls.reader().read(buffer) {
            Ok(0) => Got::End,
            Ok(length) => Got::Bytes(length),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !ended => Got::Nothing,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Got::End,
            Err(error) => return Err(error),
        };
        if self.tls.as_ref().is_some_and(|tls| tls.wants_write()) {
            self.flush()?;
        }
        Ok(got)
    }

    /// Whether decrypted bytes wait.
    pub fn has_more(&mut self) -> bool {
        self.tls.as_mut().is_some_and(|tls| {
            let readable =
                tls.process_new_packets().map(|state| state.plaintext_bytes_to_read()).unwrap_or(0);
            readable > 0
        })
    }

    /// Sends what the socket takes and keeps the rest.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(tls) = &mut self.tls {
            tls.set_buffer_limit(None);
            tls.writer().write_all(bytes)?;
            return self.flush();
        }
        let mut sent = 0;
        if self.unsent.is_empty() {
            sent = match send(&self.fd, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => sent,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Err(error) => return Err(error.into()),
            };
        }
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Sends more of what was kept.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.unsent.len() {
            match send(&self.fd, &self.unsent[self.sent..], SendFlags::NOSIGNAL) {
                Ok(sent) => self.sent += sent,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        self.unsent = Vec::new();
        self.sent = 0;
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                match tls.write_tls(&mut Socket(self.fd.as_fd())) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Whether something waits for the socket.
    pub fn is_behind(&self) -> bool {
        !self.unsent.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// How much waits for the socket; with TLS, nothing or a lot.
    pub fn backlog(&self) -> usize {
        match &self.tls {
            Some(tls) if tls.wants_write() => FULL,
            _ => self.unsent.len() - self.sent,
        }
    }

    /// Says goodbye as TLS wants it.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        let _peer_may_be_gone = self.flush();
    }
}

/// The socket as rustls wants it.
struct Socket<'a>(BorrowedFd<'a>);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.0, buffer, RecvFlags::empty())?.0)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, buffer, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
