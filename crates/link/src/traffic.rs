//! How the link's thread moves packets between TUNs and queues.

use crate::held;
use crate::ledger::Sight;
use crate::packet::{Direction, Packet, Segment, parse_packet};
use crate::router::{Due, PortId, Refusal};
use crate::worker::{Parcel, Worker};
use danki_model::EnvId;
use danki_sys::clock;
use rustix::io::Errno;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

/// Packets read from one TUN before the others have their turn.
const READ_BURST: usize = 32;
/// Packets written before the TUNs are looked at again.
const WRITE_BURST: usize = 64;
/// Bursts read when an env is held or goes: more than its TUN's queue (500 packets) has.
const DRAIN_BURSTS: usize = 32;
/// When the kernel cannot take a packet, the next try is this much later.
const RETRY_NS: u64 = 500_000;
/// Tries before the packet is given up: an eighth of a second.
const MAX_TRIES: u8 = 250;

impl Worker {
    /// Writes what is due. False: there may be more.
    pub(crate) fn deliver(&mut self) -> bool {
        for _ in 0..WRITE_BURST {
            let now_ns = clock::monotonic_ns();
            let Some(due) = self.router.pop(now_ns) else { return true };
            self.write(now_ns, due);
        }
        false
    }

    fn write(&mut self, now_ns: u64, due: Due<Parcel>) {
        let tun = match due.direction {
            Direction::Up => Some(self.region.as_fd()),
            Direction::Down => self.tuns.get(&due.port).map(|tun| tun.as_fd()),
        };
        let outcome = tun.map_or(Err(Errno::BADF), |tun| rustix::io::write(tun, &due.parcel.data));
        match outcome {
            Ok(_) => self.written(now_ns, due),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR) if due.tries < MAX_TRIES => {
                self.stats.write_retries += 1;
                self.router.put_back(due, now_ns + RETRY_NS);
            }
            Err(_) => {
                self.stats.write_failed += 1;
                self.see(due.env, now_ns, Sight::Dropped, &due.parcel);
            }
        }
    }

    fn written(&mut self, now_ns: u64, due: Due<Parcel>) {
        self.stats.packets += 1;
        self.stats.bytes += (due.parcel.data.len() - self.header) as u64;
        if due.was_held {
            self.stats.held += 1;
        } else {
            self.lateness.saturating_record(now_ns.saturating_sub(due.due_ns));
        }
        self.see(due.env, now_ns, Sight::Left, &due.parcel);
        if due.direction == Direction::Down
            && let Some(capture) = &mut self.capture
        {
            capture.packet(now_ns + self.epoch_offset_ns, due.parcel.data, self.header);
        }
    }

    fn see(&mut self, env: EnvId, now_ns: u64, sight: Sight, parcel: &Parcel) {
        if let Some((conn, segment)) = &parcel.tracked {
            self.ledger.observe(env, now_ns, sight, segment, Some(*conn), &mut self.events);
        }
    }

    /// Reads a burst from the region. False: there may be more.
    pub(crate) fn read_region(&mut self) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut emptied = false;
        for _ in 0..READ_BURST {
            match rustix::io::read(&self.region, &mut buffer[..]) {
                Ok(length) => self.take_down(&buffer[..length]),
                Err(Errno::AGAIN) => {
                    emptied = true;
                    break;
                }
                Err(errno) => {
                    self.poller.remove(self.region.as_fd());
                    self.caveat(format!("the region is cut off: {errno}"));
                    emptied = true;
                    break;
                }
            }
        }
        self.buffer = buffer;
        emptied
    }

    /// Reads a burst from an env. False: there may be more.
    pub(crate) fn read_env(&mut self, port: PortId) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut emptied = false;
        for _ in 0..READ_BURST {
            let Some(tun) = self.tuns.get(&port) else {
                emptied = true;
                break;
            };
            match rustix::io::read(tun, &mut buffer[..]) {
                Ok(length) => self.take_up(port, &buffer[..length]),
                Err(errno) => {
                    if errno != Errno::AGAIN {
                        self.poller.remove(tun.as_fd()); // its namespace is gone; detach follows
                    }
                    emptied = true;
                    break;
                }
            }
        }
        self.buffer = buffer;
        emptied
    }

    /// Reads what an env has sent by now.
    pub(crate) fn drain_env(&mut self, port: PortId) {
        for _ in 0..DRAIN_BURSTS {
            if self.read_env(port) {
                return;
            }
        }
    }

    pub(crate) fn take_up(&mut self, port: PortId, data: &[u8]) {
        let now_ns = clock::monotonic_ns();
        let bytes = data.get(self.header..).unwrap_or_default();
        if self.router.is_held(port) && !held::passes(bytes) {
            return self.keep(port, data);
        }
        if let Some(capture) = &mut self.capture {
            capture.packet(now_ns + self.epoch_offset_ns, bytes.to_vec(), 0);
        }
        match parse_packet(bytes) {
            Ok(packet) if self.router.may_leave(port, &packet) => {
                self.enter(now_ns, port, Direction::Up, packet.destination, &packet, data);
            }
            _ => self.stats.dropped_no_route += 1,
        }
    }

    fn take_down(&mut self, data: &[u8]) {
        let now_ns = clock::monotonic_ns();
        let packet = parse_packet(data.get(self.header..).unwrap_or_default());
        match packet.map(|packet| (packet, self.router.destination(&packet))) {
            Ok((packet, Some(port))) if self.router.is_held(port) && held::is_bare(&packet) => {
                self.pass_down(port, data);
            }
            Ok((packet, Some(port))) => {
                self.enter(now_ns, port, Direction::Down, packet.source, &packet, data);
            }
            _ => self.stats.dropped_no_route += 1,
        }
    }

    fn enter(
        &mut self,
        now_ns: u64,
        port: PortId,
        direction: Direction,
        remote: Ipv4Addr,
        packet: &Packet<'_>,
        data: &[u8],
    ) {
        let Some(env) = self.router.env(port) else { return };
        let tracked = packet.tcp.and_then(|tcp| {
            let segment = Segment::new(direction, &tcp);
            let conn = self.ledger.observe(env, now_ns, Sight::Entered, &segment, None, &mut self.events)?;
            Some((conn, segment))
        });
        let parcel = Parcel { data: data.to_vec(), tracked };
        let length = data.len() - self.header;
        if let Err(refusal) = self.router.enter(now_ns, port, direction, remote, length, parcel) {
            *match refusal {
                Refusal::Lost => &mut self.stats.lost,
                Refusal::HeldFull => &mut self.stats.held_overflow,
                Refusal::Full | Refusal::Gone => &mut self.stats.dropped_bound,
            } += 1;
            if let Some((conn, segment)) = tracked {
                self.ledger.observe(env, now_ns, Sight::Dropped, &segment, Some(conn), &mut self.events);
            }
        }
        if self.router.next_ns().is_some_and(|next_ns| next_ns <= clock::monotonic_ns()) {
            self.deliver();
        }
    }
}
