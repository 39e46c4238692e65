//! The table of TCP connections, filled from what passes an env's edge.
//!
//! The edge is where the function is: packets from the env count when they are read from its TUN, packets to it when they are
//! written. Sequence numbers are looked at where a packet *enters* the link, so that a retransmission is seen even if the first
//! copy is lost or still waits for a frozen env. A connection is recorded when both sides have ended and nothing of it is inside the
//! link, when its env goes, or when the table is full.

use crate::connection::Conn;
use crate::packet::{Direction, Flags, Segment};
use danki_model::{ConnId, EnvId};
use danki_record::{Connection, Event};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// What happened to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It came into the link.
    Entered,
    /// It left the link, at the other side.
    Left,
    /// It was inside and is gone.
    Dropped,
}

/// Connections that are open at once; beyond, half-closed ones and then the oldest are recorded as they are and forgotten.
pub const MAX_CONNECTIONS: usize = 16_384;

/// How many of the oldest are looked at for a half-closed one.
const EVICTION_WINDOW: usize = 64;

type Tuple = (SocketAddr, SocketAddr);

/// The connections of all envs.
#[derive(Debug)]
pub struct Ledger {
    open: BTreeMap<ConnId, Conn>, // ids count up: oldest first
    by_tuple: HashMap<Tuple, ConnId>,
    last: u64,
    bound: usize,
    evicted: u64,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger::new(MAX_CONNECTIONS)
    }
}

impl Ledger {
    /// An empty table of at most `bound` open connections.
    pub fn new(bound: usize) -> Ledger {
        Ledger { open: BTreeMap::new(), by_tuple: HashMap::new(), last: 0, bound: bound.max(1), evicted: 0 }
    }

    /// Notes that a segment was seen. Returns its connection when it enters, if it belongs to one: a connection begins with a SYN
    /// from an env. `conn` is what was returned at its entry. What has ended goes to `out`.
    pub fn observe(
        &mut self,
        env: EnvId,
        at_ns: u64,
        sight: Sight,
        segment: &Segment,
        conn: Option<ConnId>,
        out: &mut Vec<Event>,
    ) -> Option<ConnId> {
        let id = match sight {
            Sight::Entered => self.find_or_open(env, at_ns, segment, out)?,
            Sight::Left | Sight::Dropped => conn?,
        };
        let entry = self.open.get_mut(&id)?;
        match sight {
            Sight::Entered => entry.entered(at_ns, segment),
            Sight::Left => entry.left(at_ns, segment),
            Sight::Dropped => {}
        }
        if sight != Sight::Entered {
            out.extend(entry.flight_ended(at_ns, segment).map(Event::Flight));
            if entry.is_over() {
                self.close(id, at_ns, out);
            }
        }
        Some(id)
    }

    /// Records the connections of an env that goes.
    pub fn end_env(&mut self, env: EnvId, at_ns: u64, out: &mut Vec<Event>) {
        let ids: Vec<ConnId> =
            self.open.iter().filter(|(_, conn)| conn.env() == env).map(|(id, _)| *id).collect();
        for id in ids {
            self.close(id, at_ns, out);
        }
    }

    /// Records all connections.
    pub fn end(&mut self, at_ns: u64, out: &mut Vec<Event>) {
        while let Some(id) = self.open.keys().next().copied() {
            self.close(id, at_ns, out);
        }
    }

    /// The newest open connections, without their pauses.
    pub fn newest(&self, most: usize) -> Vec<Connection> {
        self.open.values().rev().take(most).map(Conn::so_far).collect()
    }

    /// Connections begun so far.
    pub fn opened(&self) -> u64 {
        self.last
    }

    /// Connections recorded before their end because the table was full.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    fn find_or_open(
        &mut self,
        env: EnvId,
        at_ns: u64,
        segment: &Segment,
        out: &mut Vec<Event>,
    ) -> Option<ConnId> {
        let known = self.by_tuple.get(&segment.tuple()).copied();
        let opens = segment.direction == Direction::Up
            && segment.flags.has(Flags::SYN)
            && !segment.flags.has(Flags::ACK);
        if !opens {
            return known;
        }
        if let Some(id) = known {
            if self.open.get(&id).is_some_and(|conn| conn.began_with(segment.sequence)) {
                return known; // the same SYN again
            }
            self.close(id, at_ns, out); // the port is used again
        }
        if self.open.len() >= self.bound {
            self.evict(at_ns, out);
        }
        self.last += 1;
        let id = ConnId(self.last);
        self.open.insert(id, Conn::new(id, env, at_ns, segment));
        self.by_tuple.insert(segment.tuple(), id);
        Some(id)
    }

    fn evict(&mut self, at_ns: u64, out: &mut Vec<Event>) {
        let closing = self.open.iter().take(EVICTION_WINDOW).find(|(_, conn)| conn.is_closing());
        if let Some((id, _)) = closing.or_else(|| self.open.first_key_value()) {
            let id = *id;
            self.evicted += 1;
            self.close(id, at_ns, out);
        }
    }

    fn close(&mut self, id: ConnId, at_ns: u64, out: &mut Vec<Event>) {
        let Some(conn) = self.open.remove(&id) else { return };
        if self.by_tuple.get(&conn.tuple()) == Some(&id) {
            self.by_tuple.remove(&conn.tuple());
        }
        let (flight, facts) = conn.finish(at_ns);
        out.extend(flight.map(Event::Flight));
        out.push(Event::Connection(facts));
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
