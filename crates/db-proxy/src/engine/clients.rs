//! The clients' side of the loop.

use super::{ACCEPTS, CLIENT_AGE_NS, Client, Engine, LOGIN_NS, SCRATCH, SERVER};
use crate::conduit::{Conduit, FULL, Got};
use crate::event::Event;
use crate::protocol::{Facts, Farewell, Protocol};
use danki_db_pool::ClientId;
use danki_sys::clock::monotonic_ns;
use rustix::event::epoll::EventFlags;
use rustix::net::{SocketFlags, acceptfrom_with, sockopt};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

/// A client that sends ahead is read this far.
const AHEAD: usize = 4 * SCRATCH;

impl<P: Protocol> Engine<P> {
    pub(super) fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let Ok((fd, from)) = acceptfrom_with(&self.parts.listener, flags) else { return };
            let _only_slower = sockopt::set_tcp_nodelay(&fd, true);
            let now_ns = monotonic_ns();
            let id = self.clients.next_id();
            self.turn.clear();
            let session = self.protocol.accept(id, &mut self.turn);
            let mut conduit = Conduit::new(fd);
            if !Self::add(&self.poll, id.0, &mut conduit, EventFlags::IN | EventFlags::RDHUP) {
                continue;
            }
            self.clients.insert(Client {
                conduit,
                session,
                input: Vec::new(),
                ahead: AHEAD,
                server: None,
                last: None,
                waiting: false,
                ready: false,
                ended: false,
                accepted_ns: now_ns,
                active_ns: now_ns,
                borrowed_ns: 0,
                began_ns: 0,
            });
            self.parts.metrics.client_connections_received.fetch_add(1, Relaxed);
            if self.clients.len() > self.parts.config.max_clients as usize {
                self.dismiss(id, Farewell::Crowded(self.parts.config.max_clients));
                continue;
            }
            self.apply(Some(id), None);
            let from = from.and_then(|from| SocketAddr::try_from(from).ok());
            (self.parts.sink)(&Event::ClientConnected { client: id.0, from });
        }
    }

    pub(super) fn client_event(&mut self, id: ClientId, flags: EventFlags) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) && !flags.contains(EventFlags::IN) {
            return self.close_client(id, "the client has gone");
        }
        if flags.contains(EventFlags::OUT) {
            if client.conduit.flush().is_err() {
                return self.close_client(id, "the client has gone");
            }
            self.unblock_server_of(id);
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP) {
            self.read_client(id);
        }
        self.watch_client(id);
    }

    fn read_client(&mut self, id: ClientId) {
        let mut scratch = std::mem::take(&mut self.scratch);
        while let Some(client) = self.clients.get_mut(id) {
            if client.input.len() >= client.ahead {
                break;
            }
            match client.conduit.read(&mut scratch) {
                Ok(Got::Bytes(length)) if client.input.is_empty() => self.pump_bytes(id, &scratch[..length]),
                Ok(Got::Bytes(length)) => {
                    client.input.extend_from_slice(&scratch[..length]);
                    self.pump(id);
                }
                Ok(Got::Nothing) => break,
                Ok(Got::End) => {
                    self.close_client(id, "the client has closed the connection");
                    break;
                }
                Err(error) => {
                    self.close_client(id, &error.to_string());
                    break;
                }
            }
            if !self.clients.get_mut(id).is_some_and(|client| client.conduit.has_more()) {
                break;
            }
        }
        self.scratch = scratch;
    }

    /// Looks again at what a client has sent.
    pub(super) fn pump(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let input = std::mem::take(&mut client.input);
        self.pump_bytes(id, &input);
        self.watch_client(id);
    }

    /// Lets the protocol use `bytes`; what it does not use is kept.
    fn pump_bytes(&mut self, id: ClientId, bytes: &[u8]) {
        let mut at = 0;
        loop {
            let Some(client) = self.clients.get_mut(id) else { return };
            if client.waiting {
                break;
            }
            let conn = client.server;
            let server = conn.and_then(|conn| self.servers.get_mut(&conn));
            if server.as_ref().is_some_and(|server| server.conduit.backlog() >= FULL) {
                break;
            }
            let facts = Facts { client_tls: client.conduit.is_tls() };
            self.turn.clear();
            let session = server.map(|server| &mut server.session);
            let used = match self.protocol.client_input(
                facts,
                &mut client.session,
                session,
                &bytes[at..],
                &mut self.turn,
            ) {
                Ok(used) => used,
                Err(error) => {
                    self.apply(Some(id), conn);
                    self.dismiss(id, Farewell::Broken);
                    return (self.parts.sink)(&Event::Failed { what: format!("client {}: {error}", id.0) });
                }
            };
            at += used;
            client.ahead = AHEAD.max(self.turn.needs);
            let tls = self.turn.client_tls;
            let again = used > 0 || self.turn.borrow || self.turn.resume;
            self.turn.resume = false;
            self.apply(Some(id), conn);
            if tls {
                return self.start_client_tls(id, &bytes[at..]);
            }
            if !again {
                break;
            }
            if at == bytes.len() && used > 0 {
                break;
            }
        }
        if let Some(client) = self.clients.get_mut(id) {
            client.input.extend_from_slice(&bytes[at..]);
        }
    }

    fn start_client_tls(&mut self, id: ClientId, early: &[u8]) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let started = match self.parts.tls.server() {
            Some(connection) => client.conduit.start_tls(connection, early),
            None => Err(std::io::Error::other("no certificate")),
        };
        if let Err(error) = started {
            return self.close_client(id, &error.to_string());
        }
        if client.conduit.has_more() {
            self.read_client(id);
        }
    }

    pub(super) fn watch_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let server = client.server.and_then(|conn| self.servers.get(&conn));
        let room = server.is_none_or(|server| server.conduit.backlog() < FULL);
        let read = client.input.len() < client.ahead && room;
        Self::watch(&self.poll, id.0, &mut client.conduit, read);
    }

    /// The client has room again: its database connection may be read.
    fn unblock_server_of(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get(id)
            && client.conduit.backlog() < FULL
            && let Some(conn) = client.server
            && let Some(server) = self.servers.get_mut(&conn)
        {
            Self::watch(&self.poll, conn.0 | SERVER, &mut server.conduit, true);
            if !server.input.is_empty() {
                self.pump_server(conn);
            }
        }
    }

    /// Last words, and the end.
    pub(super) fn dismiss(&mut self, id: ClientId, farewell: Farewell) {
        let Some(client) = self.clients.get_mut(id) else { return };
        self.turn.clear();
        self.protocol.farewell(&mut client.session, farewell, &mut self.turn);
        let _gone_anyway = client.conduit.write(&self.turn.to_client);
        self.close_client(id, "the proxy has ended it");
    }

    pub(super) fn close_client(&mut self, id: ClientId, why: &str) {
        let Some(mut client) = self.clients.remove(id) else { return };
        client.conduit.close();
        if client.waiting {
            self.pool.cancel(id);
        }
        if let Some(conn) = client.server {
            // Whatever was going on there, nobody is left to end it.
            self.give_back(conn, false, client.borrowed_ns);
        }
        self.protocol.forget(id);
        self.parts.metrics.client_connections_closed.fetch_add(1, Relaxed);
        (self.parts.sink)(&Event::ClientClosed { client: id.0, why });
    }

    /// Clients that have been idle, or connected, for too long; while stopping, all that are at rest.
    pub(super) fn retire_clients(&mut self, now_ns: u64) {
        let idle_ns = self.parts.config.pool.idle_client_timeout.saturating_mul(1_000_000_000);
        let stopping = self.stop_by_ns.is_some();
        let mut leaving = Vec::new();
        for (id, client) in self.clients.iter() {
            let at_rest = client.ready
                && !client.waiting
                && client.input.is_empty()
                && self.protocol.at_rest(&client.session, client.server.is_some());
            let quiet_ns = now_ns.saturating_sub(client.active_ns);
            let age_ns = now_ns.saturating_sub(client.accepted_ns);
            if client.ended {
                leaving.push((id, None));
            } else if !client.ready && age_ns > LOGIN_NS && !client.waiting {
                leaving.push((id, Some(Farewell::Broken)));
            } else if stopping && (at_rest || !client.ready) {
                leaving.push((id, Some(Farewell::Stop)));
            } else if client.ready
                && (quiet_ns > idle_ns || (age_ns > CLIENT_AGE_NS && at_rest))
                && !client.waiting
            {
                leaving.push((id, Some(Farewell::Idle)));
            }
        }
        for (id, farewell) in leaving {
            match farewell {
                Some(farewell) => self.dismiss(id, farewell),
                None => self.close_client(id, "the proxy has ended it"),
            }
        }
    }
}
