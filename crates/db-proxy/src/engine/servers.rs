//! The database's side of the loop.

use super::{Engine, LOGIN_NS, Role, SERVER};
use crate::conduit::{FULL, Got};
use crate::event::Event;
use crate::protocol::{Facts, Farewell, Protocol};
use crate::turn::Failure;
use danki_db_pool::ConnId;
use danki_sys::clock::monotonic_ns;
use rustix::event::epoll::EventFlags;
use rustix::net::sockopt;
use std::sync::atomic::Ordering::Relaxed;

impl<P: Protocol> Engine<P> {
    pub(super) fn server_event(&mut self, conn: ConnId, flags: EventFlags) {
        let Some(server) = self.servers.get_mut(&conn) else { return };
        if server.connecting {
            return self.connected(conn);
        }
        if flags.contains(EventFlags::OUT) {
            if server.conduit.flush().is_err() {
                return self.lose_server(conn, "the database has closed the connection");
            }
            if let Some(client) = server.client
                && server.conduit.backlog() < FULL
            {
                self.resume.push_back(client);
            }
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            self.read_server(conn);
        }
        self.watch_server(conn);
    }

    fn connected(&mut self, conn: ConnId) {
        let Some(server) = self.servers.get_mut(&conn) else { return };
        if let Err(error) = sockopt::socket_error(server.conduit.fd()).unwrap_or_else(Err) {
            let why = format!("cannot connect: {}", std::io::Error::from(error));
            self.try_elsewhere();
            return self.fail_server(conn, Failure::Unavailable(why));
        }
        server.connecting = false;
        let _only_slower = sockopt::set_tcp_nodelay(server.conduit.fd(), true);
        self.turn.clear();
        self.protocol.connected(&mut server.session, &mut self.turn);
        self.apply(None, Some(conn));
        self.watch_server(conn);
    }

    fn read_server(&mut self, conn: ConnId) {
        let mut scratch = std::mem::take(&mut self.scratch);
        loop {
            if !self.room_for(conn) {
                break;
            }
            let Some(server) = self.servers.get_mut(&conn) else { break };
            match server.conduit.read(&mut scratch) {
                Ok(Got::Bytes(length)) if server.input.is_empty() => {
                    self.pump_server_bytes(conn, &scratch[..length])
                }
                Ok(Got::Bytes(length)) => {
                    server.input.extend_from_slice(&scratch[..length]);
                    self.pump_server(conn);
                }
                Ok(Got::Nothing) => break,
                Ok(Got::End) => {
                    self.lose_server(conn, "the database has closed the connection");
                    break;
                }
                Err(error) => {
                    self.lose_server(conn, &error.to_string());
                    break;
                }
            }
            if !self.servers.get_mut(&conn).is_some_and(|server| server.conduit.has_more()) {
                break;
            }
        }
        self.scratch = scratch;
    }

    /// Whether the client that has the connection takes more.
    fn room_for(&self, conn: ConnId) -> bool {
        let client =
            self.servers.get(&conn).and_then(|server| server.client).and_then(|id| self.clients.get(id));
        client.is_none_or(|client| client.conduit.backlog() < FULL)
    }

    pub(super) fn pump_server(&mut self, conn: ConnId) {
        let Some(server) = self.servers.get_mut(&conn) else { return };
        let input = std::mem::take(&mut server.input);
        self.pump_server_bytes(conn, &input);
    }

    fn pump_server_bytes(&mut self, conn: ConnId, bytes: &[u8]) {
        let mut at = 0;
        loop {
            let Some(server) = self.servers.get_mut(&conn) else { return };
            let id = server.client;
            let client = id.and_then(|id| self.clients.get_mut(id)).map(|client| {
                let facts = Facts { client_tls: client.conduit.is_tls() };
                (&mut client.session, facts)
            });
            self.turn.clear();
            let used =
                match self.protocol.server_input(client, &mut server.session, &bytes[at..], &mut self.turn) {
                    Ok(used) => used,
                    Err(error) => return self.lose_server(conn, &error.to_string()),
                };
            at += used;
            let tls = self.turn.server_tls;
            self.apply(id, Some(conn));
            if tls {
                return self.start_server_tls(conn, &bytes[at..]);
            }
            if used == 0 || at == bytes.len() {
                break;
            }
        }
        if let Some(server) = self.servers.get_mut(&conn) {
            server.input.extend_from_slice(&bytes[at..]);
        }
    }

    fn start_server_tls(&mut self, conn: ConnId, early: &[u8]) {
        let Some(server) = self.servers.get_mut(&conn) else { return };
        let host = self.parts.config.target.address.rsplit_once(':').map_or("", |(host, _)| host);
        let started = match self.parts.tls.client(host) {
            Some(connection) => server.conduit.start_tls(connection, early),
            None => Err(std::io::Error::other("the target's host is no name for TLS")),
        };
        // What the protocol wants said inside of TLS.
        let said = started.and_then(|()| {
            self.turn.clear();
            self.protocol.connected(&mut server.session, &mut self.turn);
            server.conduit.write(&self.turn.to_server)
        });
        if let Err(error) = said {
            return self.fail_server(conn, Failure::Unavailable(format!("TLS: {error}")));
        }
        self.watch_server(conn);
    }

    pub(super) fn watch_server(&mut self, conn: ConnId) {
        let room = self.room_for(conn);
        if let Some(server) = self.servers.get_mut(&conn)
            && !server.connecting
        {
            Self::watch(&self.poll, conn.0 | SERVER, &mut server.conduit, room);
        }
    }

    /// A connection has ended by itself.
    pub(super) fn lose_server(&mut self, conn: ConnId, why: &str) {
        match self.servers.get(&conn) {
            Some(server) if !server.ready => {
                return self.fail_server(conn, Failure::Unavailable(why.to_owned()));
            }
            Some(_) => {}
            None => return,
        }
        let Some(server) = self.servers.remove(&conn) else { return };
        self.pool.lost(monotonic_ns(), conn, &mut self.acts);
        (self.parts.sink)(&Event::ServerClosed { server: conn.0, why });
        self.ask_where();
        if let Some(id) = server.client {
            if let Some(client) = self.clients.get_mut(id) {
                client.server = None;
            }
            self.dismiss(id, Farewell::Lost);
        }
    }

    /// A connection could not be opened.
    pub(super) fn fail_server(&mut self, conn: ConnId, failure: Failure) {
        let Some(server) = self.servers.remove(&conn) else { return };
        let now_ns = monotonic_ns();
        if server.role == Role::Probe {
            return self.probe_failed(&failure);
        }
        self.parts.metrics.database_connections_setup_failed.fetch_add(1, Relaxed);
        self.pool.open_failed(now_ns, conn);
        match failure {
            Failure::Unavailable(why) => {
                (self.parts.sink)(&Event::Failed { what: format!("database: {why}") })
            }
            Failure::Refused(words) => {
                (self.parts.sink)(&Event::Failed { what: "the database has refused the account".into() });
                for client in self.pool.dismiss(server.key) {
                    self.refuse(client, crate::protocol::Refusal::Database(words.clone()));
                }
            }
        }
    }

    /// Logins that take too long.
    pub(super) fn retire_servers(&mut self, now_ns: u64) {
        let late = |opened_ns: u64| now_ns.saturating_sub(opened_ns) > LOGIN_NS;
        let slow: Vec<_> = self
            .servers
            .iter()
            .filter(|(_, server)| (!server.ready && late(server.opened_ns)) || server.ended)
            .map(|(conn, _)| *conn)
            .collect();
        for conn in slow {
            self.lose_server(conn, "the login took too long");
        }
    }
}
