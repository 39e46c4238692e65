//! The pool's rules.

use crate::conns::{Conns, Phase};
use crate::waiters::{Waiter, Waiters};
use crate::{Act, ClientId, Closed, ConnId, Counts, Key, PATIENCE, Wish};

/// First pause after a connection could not be opened; doubled each time.
const BACKOFF_NS: u64 = 50_000_000;
/// Longest pause.
const LONGEST_BACKOFF_NS: u64 = 5_000_000_000;

/// What bounds a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections, opening ones included.
    pub max: u32,
    /// Most connections that stay idle for longer than `idle_after_ns`.
    pub max_idle: u32,
    /// A connection counts as idle after this long (RDS Proxy: 5 minutes).
    pub idle_after_ns: u64,
    /// Idle connections are closed at this age (RDS Proxy: some time after 24 hours).
    pub max_age_ns: u64,
    /// Longest wait; 0: only what is free already is lent.
    pub borrow_timeout_ns: u64,
    /// Most clients that wait.
    pub max_waiters: u32,
}

/// The pool of one database server.
#[derive(Debug)]
pub struct Pool {
    limits: Limits,
    conns: Conns,
    waiters: Waiters,
    failures: u32,
    /// Nothing is opened before.
    open_after_ns: u64,
}

impl Pool {
    /// An empty pool.
    pub fn new(limits: Limits) -> Self {
        Self { limits, conns: Conns::default(), waiters: Waiters::default(), failures: 0, open_after_ns: 0 }
    }

    /// The present figures.
    pub fn counts(&self) -> Counts {
        let (connections, idle, opening) = (self.conns.len(), self.conns.idle(), self.conns.opening());
        Counts { connections, opening, idle, lent: connections - idle - opening, waiting: self.waiters.len() }
    }

    /// The present limits.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Other limits from now on. Who waits keeps its deadline.
    pub fn set_limits(&mut self, now_ns: u64, limits: Limits, acts: &mut Vec<Act>) {
        self.limits = limits;
        while self.conns.len() > limits.max
            && let Some(conn) = self.conns.longest_idle()
        {
            self.close(conn, Closed::Cap, acts);
        }
        self.serve(now_ns, acts);
    }

    /// A client needs a connection. It asks once, and then waits for [`Act::Lend`], [`Act::TimedOut`] or [`Act::Crowded`].
    pub fn borrow(&mut self, now_ns: u64, wish: Wish, acts: &mut Vec<Act>) {
        debug_assert!(
            self.waiters.of_client(wish.client).is_none(),
            "a client waits for one connection at a time"
        );
        if self.waiters.first_of(wish.key).is_none()
            && let Some((conn, untouched)) = self.conns.take(&wish)
        {
            return acts.push(Act::Lend { client: wish.client, conn, untouched, waited_ns: 0 });
        }
        if self.limits.borrow_timeout_ns == 0 {
            return acts.push(Act::TimedOut { client: wish.client, waited_ns: 0 });
        }
        if self.waiters.len() >= self.limits.max_waiters {
            return acts.push(Act::Crowded { client: wish.client });
        }
        let deadline_ns = now_ns.saturating_add(self.limits.borrow_timeout_ns);
        self.waiters.push(Waiter { wish, since_ns: now_ns, deadline_ns, overtaken: 0 });
        self.serve(now_ns, acts);
    }

    /// A client that waits does so no more.
    pub fn cancel(&mut self, client: ClientId) {
        if let Some(place) = self.waiters.of_client(client) {
            self.waiters.remove(place);
        }
    }

    /// A connection is open and logged in.
    pub fn opened(&mut self, now_ns: u64, conn: ConnId, state: u64, acts: &mut Vec<Act>) {
        self.failures = 0;
        self.open_after_ns = 0;
        self.free(now_ns, conn, state, acts);
    }

    /// A connection could not be opened. Who waits goes on waiting; the next attempt comes after a pause.
    pub fn open_failed(&mut self, now_ns: u64, conn: ConnId) {
        self.conns.remove(conn);
        let pause = BACKOFF_NS.saturating_mul(1 << self.failures.min(20)).min(LONGEST_BACKOFF_NS);
        self.failures += 1;
        self.open_after_ns = now_ns + pause;
    }

    /// All that wait for this key, in their order: for an error that waiting does not cure. They wait no more.
    pub fn dismiss(&mut self, key: Key) -> Vec<ClientId> {
        let mut dismissed = Vec::new();
        while let Some(waiter) = self.waiters.first_of(key).and_then(|place| self.waiters.remove(place)) {
            dismissed.push(waiter.wish.client);
        }
        dismissed
    }

    /// A client is done. A connection that is not clean is closed, never lent.
    pub fn give_back(&mut self, now_ns: u64, conn: ConnId, state: u64, clean: bool, acts: &mut Vec<Act>) {
        if !matches!(self.conns.conn(conn).map(|conn| conn.phase), Some(Phase::Lent(_))) {
            return;
        }
        if clean && self.conns.len() <= self.limits.max {
            return self.free(now_ns, conn, state, acts);
        }
        self.close(conn, if clean { Closed::Cap } else { Closed::Dirty }, acts);
        self.serve(now_ns, acts);
    }

    /// A connection has ended by itself, whatever it was doing.
    pub fn lost(&mut self, now_ns: u64, conn: ConnId, acts: &mut Vec<Act>) {
        if self.conns.remove(conn).is_some() {
            self.serve(now_ns, acts);
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now_ns: u64, acts: &mut Vec<Act>) {
        while let Some(waiter) = self.waiters.due(now_ns).and_then(|place| self.waiters.remove(place)) {
            acts.push(Act::TimedOut { client: waiter.wish.client, waited_ns: now_ns - waiter.since_ns });
        }
        self.retire(now_ns, acts);
        self.serve(now_ns, acts);
    }

    /// Closes everything that is idle: the database has changed, or the proxy ends.
    pub fn drain(&mut self, acts: &mut Vec<Act>) {
        while let Some(conn) = self.conns.longest_idle() {
            self.close(conn, Closed::Drained, acts);
        }
    }

    /// When [`Pool::tick`] has something to do, at the latest.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let opening = (self.open_after_ns > 0 && self.waiters.len() > 0).then_some(self.open_after_ns);
        self.waiters.next_deadline_ns().into_iter().chain(opening).min()
    }

    fn close(&mut self, conn: ConnId, why: Closed, acts: &mut Vec<Act>) {
        self.conns.remove(conn);
        acts.push(Act::Close { conn, why });
    }

    fn retire(&mut self, now_ns: u64, acts: &mut Vec<Act>) {
        let Limits { max_idle, idle_after_ns, max_age_ns, .. } = self.limits;
        let idle = |since_ns: u64| now_ns.saturating_sub(since_ns) >= idle_after_ns;
        let count = self.conns.idle_in_order().take_while(|(_, conn)| idle(conn.returned_ns)).count();
        let surplus = count.saturating_sub(max_idle as usize);
        let old = |opened_ns: u64| now_ns.saturating_sub(opened_ns) >= max_age_ns;
        let closing: Vec<_> = self
            .conns
            .idle_in_order()
            .enumerate()
            .filter_map(|(at, (id, conn))| match (at < surplus, old(conn.opened_ns)) {
                (true, _) => Some((id, Closed::Idle)),
                (false, true) => Some((id, Closed::Old)),
                (false, false) => None,
            })
            .collect();
        for (conn, why) in closing {
            self.close(conn, why, acts);
        }
    }

    /// A connection has become free: the longest waiting client of its key gets it, unless the longest waiting of all has been
    /// overtaken too often and something can be opened for it.
    fn free(&mut self, now_ns: u64, conn: ConnId, state: u64, acts: &mut Vec<Act>) {
        let Some(key) = self.conns.conn(conn).map(|conn| conn.key) else { return };
        self.conns.rest(conn, now_ns, state);
        let Some((first, waiter)) = self.waiters.first() else { return };
        let (first_key, overtaken) = (waiter.wish.key, waiter.overtaken);
        let first_is_due = first_key != key
            && overtaken >= PATIENCE
            && self.conns.opening_of(first_key) == 0
            && now_ns >= self.open_after_ns;
        if first_is_due || self.waiters.first_of(key).is_none() {
            self.serve(now_ns, acts);
        }
        let still_idle = self.conns.conn(conn).is_some_and(|conn| matches!(conn.phase, Phase::Idle(_)));
        if let Some(place) = self.waiters.first_of(key).filter(|_| still_idle) {
            if place != first {
                self.waiters.overtake_first();
            }
            self.hand_over(now_ns, place, acts);
        }
    }

    /// Gives a waiter an idle connection, of which there is one that fits.
    fn hand_over(&mut self, now_ns: u64, place: u64, acts: &mut Vec<Act>) {
        let waiter = self.waiters.remove(place).expect("the place was just found");
        let (conn, untouched) = self.conns.take(&waiter.wish).expect("one that fits is idle");
        acts.push(Act::Lend {
            client: waiter.wish.client,
            conn,
            untouched,
            waited_ns: now_ns - waiter.since_ns,
        });
    }

    /// Opens what those who wait need: where there is room, or in place of what is idle.
    fn serve(&mut self, now_ns: u64, acts: &mut Vec<Act>) {
        if self.waiters.len() == 0 {
            return;
        }
        if now_ns < self.open_after_ns {
            return;
        }
        for key in self.waiters.keys_in_order() {
            // While opening fails, one attempt at a time is enough.
            let most = if self.failures > 0 { 1 } else { self.waiters.count_of(key) };
            while self.conns.opening_of(key) < most && self.make_room(acts) {
                let conn = self.conns.open(key);
                acts.push(Act::Open { conn, key });
            }
        }
    }

    /// Room for one more, if need be in place of what is idle: nobody who waits can use that.
    fn make_room(&mut self, acts: &mut Vec<Act>) -> bool {
        if self.conns.len() < self.limits.max {
            return true;
        }
        match self.conns.longest_idle() {
            Some(conn) if self.conns.len() == self.limits.max => {
                self.close(conn, Closed::Room, acts);
                true
            }
            _ => false,
        }
    }
}
