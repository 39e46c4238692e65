//! Handshakes counted in the packets themselves: an account that does not lean on the link's ledger.

use danki_link::{Flags, parse_packet};
use danki_record::CaptureCounts;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::Path;

/// Length of a pcap file's header, and of each record's (IETF draft-ietf-opsawg-pcap).
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Where a record's header says how many bytes were captured.
const CAPTURED_AT: usize = 8;
/// More than any packet; a larger figure means that the file is damaged.
const PACKET_MAX: usize = 1 << 20;
/// TLS record type `handshake`, and handshake type `client_hello` behind the record's header (RFC 8446 §4, §5.1).
const TLS_HANDSHAKE: u8 = 22;
const TLS_CLIENT_HELLO: u8 = 1;
const TLS_RECORD_HEADER: usize = 5;

/// Handshakes by the address that began them.
pub type ByClient = BTreeMap<IpAddr, CaptureCounts>;

/// Counts in a capture of raw IP packets. A file that ends in the middle of a packet counts up to there.
pub fn count_handshakes(path: &Path) -> io::Result<ByClient> {
    let mut file = BufReader::new(File::open(path)?);
    let mut header = [0; FILE_HEADER];
    file.read_exact(&mut header)?;
    let mut counter = Counter::default();
    let mut packet = Vec::new();
    while next_packet(&mut file, &mut packet)? {
        counter.packet(&packet);
    }
    Ok(counter.clients)
}

fn next_packet(file: &mut impl Read, packet: &mut Vec<u8>) -> io::Result<bool> {
    let mut header = [0; RECORD_HEADER];
    match file.read_exact(&mut header) {
        Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        other => other?,
    }
    let length = header[CAPTURED_AT..CAPTURED_AT + 4].try_into().map(u32::from_le_bytes).expect("four bytes");
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > PACKET_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a packet of {length} bytes")));
    }
    packet.resize(length, 0);
    match file.read_exact(packet) {
        Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| true),
    }
}

#[derive(Default)]
struct Counter {
    clients: ByClient,
    /// A segment that is sent again is still one handshake.
    seen: HashSet<(SocketAddrV4, SocketAddrV4, u32)>,
}

impl Counter {
    fn packet(&mut self, bytes: &[u8]) {
        let Some(tcp) = parse_packet(bytes).ok().and_then(|packet| packet.tcp) else { return };
        let opens = tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::ACK);
        let hello = tcp.payload.first() == Some(&TLS_HANDSHAKE)
            && tcp.payload.get(TLS_RECORD_HEADER) == Some(&TLS_CLIENT_HELLO);
        if !(opens || hello) || !self.seen.insert((tcp.source, tcp.destination, tcp.sequence)) {
            return;
        }
        let client: Ipv4Addr = *tcp.source.ip();
        let counts = self.clients.entry(client.into()).or_default();
        counts.tcp_handshakes += u64::from(opens);
        counts.tls_handshakes += u64::from(hello);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(port: u16, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(40 + payload.len()).expect("short");
        let mut ip = vec![0x45, 0];
        ip.extend(length.to_be_bytes());
        ip.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 2, 198, 18, 1, 1]);
        ip.extend(port.to_be_bytes());
        ip.extend(443u16.to_be_bytes());
        ip.extend(sequence.to_be_bytes());
        ip.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        ip.extend(payload);
        ip
    }

    fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file = vec![0; FILE_HEADER];
        for packet in packets {
            file.extend([0; CAPTURED_AT]);
            file.extend(u32::try_from(packet.len()).expect("short").to_le_bytes());
            file.extend([0; 4]);
            file.extend(packet);
        }
        file
    }

    fn count(file: &[u8]) -> io::Result<ByClient> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("wire.pcap");
        std::fs::write(&path, file).expect("written");
        count_handshakes(&path)
    }

    #[test]
    fn handshakes_are_counted_once() {
        const HELLO: [u8; 8] = [22, 3, 1, 0, 3, 1, 0, 0];
        let packets = [
            packet(1_000, 7, 0x02, &[]),
            packet(1_000, 7, 0x02, &[]),
            packet(1_000, 8, 0x10, &[]),
            packet(1_000, 8, 0x18, &HELLO),
            packet(1_000, 90, 0x18, &[23, 3, 3, 0, 1, 1]),
            packet(1_001, 7, 0x02, &[]),
            packet(1_001, 9, 0x12, &[]),
            vec![1, 2, 3],
        ];
        let mut file = capture(&packets);
        let counts = CaptureCounts { tcp_handshakes: 2, tls_handshakes: 1 };
        let expect = ByClient::from([("10.0.0.2".parse().expect("an address"), counts)]);
        assert_eq!(count(&file).expect("reads"), expect);
        file.truncate(file.len() - 1);
        assert_eq!(count(&file).expect("a cut file counts up to the cut"), expect);
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(file in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = count(&file);
        }
    }
}
