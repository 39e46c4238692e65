//! Where packets go and when: pure, no file descriptors, no clock.
//!
//! Each env has a *lane* per direction and path (a listed destination, or all others together). A lane is a FIFO with release
//! times that never decrease, so packets of one path are never reordered, while a slow destination does not delay a fast one.
//! A heap holds the head of each lane that may move. Holding an env closes its edge: its down lanes leave the heap. What had
//! left it before is on the wire and travels on, as for a paused virtual machine.

use crate::Error;
use crate::config::{BOUND_BYTES, Config};
use crate::lane::{Delay, Fate, Lane, Waiting, mix};
use crate::packet::{Direction, Packet};
use danki_model::EnvId;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::Ipv4Addr;

/// An env's place at the link; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// Why a packet does not travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Lost, as the path asks.
    Lost,
    /// A queue is at its bound.
    Full,
    /// The queue of a held env is at its bound.
    HeldFull,
    /// The env is not attached.
    Gone,
}

/// A packet whose time has come.
#[derive(Debug)]
pub struct Due<P> {
    /// The env it comes from or goes to.
    pub env: EnvId,
    /// That env's place.
    pub port: PortId,
    /// Which way it goes.
    pub direction: Direction,
    /// When it should have been released.
    pub due_ns: u64,
    /// It waited for its env to be released.
    pub was_held: bool,
    /// How often it was put back.
    pub tries: u8,
    /// The packet.
    pub parcel: P,
    bytes: usize,
    order: u64,
    lane: usize,
}

struct Port<P> {
    env: EnvId,
    address: Ipv4Addr,
    lanes: Vec<Lane<P>>,
    load: [Load; 2],
    held: bool,
    released_ns: u64,
    detached: bool,
}

#[derive(Clone, Copy, Default)]
struct Load {
    packets: usize,
    bytes: usize,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    at_ns: u64,
    order: u64,
    port: PortId,
    lane: usize,
}

/// Queues between envs and region.
pub struct Router<P> {
    delays: Vec<Delay>,
    listed: HashMap<Ipv4Addr, usize>,
    seed: u64,
    bound_packets: usize,
    hold_bound_packets: usize,
    ports: HashMap<PortId, Port<P>>,
    by_env: HashMap<EnvId, PortId>,
    by_address: HashMap<Ipv4Addr, PortId>,
    heads: BinaryHeap<Reverse<Head>>,
    next_port: u32,
    next_order: u64,
}

impl<P> Router<P> {
    /// A router without envs.
    pub fn new(config: &Config) -> Router<P> {
        let delays = std::iter::once(&config.default_path).chain(config.paths.iter().map(|(_, path)| path));
        Router {
            delays: delays.map(Delay::new).collect(),
            listed: config.paths.iter().enumerate().map(|(i, (address, _))| (*address, i + 1)).collect(),
            seed: config.seed,
            bound_packets: config.bound_packets,
            hold_bound_packets: config.hold_bound_packets,
            ports: HashMap::new(),
            by_env: HashMap::new(),
            by_address: HashMap::new(),
            heads: BinaryHeap::new(),
            next_port: 0,
            next_order: 0,
        }
    }

    /// Adds an env.
    pub fn attach(&mut self, env: EnvId, address: Ipv4Addr) -> Result<PortId, Error> {
        if address.octets()[0] != 10 {
            return Err(Error::Address(address));
        }
        if self.by_env.contains_key(&env) || self.by_address.contains_key(&address) {
            return Err(Error::Attached(env, address));
        }
        let port = PortId(self.next_port);
        self.next_port += 1;
        let lanes = (0..2 * self.delays.len() as u64)
            .map(|lane| Lane::new(mix(mix(self.seed ^ u64::from(env.0)) ^ lane)));
        let entry = Port {
            env,
            address,
            lanes: lanes.collect(),
            load: [Load::default(); 2],
            held: false,
            released_ns: 0,
            detached: false,
        };
        self.ports.insert(port, entry);
        self.by_env.insert(env, port);
        self.by_address.insert(address, port);
        Ok(port)
    }

    /// Removes an env: packets to it are gone (their number is returned), packets from it travel on.
    pub fn detach(&mut self, env: EnvId) -> Option<(PortId, usize)> {
        let id = self.by_env.remove(&env)?;
        let port = self.ports.get_mut(&id)?;
        self.by_address.remove(&port.address);
        port.detached = true;
        for lane in port.lanes.iter_mut().skip(1).step_by(2) {
            lane.queue.clear();
        }
        let dropped = std::mem::take(&mut port.load[1]).packets;
        if port.load[0].packets == 0 {
            self.ports.remove(&id);
        }
        Some((id, dropped))
    }

    /// The port of an attached env.
    pub fn port(&self, env: EnvId) -> Option<PortId> {
        self.by_env.get(&env).copied()
    }

    /// The env at a port.
    pub fn env(&self, port: PortId) -> Option<EnvId> {
        self.ports.get(&port).map(|port| port.env)
    }

    /// Closes an env's edge: nothing to it is due any more.
    pub fn hold(&mut self, port: PortId) {
        if let Some(port) = self.ports.get_mut(&port) {
            port.held = true;
        }
    }

    /// The env is held.
    pub fn is_held(&self, port: PortId) -> bool {
        self.ports.get(&port).is_some_and(|port| port.held)
    }

    /// Opens an env's edge: what has become due meanwhile is due now, in order.
    pub fn release(&mut self, id: PortId, now_ns: u64) {
        self.release_at(id, now_ns, 0);
    }

    /// Opens an env's edge for what it sends; what waits for it is due not before `earliest_ns`, in order.
    pub fn release_at(&mut self, id: PortId, now_ns: u64, earliest_ns: u64) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        if !std::mem::replace(&mut port.held, false) {
            return;
        }
        port.released_ns = now_ns;
        for (index, lane) in port.lanes.iter_mut().enumerate() {
            if lane.scheduled.is_none() {
                schedule(&mut self.heads, id, index, lane, earliest_ns);
            }
        }
    }

    /// An env may send this packet: it is from its own address and goes to the region.
    pub fn may_leave(&self, port: PortId, packet: &Packet<'_>) -> bool {
        is_region(packet.destination)
            && self.ports.get(&port).is_some_and(|port| port.address == packet.source && !port.detached)
    }

    /// The env that a packet from the region goes to.
    pub fn destination(&self, packet: &Packet<'_>) -> Option<PortId> {
        self.by_address.get(&packet.destination).copied().filter(|_| is_region(packet.source))
    }

    /// A packet of so many bytes enters, from or to the address `remote` of the region.
    pub fn enter(
        &mut self,
        now_ns: u64,
        id: PortId,
        direction: Direction,
        remote: Ipv4Addr,
        bytes: usize,
        parcel: P,
    ) -> Result<(), Refusal> {
        let side = direction as usize;
        let path = self.listed.get(&remote).copied().unwrap_or(0);
        let port = self.ports.get_mut(&id).ok_or(Refusal::Gone)?;
        let load = &mut port.load[side];
        let held = port.held && direction == Direction::Down;
        if held && load.packets >= self.hold_bound_packets {
            return Err(Refusal::HeldFull);
        }
        if load.packets >= self.bound_packets || load.bytes + bytes > BOUND_BYTES {
            return Err(Refusal::Full);
        }
        let index = 2 * path + side;
        let lane = &mut port.lanes[index];
        let due_ns = match lane.fate(now_ns, bytes, &self.delays[path]) {
            Fate::Release(due_ns) => due_ns,
            Fate::Lost => return Err(Refusal::Lost),
            Fate::Full => return Err(Refusal::Full),
        };
        load.packets += 1;
        load.bytes += bytes;
        lane.queue.push_back(Waiting { due_ns, order: self.next_order, bytes, tries: 0, parcel });
        self.next_order += 1;
        if !held && lane.scheduled.is_none() {
            schedule(&mut self.heads, id, index, lane, 0);
        }
        Ok(())
    }

    /// When the next packet is due.
    pub fn next_ns(&mut self) -> Option<u64> {
        self.drop_stale_heads();
        self.heads.peek().map(|Reverse(head)| head.at_ns)
    }

    /// Takes a packet that is due.
    pub fn pop(&mut self, now_ns: u64) -> Option<Due<P>> {
        self.drop_stale_heads();
        if self.heads.peek().is_none_or(|Reverse(head)| head.at_ns > now_ns) {
            return None;
        }
        let Reverse(Head { port: id, lane: index, .. }) = self.heads.pop()?;
        let port = self.ports.get_mut(&id).expect("stale heads are gone");
        let lane = &mut port.lanes[index];
        let waiting = lane.queue.pop_front().expect("a scheduled lane has a head");
        lane.scheduled = None;
        schedule(&mut self.heads, id, index, lane, 0);
        let load = &mut port.load[index % 2];
        load.packets -= 1;
        load.bytes -= waiting.bytes;
        let direction = if index % 2 == 0 { Direction::Up } else { Direction::Down };
        let due = Due {
            env: port.env,
            port: id,
            direction,
            due_ns: waiting.due_ns,
            was_held: direction == Direction::Down && waiting.due_ns < port.released_ns,
            tries: waiting.tries,
            parcel: waiting.parcel,
            bytes: waiting.bytes,
            order: waiting.order,
            lane: index,
        };
        if port.detached && port.load[0].packets == 0 {
            self.ports.remove(&id);
        }
        Some(due)
    }

    /// Puts a packet that could not be written back to the head of its lane, to be due again at `at_ns`.
    /// False, and the packet is gone, if its env went meanwhile.
    pub fn put_back(&mut self, due: Due<P>, at_ns: u64) -> bool {
        let Some(port) = self.ports.get_mut(&due.port) else { return false };
        let load = &mut port.load[due.lane % 2];
        load.packets += 1;
        load.bytes += due.bytes;
        let lane = &mut port.lanes[due.lane];
        let (due_ns, order, bytes, tries, parcel) =
            (due.due_ns, due.order, due.bytes, due.tries.saturating_add(1), due.parcel);
        lane.queue.push_front(Waiting { due_ns, order, bytes, tries, parcel });
        schedule(&mut self.heads, due.port, due.lane, lane, at_ns);
        true
    }

    /// Heads that were scheduled before their lane was held, cleared or put back.
    fn drop_stale_heads(&mut self) {
        while let Some(Reverse(head)) = self.heads.peek() {
            if let Some(port) = self.ports.get_mut(&head.port) {
                let closed = port.held && head.lane % 2 == 1;
                let lane = &mut port.lanes[head.lane];
                if lane.scheduled == Some((head.at_ns, head.order)) {
                    if !closed && !lane.queue.is_empty() {
                        return;
                    }
                    lane.scheduled = None;
                }
            }
            self.heads.pop();
        }
    }
}

/// Puts a lane's head into the heap, due not before `earliest_ns`.
fn schedule<P>(
    heads: &mut BinaryHeap<Reverse<Head>>,
    port: PortId,
    index: usize,
    lane: &mut Lane<P>,
    earliest_ns: u64,
) {
    let Some(front) = lane.queue.front() else { return };
    let at_ns = front.due_ns.max(earliest_ns);
    lane.scheduled = Some((at_ns, front.order));
    heads.push(Reverse(Head { at_ns, order: front.order, port, lane: index }));
}

/// 198.18.0.0/15: reserved for benchmarks (RFC 2544), so never the address of a real service.
pub fn is_region(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    a == 198 && b & 0xfe == 18
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;
