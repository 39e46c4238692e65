//! One TCP connection as it fills up.

use crate::packet::{Direction, Flags, Segment};
use crate::seen::Seen;
use danki_model::{ConnId, EnvId};
use danki_record::{ClosedBy, Connection, Flight, Idle, Span};
use std::net::SocketAddr;

/// Shortest pause that counts as idle (`record::Connection::idle`).
const IDLE_NS: u64 = 1_000_000;

/// Pauses kept per connection: more than any experiment has invocations; later ones are not recorded.
const MAX_IDLE: usize = 65_536;

#[derive(Debug)]
pub(crate) struct Conn {
    facts: Connection,
    initial_sequence: u32,
    /// What the env has sent.
    up: Seen,
    /// What the endpoint has sent, as it entered the link.
    down: Seen,
    /// What has reached the env.
    down_at_edge: Seen,
    client_done: bool,
    server_done: bool,
    flying: u32,
    flying_since_ns: u64,
    /// What flies began with bytes from the endpoint.
    flying_answers: bool,
}

impl Conn {
    pub(crate) fn new(conn: ConnId, env: EnvId, at_ns: u64, syn: &Segment) -> Conn {
        let (client, server) = syn.tuple();
        let facts = Connection {
            conn,
            env,
            client,
            server,
            syn_ns: at_ns,
            established_ns: None,
            acked_ns: None,
            first_byte_ns: None,
            last_byte_ns: None,
            client_hello_ns: None,
            bytes_up: 0,
            bytes_down: 0,
            retransmits: 0,
            idle: Vec::new(),
            closed_by: None,
            closed_ns: None,
            close_delivered_ns: None,
        };
        Conn {
            facts,
            initial_sequence: syn.sequence,
            up: Seen::default(),
            down: Seen::default(),
            down_at_edge: Seen::default(),
            client_done: false,
            server_done: false,
            flying: 0,
            flying_since_ns: 0,
            flying_answers: false,
        }
    }

    pub(crate) fn env(&self) -> EnvId {
        self.facts.env
    }

    pub(crate) fn tuple(&self) -> (SocketAddr, SocketAddr) {
        (self.facts.client, self.facts.server)
    }

    pub(crate) fn began_with(&self, sequence: u32) -> bool {
        self.initial_sequence == sequence
    }

    /// Its facts while it lives; its pauses, which may be many, are left out.
    pub(crate) fn so_far(&self) -> Connection {
        let Connection { conn, env, client, server, syn_ns, established_ns, acked_ns, .. } = self.facts;
        let Connection { first_byte_ns, last_byte_ns, client_hello_ns, bytes_up, bytes_down, .. } =
            self.facts;
        let Connection { retransmits, closed_by, closed_ns, close_delivered_ns, .. } = self.facts;
        Connection {
            conn,
            env,
            client,
            server,
            syn_ns,
            established_ns,
            acked_ns,
            first_byte_ns,
            last_byte_ns,
            client_hello_ns,
            bytes_up,
            bytes_down,
            retransmits,
            idle: Vec::new(),
            closed_by,
            closed_ns,
            close_delivered_ns,
        }
    }

    /// One side has ended.
    pub(crate) fn is_closing(&self) -> bool {
        self.facts.closed_by.is_some()
    }

    /// Both sides have ended and nothing is under way.
    pub(crate) fn is_over(&self) -> bool {
        self.client_done && self.server_done && self.flying == 0
    }

    /// A segment entered the link.
    pub(crate) fn entered(&mut self, at_ns: u64, segment: &Segment) {
        if segment.matters() {
            if self.flying == 0 {
                self.flying_since_ns = at_ns;
                self.flying_answers = segment.direction == Direction::Down && segment.payload > 0;
            }
            self.flying += 1;
        }
        self.note_close(at_ns, segment);
        match segment.direction {
            Direction::Up => self.sent_by_env(at_ns, segment),
            Direction::Down => {
                if self.down.take(segment) < segment.payload.min(1) {
                    self.facts.retransmits += 1;
                }
            }
        }
    }

    /// A segment left the link; for the env that means: it was delivered.
    pub(crate) fn left(&mut self, at_ns: u64, segment: &Segment) {
        if segment.direction == Direction::Up {
            return;
        }
        if segment.flags.has(Flags::SYN) && segment.flags.has(Flags::ACK) {
            self.facts.established_ns.get_or_insert(at_ns);
        }
        let new = self.down_at_edge.take(segment);
        if new > 0 {
            self.facts.bytes_down += u64::from(new);
            self.payload(at_ns);
        }
        if segment.flags.has(Flags::FIN | Flags::RST) {
            self.server_done = true;
            self.client_done |= segment.flags.has(Flags::RST);
            if matches!(self.facts.closed_by, Some(ClosedBy::Server | ClosedBy::ServerReset)) {
                self.facts.close_delivered_ns.get_or_insert(at_ns);
            }
        }
    }

    /// A segment left the link or was dropped: the flight that this ends, if any.
    pub(crate) fn flight_ended(&mut self, at_ns: u64, segment: &Segment) -> Option<Flight> {
        if !segment.matters() {
            return None;
        }
        self.flying = self.flying.saturating_sub(1);
        if self.flying == 0 { self.flight_until(at_ns) } else { None }
    }

    /// Its last flight, if one is under way, and its facts.
    pub(crate) fn finish(self, at_ns: u64) -> (Option<Flight>, Connection) {
        let flight = if self.flying > 0 { self.flight_until(at_ns) } else { None };
        (flight, self.facts)
    }

    /// Absent if it takes no time: the packet was lost on entry.
    fn flight_until(&self, to_ns: u64) -> Option<Flight> {
        let span = Span { from_ns: self.flying_since_ns, to_ns };
        let (conn, env, answers) = (self.facts.conn, self.facts.env, self.flying_answers);
        (span.len_ns() > 0).then_some(Flight { conn, env, span, answers })
    }

    fn sent_by_env(&mut self, at_ns: u64, segment: &Segment) {
        if self.facts.established_ns.is_some() && segment.flags.has(Flags::ACK) {
            self.facts.acked_ns.get_or_insert(at_ns);
        }
        let first_payload = self.facts.bytes_up == 0;
        let new = self.up.take(segment);
        if new < segment.payload.min(1) {
            self.facts.retransmits += 1;
        }
        if new > 0 {
            if first_payload && segment.client_hello {
                self.facts.client_hello_ns = Some(at_ns);
            }
            self.facts.bytes_up += u64::from(new);
            if let Some(from_ns) =
                self.facts.last_byte_ns.filter(|last| at_ns.saturating_sub(*last) >= IDLE_NS)
                && self.facts.idle.len() < MAX_IDLE
            {
                self.facts.idle.push(Idle { from_ns, to_ns: at_ns });
            }
            self.payload(at_ns);
        }
        self.client_done |= segment.flags.has(Flags::FIN | Flags::RST);
        self.server_done |= segment.flags.has(Flags::RST);
    }

    fn payload(&mut self, at_ns: u64) {
        self.facts.first_byte_ns.get_or_insert(at_ns);
        self.facts.last_byte_ns = Some(at_ns);
    }

    /// The first FIN or RST decides who ended it; an endpoint's is dated at its entry, its delivery apart.
    fn note_close(&mut self, at_ns: u64, segment: &Segment) {
        if self.facts.closed_by.is_some() || !segment.flags.has(Flags::FIN | Flags::RST) {
            return;
        }
        self.facts.closed_by = Some(match (segment.direction, segment.flags.has(Flags::RST)) {
            (Direction::Up, false) => ClosedBy::Client,
            (Direction::Up, true) => ClosedBy::ClientReset,
            (Direction::Down, false) => ClosedBy::Server,
            (Direction::Down, true) => ClosedBy::ServerReset,
        });
        self.facts.closed_ns = Some(at_ns);
    }
}
