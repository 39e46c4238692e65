//! What passes the edge of a held env, and what waits.
//!
//! Lambda pauses a whole virtual machine, its TCP timers included. Here processes are frozen and the kernel's TCP runs on: it owes
//! acknowledgments, and it sends keep-alive probes, which Node asks for each second and which end a connection after ten that nobody
//! answers. So bare acknowledgments, which a probe is too, pass both ways: they change nothing that a process could see, and without
//! them a freeze of eleven seconds would kill connections that live on AWS. All else (payload, SYN, FIN, RST, other protocols) waits.

use crate::packet::{Direction, Packet, Segment, parse_packet};
use crate::router::PortId;
use crate::worker::Worker;
use std::os::fd::AsFd;

/// A packet, without its TUN's header, that passes in spite of a hold.
pub(crate) fn passes(bytes: &[u8]) -> bool {
    parse_packet(bytes).is_ok_and(|packet| is_bare(&packet))
}

/// A TCP segment without payload that changes no state.
pub(crate) fn is_bare(packet: &Packet<'_>) -> bool {
    packet.tcp.is_some_and(|tcp| !Segment::new(Direction::Up, &tcp).matters())
}

impl Worker {
    /// Keeps what a held env has sent until its release; at the bound it is dropped and counted.
    pub(crate) fn keep(&mut self, port: PortId, data: &[u8]) {
        let waiting = self.waiting.entry(port).or_default();
        match waiting.len() < self.hold_bound_packets {
            true => waiting.push_back(data.to_vec()),
            false => self.stats.held_overflow += 1,
        }
    }

    /// Answers the timers of a held env at once: nobody waits for it, so its delay does not count.
    pub(crate) fn pass_down(&mut self, port: PortId, data: &[u8]) {
        let written = self.tuns.get(&port).map(|tun| rustix::io::write(tun.as_fd(), data));
        match written {
            Some(Ok(_)) => self.stats.passed_while_held += 1,
            _ => self.stats.write_failed += 1,
        }
    }
}
