//! The pool's rules, as a table of what happens, and as properties under arbitrary histories.

use danki_db_pool::{Act, ClientId, Closed, ConnId, Key, Limits, PATIENCE, Pool, Wish};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const LIMITS: Limits = Limits {
    max: 2,
    max_idle: 1,
    idle_after_ns: 300,
    max_age_ns: 100_000,
    borrow_timeout_ns: 120,
    max_waiters: 50,
};

fn wish(client: u64, key: u32) -> Wish {
    Wish { client: ClientId(client), key: Key(key), state: 0, last: None }
}

fn borrow(pool: &mut Pool, now_ns: u64, client: u64, key: u32) -> Vec<Act> {
    let mut acts = Vec::new();
    pool.borrow(now_ns, wish(client, key), &mut acts);
    acts
}

fn lend(client: u64, conn: u64, untouched: bool, waited_ns: u64) -> Act {
    Act::Lend { client: ClientId(client), conn: ConnId(conn), untouched, waited_ns }
}

/// A pool of which clients 1 and 2 hold both connections.
fn full() -> Pool {
    let mut pool = Pool::new(LIMITS);
    for client in 1..=2 {
        assert_eq!(borrow(&mut pool, 0, client, 7), [Act::Open { conn: ConnId(client), key: Key(7) }]);
        let mut acts = Vec::new();
        pool.opened(0, ConnId(client), 0, &mut acts);
        assert_eq!(acts, [lend(client, client, false, 0)]);
    }
    pool
}

#[test]
fn waiters_are_served_in_order_and_in_time() {
    let mut pool = full();
    assert_eq!(borrow(&mut pool, 10, 3, 7), []);
    assert_eq!(borrow(&mut pool, 20, 4, 7), []);
    assert_eq!(pool.next_deadline_ns(), Some(130));
    let mut acts = Vec::new();
    pool.give_back(30, ConnId(1), 0, true, &mut acts);
    pool.tick(139, &mut acts);
    pool.tick(140, &mut acts);
    assert_eq!(acts, [lend(3, 1, false, 20), Act::TimedOut { client: ClientId(4), waited_ns: 120 }]);
}

#[test]
fn a_dirty_connection_is_replaced() {
    let mut pool = full();
    assert_eq!(borrow(&mut pool, 0, 3, 7), []);
    let mut acts = Vec::new();
    pool.give_back(1, ConnId(2), 0, false, &mut acts);
    assert_eq!(
        acts,
        [Act::Close { conn: ConnId(2), why: Closed::Dirty }, Act::Open { conn: ConnId(3), key: Key(7) }]
    );
}

#[test]
fn the_last_user_finds_its_connection_untouched() {
    let mut pool = full();
    let mut acts = Vec::new();
    pool.give_back(1, ConnId(1), 5, true, &mut acts);
    pool.give_back(2, ConnId(2), 6, true, &mut acts);
    pool.borrow(3, Wish { last: Some(ConnId(1)), ..wish(1, 7) }, &mut acts);
    pool.borrow(4, Wish { state: 6, ..wish(9, 7) }, &mut acts);
    assert_eq!(acts, [lend(1, 1, true, 0), lend(9, 2, false, 0)]);
}

#[test]
fn a_matching_state_is_preferred() {
    let mut pool = full();
    let mut acts = Vec::new();
    pool.give_back(1, ConnId(1), 5, true, &mut acts);
    pool.give_back(2, ConnId(2), 6, true, &mut acts);
    pool.borrow(3, Wish { state: 5, ..wish(9, 7) }, &mut acts);
    assert_eq!(acts, [lend(9, 1, false, 0)]);
}

#[test]
fn an_idle_connection_of_another_key_makes_room() {
    let mut pool = full();
    let mut acts = Vec::new();
    pool.give_back(1, ConnId(1), 0, true, &mut acts);
    pool.borrow(2, wish(3, 8), &mut acts);
    assert_eq!(
        acts,
        [Act::Close { conn: ConnId(1), why: Closed::Room }, Act::Open { conn: ConnId(3), key: Key(8) }]
    );
}

#[test]
fn a_timeout_of_zero_lends_only_what_is_free() {
    let mut pool = Pool::new(Limits { borrow_timeout_ns: 0, ..LIMITS });
    assert_eq!(borrow(&mut pool, 5, 1, 7), [Act::TimedOut { client: ClientId(1), waited_ns: 0 }]);
}

#[test]
fn failures_are_followed_by_longer_pauses() {
    let mut pool = Pool::new(Limits { borrow_timeout_ns: 60_000_000_000, ..LIMITS });
    let mut now_ns = 0;
    let mut acts = borrow(&mut pool, now_ns, 1, 7);
    let mut pauses = Vec::new();
    for _ in 0..4 {
        let Some(Act::Open { conn, .. }) = acts.pop() else { panic!("an attempt is due") };
        pool.open_failed(now_ns, conn);
        let next_ns = pool.next_deadline_ns().expect("somebody waits");
        pauses.push((next_ns - now_ns) / 1_000_000);
        now_ns = next_ns;
        pool.tick(now_ns, &mut acts);
    }
    assert_eq!(pauses, [50, 100, 200, 400]);
}

#[test]
fn surplus_and_old_idle_connections_are_closed() {
    let mut pool = full();
    let mut acts = Vec::new();
    pool.give_back(0, ConnId(1), 0, true, &mut acts);
    pool.give_back(1, ConnId(2), 0, true, &mut acts);
    pool.tick(299, &mut acts);
    assert_eq!(acts, []);
    pool.tick(400, &mut acts);
    pool.tick(100_000, &mut acts);
    let closed = |conn, why| Act::Close { conn: ConnId(conn), why };
    assert_eq!(acts, [closed(1, Closed::Idle), closed(2, Closed::Old)]);
}

#[test]
fn nobody_is_overtaken_without_end() {
    let mut pool = Pool::new(Limits { max: 1, borrow_timeout_ns: u64::MAX, ..LIMITS });
    let mut acts = borrow(&mut pool, 0, 0, 7);
    pool.opened(0, ConnId(1), 0, &mut acts);
    acts.clear();
    pool.borrow(1, wish(1_000, 8), &mut acts);
    for client in 1..=u64::from(PATIENCE) {
        pool.borrow(1, wish(client, 7), &mut acts);
        pool.give_back(2, ConnId(1), 0, true, &mut acts);
        assert_eq!(acts.pop(), Some(lend(client, 1, false, 1)));
    }
    pool.borrow(3, wish(999, 7), &mut acts);
    pool.give_back(4, ConnId(1), 0, true, &mut acts);
    assert_eq!(
        acts,
        [Act::Close { conn: ConnId(1), why: Closed::Room }, Act::Open { conn: ConnId(2), key: Key(8) }]
    );
}

#[derive(Clone, Debug)]
enum Step {
    Borrow(u32),
    Back(usize, bool),
    Opened(usize),
    Failed(usize),
    Lost(usize),
    Cancel(usize),
    Wait(u64),
    Cap(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u32..3).prop_map(Step::Borrow),
        4 => (any::<prop::sample::Index>(), prop::bool::weighted(0.8)).prop_map(|(at, clean)| Step::Back(at.index(64), clean)),
        4 => (0_usize..8).prop_map(Step::Opened),
        1 => (0_usize..8).prop_map(Step::Failed),
        1 => (0_usize..64).prop_map(Step::Lost),
        1 => (0_usize..8).prop_map(Step::Cancel),
        2 => (0_u64..200).prop_map(Step::Wait),
        1 => (1_u32..6).prop_map(Step::Cap),
    ];
    prop::collection::vec(step, 0..200)
}

/// What an outsider knows.
#[derive(Default)]
struct World {
    now_ns: u64,
    clients: u64,
    waiting: Vec<u64>,
    lent: Vec<(u64, ConnId)>,
    opening: Vec<ConnId>,
    alive: HashSet<ConnId>,
    keys: HashMap<u64, u32>,
    conn_keys: HashMap<ConnId, u32>,
}

impl World {
    fn apply(&mut self, acts: &mut Vec<Act>) {
        for act in acts.drain(..) {
            match act {
                Act::Lend { client, conn, .. } => {
                    let at = self.waiting.iter().position(|&waiting| waiting == client.0);
                    self.waiting.remove(at.expect("only who waits is served"));
                    assert!(self.alive.contains(&conn), "a closed connection is not lent");
                    assert!(!self.opening.contains(&conn), "nor one that is not open");
                    assert!(self.lent.iter().all(|(_, other)| *other != conn), "nor one that another has");
                    assert_eq!(self.keys[&client.0], self.conn_keys[&conn]);
                    self.lent.push((client.0, conn));
                }
                Act::Open { conn, key } => {
                    assert!(self.alive.insert(conn), "numbers are not used twice");
                    self.conn_keys.insert(conn, key.0);
                    self.opening.push(conn);
                }
                Act::Close { conn, .. } => {
                    assert!(self.alive.remove(&conn));
                    self.opening.retain(|other| *other != conn);
                }
                Act::TimedOut { client, .. } | Act::Crowded { client } => {
                    let at = self.waiting.iter().position(|&waiting| waiting == client.0);
                    self.waiting.remove(at.expect("only who waits gives up"));
                }
            }
        }
    }

    fn step(&mut self, pool: &mut Pool, step: &Step) {
        let mut acts = Vec::new();
        match *step {
            Step::Borrow(key) => {
                self.clients += 1;
                self.waiting.push(self.clients);
                self.keys.insert(self.clients, key);
                pool.borrow(self.now_ns, wish(self.clients, key), &mut acts);
            }
            Step::Back(at, clean) if at < self.lent.len() => {
                let (_, conn) = self.lent.remove(at);
                pool.give_back(self.now_ns, conn, 0, clean, &mut acts);
            }
            Step::Opened(at) if at < self.opening.len() => {
                let conn = self.opening.remove(at);
                pool.opened(self.now_ns, conn, 0, &mut acts);
            }
            Step::Failed(at) if at < self.opening.len() => {
                let conn = self.opening.remove(at);
                self.alive.remove(&conn);
                pool.open_failed(self.now_ns, conn);
            }
            Step::Lost(at) if at < self.lent.len() => {
                let (_, conn) = self.lent.remove(at);
                self.alive.remove(&conn);
                pool.lost(self.now_ns, conn, &mut acts);
            }
            Step::Cancel(at) if at < self.waiting.len() => {
                pool.cancel(ClientId(self.waiting.remove(at)));
            }
            Step::Wait(ns) => {
                self.now_ns += ns;
                pool.tick(self.now_ns, &mut acts);
            }
            Step::Cap(max) => {
                pool.set_limits(self.now_ns, Limits { max, ..*pool.limits() }, &mut acts);
            }
            _ => {}
        }
        self.apply(&mut acts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The cap holds, nothing is lent twice or dirty, and once connections come back everybody who waits is served: no tick is
    /// needed but those that end a pause after a failure.
    #[test]
    fn no_waiter_is_forgotten(steps in steps()) {
        let mut pool = Pool::new(LIMITS);
        let mut world = World::default();
        let mut cap = LIMITS.max;
        for step in &steps {
            world.step(&mut pool, step);
            if let Step::Cap(max) = step { cap = (*max).max(world.alive.len() as u32); }
            cap = cap.min(pool.limits().max.max(world.alive.len() as u32));
            let counts = pool.counts();
            prop_assert!(counts.connections <= cap, "{counts:?} over {cap}");
            prop_assert_eq!(counts.connections as usize, world.alive.len());
            prop_assert_eq!(counts.lent as usize, world.lent.len());
            prop_assert_eq!(counts.opening as usize, world.opening.len());
            prop_assert_eq!(counts.waiting as usize, world.waiting.len());
        }
        let mut rounds = 0;
        let mut acts = Vec::new();
        pool.set_limits(world.now_ns, Limits { borrow_timeout_ns: u64::MAX, ..*pool.limits() }, &mut acts);
        world.apply(&mut acts);
        while !(world.waiting.is_empty() && world.opening.is_empty() && world.lent.is_empty()) {
            rounds += 1;
            prop_assert!(rounds < 2_000, "stuck: {:?}", pool.counts());
            if !world.opening.is_empty() {
                world.step(&mut pool, &Step::Opened(0));
            } else if !world.lent.is_empty() {
                world.step(&mut pool, &Step::Back(0, true));
            } else {
                let due_ns = pool.next_deadline_ns();
                prop_assert!(due_ns.is_some(), "somebody waits for nothing: {:?}", pool.counts());
                let wait_ns = due_ns.unwrap_or_default().saturating_sub(world.now_ns);
                world.step(&mut pool, &Step::Wait(wait_ns));
            }
        }
    }
}
