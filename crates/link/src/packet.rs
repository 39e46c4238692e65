//! The few header fields the link needs, read in place.
//!
//! Not a general parser: IPv4 and, for the ledger, TCP (RFC 791, RFC 9293). Everything is bounds-checked slicing, so arbitrary
//! bytes give an error, never a panic; checksums are not verified (with offload they are not complete yet).

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use thiserror::Error;

/// Why bytes are not a packet the link can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The version nibble is not 4.
    #[error("not an IPv4 packet")]
    NotIpv4,
    /// The bytes end inside a header.
    #[error("truncated header")]
    Truncated,
    /// A header says it is shorter than the minimum, or longer than the packet.
    #[error("impossible header length")]
    HeaderLength,
}

/// An IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// The TCP segment in it; absent for other protocols, later fragments and unreadable TCP headers.
    pub tcp: Option<Tcp<'a>>,
}

/// A TCP segment (with segmentation offload: up to 64 KiB of them in one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// Sender.
    pub source: SocketAddrV4,
    /// Receiver.
    pub destination: SocketAddrV4,
    /// Sequence number of the first byte (of the SYN, if it has one).
    pub sequence: u32,
    /// Control bits.
    pub flags: Flags,
    /// What it carries.
    pub payload: &'a [u8],
}

/// The control bits of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// The acknowledgment field is valid.
    pub const ACK: Flags = Flags(0x10);

    /// Any of these bits is set.
    pub fn has(self, bits: Flags) -> bool {
        self.0 & bits.0 != 0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// Without options (RFC 791 §3.1).
const IPV4_HEADER_MIN: usize = 20;
/// Without options (RFC 9293 §3.1).
const TCP_HEADER_MIN: usize = 20;
/// IANA protocol number.
const PROTOCOL_TCP: u8 = 6;
/// TLS record type `handshake` (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 22;
/// TLS handshake type `client_hello` (RFC 8446 §4).
const TLS_CLIENT_HELLO: u8 = 1;
/// A TLS record's header: type, version, length.
const TLS_RECORD_HEADER: usize = 5;

/// Reads an IPv4 packet, without a `virtio_net_hdr` before it.
pub fn parse_packet(bytes: &[u8]) -> Result<Packet<'_>, Malformed> {
    let first = *bytes.first().ok_or(Malformed::Truncated)?;
    if first >> 4 != 4 {
        return Err(Malformed::NotIpv4);
    }
    if bytes.len() < IPV4_HEADER_MIN {
        return Err(Malformed::Truncated);
    }
    let header = usize::from(first & 0xf) * 4;
    if header < IPV4_HEADER_MIN || header > bytes.len() {
        return Err(Malformed::HeaderLength);
    }
    let total = match usize::from(u16_at(bytes, 2)) {
        0 => bytes.len(), // segmentation offload beyond 64 KiB leaves it 0
        total => total.min(bytes.len()),
    };
    let source = address_at(bytes, 12);
    let destination = address_at(bytes, 16);
    let first_fragment = u16_at(bytes, 6) & 0x1fff == 0;
    let tcp = match bytes.get(header..total) {
        Some(segment) if bytes[9] == PROTOCOL_TCP && first_fragment => {
            parse_tcp(segment, source, destination)
        }
        _ => None,
    };
    Ok(Packet { source, destination, tcp })
}

fn parse_tcp(bytes: &[u8], source: Ipv4Addr, destination: Ipv4Addr) -> Option<Tcp<'_>> {
    if bytes.len() < TCP_HEADER_MIN {
        return None;
    }
    let header = usize::from(bytes[12] >> 4) * 4;
    if header < TCP_HEADER_MIN {
        return None;
    }
    Some(Tcp {
        source: SocketAddrV4::new(source, u16_at(bytes, 0)),
        destination: SocketAddrV4::new(destination, u16_at(bytes, 2)),
        sequence: u32::from(u16_at(bytes, 4)) << 16 | u32::from(u16_at(bytes, 6)),
        flags: Flags(bytes[13]),
        payload: bytes.get(header..)?,
    })
}

/// Callers have checked that `at + 2` is inside.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Callers have checked that `at + 4` is inside.
fn address_at(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From an env to the region.
    Up,
    /// From the region to an env.
    Down,
}

/// What the ledger keeps of a TCP segment while it is inside the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Which way it goes.
    pub direction: Direction,
    /// The env's address and port.
    pub client: SocketAddrV4,
    /// The endpoint's address and port.
    pub server: SocketAddrV4,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Control bits.
    pub flags: Flags,
    /// Length of the payload in bytes.
    pub payload: u32,
    /// The payload begins with a TLS ClientHello.
    pub client_hello: bool,
}

impl Segment {
    /// Notes a segment that goes `direction`.
    pub fn new(direction: Direction, tcp: &Tcp<'_>) -> Segment {
        let (client, server) = match direction {
            Direction::Up => (tcp.source, tcp.destination),
            Direction::Down => (tcp.destination, tcp.source),
        };
        let hello = tcp.payload.first() == Some(&TLS_HANDSHAKE)
            && tcp.payload.get(TLS_RECORD_HEADER) == Some(&TLS_CLIENT_HELLO);
        Segment {
            direction,
            client,
            server,
            sequence: tcp.sequence,
            flags: tcp.flags,
            payload: u32::try_from(tcp.payload.len()).unwrap_or(u32::MAX),
            client_hello: hello,
        }
    }

    /// It carries payload or changes the connection's state: not a bare acknowledgment.
    pub fn matters(&self) -> bool {
        self.payload > 0 || self.flags.has(Flags::SYN | Flags::FIN | Flags::RST)
    }

    /// The 4-tuple.
    pub fn tuple(&self) -> (SocketAddr, SocketAddr) {
        (self.client.into(), self.server.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tcp_packet;
    use proptest::prelude::*;

    #[test]
    fn reads_addresses_ports_flags_and_payload() {
        let bytes =
            tcp_packet("10.0.0.1:4000", "198.18.1.1:443", Flags::SYN | Flags::ACK, 0xdead_beef, b"hello");
        let packet = parse_packet(&bytes).unwrap();
        let tcp = packet.tcp.unwrap();
        assert_eq!(packet.destination, Ipv4Addr::new(198, 18, 1, 1));
        assert_eq!(tcp.source.to_string(), "10.0.0.1:4000");
        assert_eq!((tcp.sequence, tcp.flags, tcp.payload), (0xdead_beef, Flags(0x12), &b"hello"[..]));
    }

    #[test]
    fn refuses_what_it_cannot_carry() {
        let good = tcp_packet("10.0.0.1:1", "198.18.1.1:2", Flags::ACK, 1, b"");
        let check = |bytes: &[u8], expect| assert_eq!(parse_packet(bytes).map(|_| ()), Err(expect));
        check(&[], Malformed::Truncated);
        check(&good[..19], Malformed::Truncated);
        check(&[0x60; 40], Malformed::NotIpv4);
        check(&[&[0x44], &good[1..]].concat(), Malformed::HeaderLength);
        let cut = parse_packet(&good[..30]).unwrap();
        assert_eq!(cut.tcp, None, "a cut TCP header is still a packet to route, not a segment");
    }

    #[test]
    fn knows_a_client_hello() {
        let hello = [22, 3, 1, 0, 50, 1, 0, 0, 46];
        let check = |payload: &[u8], expect| {
            let bytes = tcp_packet("10.0.0.1:1", "198.18.1.1:443", Flags::ACK, 1, payload);
            let tcp = parse_packet(&bytes).unwrap().tcp.unwrap();
            assert_eq!(Segment::new(Direction::Up, &tcp).client_hello, expect);
        };
        check(&hello, true);
        check(&hello[..5], false);
        check(&[22, 3, 3, 0, 50, 2], false);
        check(b"GET / HTTP/1.1", false);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), v4: bool) {
            if let (true, Some(first)) = (v4, bytes.first_mut()) {
                *first = 0x40 | (*first & 0x7);
            }
            if let Ok(Packet { tcp: Some(tcp), .. }) = parse_packet(&bytes) {
                prop_assert!(tcp.payload.len() <= bytes.len() - 40);
                let _ = Segment::new(Direction::Up, &tcp).matters();
            }
        }
    }
}
