//! New connections to the database: for the pool, to ask how it is, to cancel a statement.

use super::{ACCEPTS, Engine, LISTENER, PROBE_AGAIN_NS, PROBE_NS, Role, SERVER, Server};
use crate::conduit::Conduit;
use crate::event::Event;
use crate::protocol::Protocol;
use crate::turn::Failure;
use danki_db_pool::{ConnId, Key};
use danki_sys::clock::monotonic_ns;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A cancel request that the database does not take in this time is given up.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

impl<P: Protocol> Engine<P> {
    pub(super) fn open(&mut self, conn: ConnId, key: Key, role: Role) {
        let now_ns = monotonic_ns();
        let made = start_connect(self.target());
        let (fd, error) = match made {
            Ok(fd) => (fd, None),
            Err((Some(fd), error)) => (fd, Some(error)),
            Err((None, error)) => {
                let what = format!("no socket: {error}");
                (self.parts.sink)(&Event::Failed { what });
                if role == Role::Pooled {
                    self.pool.open_failed(now_ns, conn);
                }
                return;
            }
        };
        let mut conduit = Conduit::new(fd);
        let watched =
            error.is_none() && Self::add(&self.poll, conn.0 | SERVER, &mut conduit, EventFlags::OUT);
        let session = self.protocol.connect(conn, key);
        let server = Server {
            conduit,
            session,
            input: Vec::new(),
            client: None,
            role,
            key,
            connecting: true,
            ready: false,
            ended: false,
            pinned: false,
            opened_ns: now_ns,
            moves: self.place.moves,
        };
        self.servers.insert(conn, server);
        if !watched {
            let why = error.map_or("epoll".to_owned(), |error| error.to_string());
            self.fail_server(conn, Failure::Unavailable(format!("cannot connect: {why}")));
        }
    }

    pub(super) fn start_probe(&mut self, now_ns: u64) {
        self.probe_at_ns = now_ns + PROBE_NS;
        self.ask_where();
        if self.probing.is_some_and(|conn| self.servers.contains_key(&conn)) {
            return;
        }
        let Some(key) = self.protocol.probe_key() else { return self.listen() };
        self.next_probe += 1;
        let conn = ConnId(self.next_probe);
        self.probing = Some(conn);
        self.probes += 1;
        self.open(conn, key, Role::Probe);
    }

    pub(super) fn probed(&mut self, conn: ConnId, max: u32) {
        if let Some(mut server) = self.servers.remove(&conn) {
            server.conduit.close();
        }
        self.probing = None;
        self.parts.metrics.availability_percentage.store(100, Relaxed);
        if self.parts.config.target.max_connections.is_none() {
            self.limit(max);
        } else {
            self.limit(self.database_max);
        }
        self.listen();
    }

    pub(super) fn probe_failed(&mut self, failure: &Failure) {
        self.probing = None;
        self.parts.metrics.availability_percentage.store(0, Relaxed);
        self.probe_at_ns = monotonic_ns() + PROBE_AGAIN_NS;
        let why = match failure {
            Failure::Unavailable(why) => why.clone(),
            Failure::Refused(_) => "the account is refused".to_owned(),
        };
        (self.parts.sink)(&Event::Unhealthy { why });
        self.listen();
    }

    /// Clients are taken once the database has been asked, so that they are greeted with its version.
    fn listen(&mut self) {
        if self.listening || self.stop_by_ns.is_some() {
            return;
        }
        let added =
            epoll::add(&self.poll, &self.parts.listener, EventData::new_u64(LISTENER), EventFlags::IN);
        self.listening = added.is_ok();
        (self.parts.sink)(&Event::Listening { backlog: ACCEPTS });
    }

    /// A connection for a few bytes and no answer. It waits for the database, so it has a thread; there are few.
    pub(super) fn send_apart(&mut self, bytes: Vec<u8>) {
        let address = self.target();
        let send = move || {
            if let Ok(mut stream) = TcpStream::connect_timeout(&address, CANCEL_TIMEOUT) {
                let _ends_either_way = stream.set_read_timeout(Some(CANCEL_TIMEOUT));
                let _lost_if_gone = std::io::Write::write_all(&mut stream, &bytes);
                // The server closes when it has sent the signal.
                let _end = std::io::Read::read(&mut stream, &mut [0; 1]);
            }
        };
        if std::thread::Builder::new().name("cancel".into()).spawn(send).is_err() {
            (self.parts.sink)(&Event::Failed { what: "no thread for a cancel request".into() });
        }
    }
}

type NotConnected = (Option<OwnedFd>, Errno);

fn start_connect(address: SocketAddr) -> Result<OwnedFd, NotConnected> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = socket_with(family, SocketType::STREAM, flags, None).map_err(|error| (None, error))?;
    match connect(&fd, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err((Some(fd), error)),
    }
}
