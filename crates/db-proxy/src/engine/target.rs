//! Where the database is. After a failover its name leads elsewhere: that is asked again when a connection is lost or cannot be made, when
//! a write is refused, and with every probe. Clients in no transaction notice nothing but a wait.

use super::{Engine, Order, PROBE_AGAIN_NS};
use crate::event::Event;
use crate::protocol::Protocol;
use danki_sys::clock::monotonic_ns;
use std::net::SocketAddr;
use std::sync::Arc;

/// What is known of the database's place.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Which of the name's addresses is tried.
    at: usize,
    /// How often the database has moved: connections of before are not lent again.
    pub moves: u64,
    /// A thread asks, because names are asked by waiting.
    asking: bool,
    /// Not again before.
    ask_after_ns: u64,
    refused_ns: Option<u64>,
}

impl<P: Protocol> Engine<P> {
    pub(super) fn target(&self) -> SocketAddr {
        self.parts.target[self.place.at % self.parts.target.len()]
    }

    /// Nobody answers there: the name's next address, if it has several.
    pub(super) fn try_elsewhere(&mut self) {
        self.place.at += 1;
        self.ask_where();
    }

    /// Asks for the name's addresses, in a thread of its own; the answer is an order.
    pub(super) fn ask_where(&mut self) {
        if self.place.asking || monotonic_ns() < self.place.ask_after_ns || self.stop_by_ns.is_some() {
            return;
        }
        let (resolve, orders, wake) =
            (Arc::clone(&self.parts.resolve), self.parts.own_orders.clone(), Arc::clone(&self.parts.wake));
        let address = self.parts.config.target.address.clone();
        let ask = move || {
            // The engine may have ended meanwhile.
            let _ended = orders.send(Order::Target(resolve(&address).unwrap_or_default()));
            let _woken = rustix::io::write(&*wake, &1_u64.to_ne_bytes());
        };
        self.place.asking = std::thread::Builder::new().name("resolve".into()).spawn(ask).is_ok();
    }

    /// The name's addresses; none: nobody knows it just now.
    pub(super) fn found(&mut self, mut addresses: Vec<SocketAddr>) {
        self.place.asking = false;
        self.place.ask_after_ns = monotonic_ns() + PROBE_AGAIN_NS;
        addresses.sort_unstable();
        let mut known = self.parts.target.clone();
        known.sort_unstable();
        if addresses.is_empty() || addresses == known {
            return;
        }
        self.parts.target = addresses;
        self.place.at = 0;
        self.moved("its name leads elsewhere");
    }

    /// The database has refused a write that another one would take. A client that does so on purpose costs connections once a second.
    pub(super) fn write_refused(&mut self) {
        let now_ns = monotonic_ns();
        if self.place.refused_ns.is_some_and(|before_ns| now_ns < before_ns + PROBE_AGAIN_NS) {
            return;
        }
        self.place.refused_ns = Some(now_ns);
        self.moved("it takes no writes any more");
        self.try_elsewhere();
    }

    /// What is idle goes; what is lent goes when it is given back.
    fn moved(&mut self, why: &str) {
        self.place.moves += 1;
        self.pool.drain(&mut self.acts);
        (self.parts.sink)(&Event::Moved { why });
    }
}
