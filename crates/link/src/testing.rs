//! Packets made by hand, for the unit tests of several modules.

use crate::packet::Flags;
use std::net::SocketAddrV4;

/// An IPv4 TCP packet (checksums left 0: the link does not look at them).
pub fn tcp_packet(source: &str, destination: &str, flags: Flags, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let source: SocketAddrV4 = source.parse().unwrap();
    let destination: SocketAddrV4 = destination.parse().unwrap();
    let total = u16::try_from(40 + payload.len()).unwrap();
    let mut bytes = vec![0x45, 0];
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend(source.ip().octets());
    bytes.extend(destination.ip().octets());
    bytes.extend(source.port().to_be_bytes());
    bytes.extend(destination.port().to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 0x50, flags.0, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}
