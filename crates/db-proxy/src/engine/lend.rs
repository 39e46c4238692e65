//! Between the two sides: what a turn asks for, and what the pool decides.

use super::{Engine, Role};
use crate::event::Event;
use crate::protocol::{Facts, Protocol, Refusal};
use crate::turn::Cancel;
use danki_db_pool::{Act, ClientId, ConnId, Wish};
use danki_sys::clock::monotonic_ns;
use std::sync::atomic::Ordering::Relaxed;

impl<P: Protocol> Engine<P> {
    /// Does what the last call into the protocol asked for.
    pub(super) fn apply(&mut self, id: Option<ClientId>, conn: Option<ConnId>) {
        let mut turn = std::mem::take(&mut self.turn);
        if let Some(conn) = conn
            && !turn.to_server.is_empty()
            && let Some(server) = self.servers.get_mut(&conn)
        {
            if server.conduit.write(&turn.to_server).is_err() {
                server.ended = true;
            }
            self.watch_server(conn);
        }
        if let Some(id) = id {
            self.apply_to_client(id, &turn);
        }
        if let Some(cancel) = turn.cancel.take() {
            self.cancel(cancel);
        }
        if let Some(conn) = conn {
            if let Some(failure) = turn.server_failed.take() {
                self.fail_server(conn, failure);
            } else if turn.server_ready {
                self.server_ready(conn);
            }
            if let Some(max) = turn.probed {
                self.probed(conn, max);
            }
        }
        self.note(id, conn, &mut turn);
        if turn.write_refused {
            self.write_refused();
        }
        if let (Some(clean), Some(conn)) = (turn.release, conn) {
            self.release(conn, clean);
        }
        match id {
            Some(id) if turn.close_client => self.close_client(id, "the client said goodbye"),
            Some(id) => {
                if turn.borrow {
                    self.borrow(id);
                }
                if turn.resume {
                    self.resume.push_back(id);
                }
            }
            None => {}
        }
        turn.clear();
        self.turn = turn;
    }

    fn apply_to_client(&mut self, id: ClientId, turn: &crate::turn::Turn) {
        let metrics = &self.parts.metrics;
        let Some(client) = self.clients.get_mut(id) else { return };
        if client.conduit.write(&turn.to_client).is_err() {
            // Closed at the next look, when nothing is borrowed any more.
            client.ended = true;
        }
        if turn.auth_failed {
            metrics.client_connections_setup_failed_auth.fetch_add(1, Relaxed);
        }
        if turn.client_ready {
            client.ready = true;
            metrics.client_connections_setup_succeeded.fetch_add(1, Relaxed);
            let kind = if client.conduit.is_tls() {
                &metrics.client_connections_tls
            } else {
                &metrics.client_connections_no_tls
            };
            kind.fetch_add(1, Relaxed);
        }
        self.watch_client(id);
    }

    /// Statements that began or ended, and pins.
    fn note(&mut self, id: Option<ClientId>, conn: Option<ConnId>, turn: &mut crate::turn::Turn) {
        if turn.began == 0 && turn.ended == 0 && turn.pinned.is_none() {
            return;
        }
        let metrics = &self.parts.metrics;
        let Some((id, client)) = id.and_then(|id| Some((id, self.clients.get_mut(id)?))) else { return };
        let now_ns = monotonic_ns();
        client.active_ns = now_ns;
        if turn.began > 0 {
            client.began_ns = now_ns;
            metrics.query_requests.fetch_add(u64::from(turn.began), Relaxed);
        }
        if turn.ended > 0 {
            let took_ns = now_ns.saturating_sub(client.began_ns);
            metrics.query_database_response_latency.add(took_ns / 1_000);
            (self.parts.sink)(&Event::Answered { client: id.0, took_ns });
        }
        if let Some(pinned) = turn.pinned.take() {
            if let Some(server) = conn.and_then(|conn| self.servers.get_mut(&conn)) {
                server.pinned = true;
            }
            metrics.sessions_pinned.fetch_add(1, Relaxed);
            (self.parts.sink)(&Event::Pinned {
                client: id.0,
                server: conn.map(|conn| conn.0),
                reason: pinned.cause.reason(),
                digest: &pinned.digest,
            });
        }
    }

    fn borrow(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if client.waiting || client.server.is_some() {
            return;
        }
        let tls = client.conduit.is_tls();
        let Some((key, state)) = self.protocol.wish(&client.session, tls) else {
            return self.refuse(id, Refusal::Crowded);
        };
        client.waiting = true;
        self.parts.metrics.database_connection_requests.fetch_add(1, Relaxed);
        let wish = Wish { client: id, key, state, last: client.last };
        self.pool.borrow(monotonic_ns(), wish, &mut self.acts);
        // Mostly a connection is free, and the statement goes on its way at once.
        if let [lend @ Act::Lend { client, .. }] = self.acts[..]
            && client == id
        {
            self.acts.clear();
            self.act(lend);
        }
    }

    pub(super) fn act(&mut self, act: Act) {
        match act {
            Act::Lend { client, conn, untouched, waited_ns } => self.lend(client, conn, untouched, waited_ns),
            Act::Open { conn, key } => self.open(conn, key, Role::Pooled),
            Act::Close { conn, why } => {
                if let Some(mut server) = self.servers.remove(&conn) {
                    server.conduit.close();
                    (self.parts.sink)(&Event::ServerClosed {
                        server: conn.0,
                        why: crate::event::closed(why),
                    });
                }
            }
            Act::TimedOut { client, waited_ns } => {
                self.parts.metrics.database_connections_borrow_latency.add(waited_ns / 1_000);
                self.parts.metrics.borrow_timeouts.fetch_add(1, Relaxed);
                (self.parts.sink)(&Event::BorrowTimedOut { client: client.0, waited_ns });
                self.refuse(client, Refusal::TimedOut);
            }
            Act::Crowded { client } => self.refuse(client, Refusal::Crowded),
        }
    }

    fn lend(&mut self, id: ClientId, conn: ConnId, untouched: bool, waited_ns: u64) {
        let now_ns = monotonic_ns();
        let Some(server) = self.servers.get_mut(&conn) else {
            return self.pool.lost(now_ns, conn, &mut self.acts);
        };
        let Some(client) = self.clients.get_mut(id) else {
            return self.pool.give_back(now_ns, conn, 0, false, &mut self.acts);
        };
        client.waiting = false;
        client.server = Some(conn);
        client.last = Some(conn);
        client.borrowed_ns = now_ns;
        server.client = Some(id);
        self.parts.metrics.database_connections_borrow_latency.add(waited_ns / 1_000);
        (self.parts.sink)(&Event::Borrowed { client: id.0, server: conn.0, waited_ns });
        let facts = Facts { client_tls: client.conduit.is_tls() };
        let outer = std::mem::take(&mut self.turn);
        self.protocol.attach(facts, &mut client.session, &mut server.session, untouched, &mut self.turn);
        self.apply(Some(id), Some(conn));
        self.turn = outer;
        if !self.resume.contains(&id) {
            self.resume.push_back(id);
        }
    }

    pub(super) fn refuse(&mut self, id: ClientId, refusal: Refusal) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.waiting = false;
        let outer = std::mem::take(&mut self.turn);
        self.protocol.refuse(&mut client.session, refusal, &mut self.turn);
        self.turn.resume = true;
        self.apply(Some(id), None);
        self.turn = outer;
    }

    fn release(&mut self, conn: ConnId, clean: bool) {
        let Some(server) = self.servers.get_mut(&conn) else { return };
        let Some(id) = server.client else { return };
        let mut borrowed_ns = 0;
        if let Some(client) = self.clients.get_mut(id) {
            client.server = None;
            borrowed_ns = client.borrowed_ns;
            if !client.input.is_empty() {
                self.resume.push_back(id);
            }
        }
        self.give_back(conn, clean, borrowed_ns);
    }

    pub(super) fn give_back(&mut self, conn: ConnId, clean: bool, borrowed_ns: u64) {
        let now_ns = monotonic_ns();
        let Some(server) = self.servers.get_mut(&conn) else { return };
        server.client = None;
        server.pinned = false;
        let clean = clean && !server.ended && server.moves == self.place.moves;
        let state = self.protocol.state(&server.session);
        let held_ns = now_ns.saturating_sub(borrowed_ns);
        self.parts.metrics.longest_hold.fetch_max(held_ns / 1_000, Relaxed);
        self.pool.give_back(now_ns, conn, state, clean, &mut self.acts);
        self.watch_server(conn);
    }

    fn server_ready(&mut self, conn: ConnId) {
        let Some(server) = self.servers.get_mut(&conn) else { return };
        server.ready = true;
        let state = self.protocol.state(&server.session);
        if server.role == Role::Probe {
            self.turn.clear();
            self.protocol.probe(&mut server.session, &mut self.turn);
            let _seen_at_the_next_read = server.conduit.write(&self.turn.to_server);
            return;
        }
        self.parts.metrics.database_connections_setup_succeeded.fetch_add(1, Relaxed);
        (self.parts.sink)(&Event::ServerOpened { server: conn.0 });
        self.pool.opened(monotonic_ns(), conn, state, &mut self.acts);
    }

    fn cancel(&mut self, cancel: Cancel) {
        match cancel {
            Cancel::Client(id) => self.close_client(id, "another client has killed it"),
            Cancel::Send(bytes) => self.send_apart(bytes),
        }
    }
}
