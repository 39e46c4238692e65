//! The connections: which are free, and in which order they are taken.

use crate::{ClientId, ConnId, Key, Wish};
use std::collections::{BTreeMap, HashMap};

/// How many of the most recently used are compared with the state that is wished for.
const COMPARED: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opening,
    Lent(ClientId),
    /// Its place among the idle.
    Idle(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Conn {
    pub key: Key,
    pub phase: Phase,
    pub opened_ns: u64,
    pub returned_ns: u64,
    pub last: Option<ClientId>,
    pub state: u64,
}

/// All connections of a pool.
#[derive(Debug, Default)]
pub(crate) struct Conns {
    all: HashMap<ConnId, Conn>,
    /// Idle ones of each key, the last returned last.
    idle: HashMap<Key, BTreeMap<u64, ConnId>>,
    /// Idle ones in the order of their return.
    order: BTreeMap<u64, ConnId>,
    opening: HashMap<Key, u32>,
    next_conn: u64,
    next_place: u64,
}

impl Conns {
    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }

    pub fn idle(&self) -> u32 {
        self.order.len() as u32
    }

    pub fn opening(&self) -> u32 {
        self.opening.values().sum()
    }

    pub fn opening_of(&self, key: Key) -> u32 {
        self.opening.get(&key).copied().unwrap_or(0)
    }

    pub fn conn(&self, id: ConnId) -> Option<&Conn> {
        self.all.get(&id)
    }

    pub fn open(&mut self, key: Key) -> ConnId {
        self.next_conn += 1;
        let id = ConnId(self.next_conn);
        let conn = Conn { key, phase: Phase::Opening, opened_ns: 0, returned_ns: 0, last: None, state: 0 };
        self.all.insert(id, conn);
        *self.opening.entry(key).or_default() += 1;
        id
    }

    /// Takes one that fits out of the idle ones.
    pub fn take(&mut self, wish: &Wish) -> Option<(ConnId, bool)> {
        let last = wish.last.filter(|id| {
            self.all.get(id).is_some_and(|conn| conn.key == wish.key && matches!(conn.phase, Phase::Idle(_)))
        });
        let chosen = last.or_else(|| {
            let idle = self.idle.get(&wish.key)?;
            let same = |id: &&ConnId| self.all.get(id).is_some_and(|conn| conn.state == wish.state);
            idle.values().rev().take(COMPARED).find(same).or_else(|| idle.values().next_back()).copied()
        })?;
        let untouched = self.all.get(&chosen).is_some_and(|conn| conn.last == Some(wish.client));
        self.lend(chosen, wish.client);
        Some((chosen, untouched))
    }

    pub fn lend(&mut self, id: ConnId, client: ClientId) {
        self.unlist(id);
        let conn = self.all.get_mut(&id).expect("only known connections are lent");
        conn.phase = Phase::Lent(client);
        conn.last = Some(client);
    }

    pub fn rest(&mut self, id: ConnId, now_ns: u64, state: u64) {
        self.unlist(id);
        self.next_place += 1;
        let conn = self.all.get_mut(&id).expect("only known connections come to rest");
        if conn.phase == Phase::Opening {
            conn.opened_ns = now_ns;
        }
        conn.phase = Phase::Idle(self.next_place);
        conn.returned_ns = now_ns;
        conn.state = state;
        self.idle.entry(conn.key).or_default().insert(self.next_place, id);
        self.order.insert(self.next_place, id);
    }

    pub fn remove(&mut self, id: ConnId) -> Option<Conn> {
        self.unlist(id);
        self.all.remove(&id)
    }

    /// Takes it off the lists that its phase has put it on.
    fn unlist(&mut self, id: ConnId) {
        let Some(conn) = self.all.get(&id) else { return };
        match conn.phase {
            Phase::Idle(place) => {
                self.order.remove(&place);
                if let Some(idle) = self.idle.get_mut(&conn.key) {
                    idle.remove(&place);
                    if idle.is_empty() {
                        self.idle.remove(&conn.key);
                    }
                }
            }
            Phase::Opening => {
                if let Some(count) = self.opening.get_mut(&conn.key) {
                    *count -= 1;
                    if *count == 0 {
                        self.opening.remove(&conn.key);
                    }
                }
            }
            Phase::Lent(_) => {}
        }
    }

    /// The idle one that was returned first.
    pub fn longest_idle(&self) -> Option<ConnId> {
        self.order.values().next().copied()
    }

    /// Idle ones from the longest idle to the last returned.
    pub fn idle_in_order(&self) -> impl Iterator<Item = (ConnId, &Conn)> {
        self.order.values().filter_map(|id| self.all.get(id).map(|conn| (*id, conn)))
    }
}
