//! Where a reply ends must not depend on how its bytes arrive.

use danki_db_wire::mysql::{Awaits, FULL, Part, Reply, caps, err_packet, ok_packet, put_packet, status};
use proptest::prelude::*;

const EOF: &[u8] = &[0xFE, 0, 0, 2, 0];

fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, payload) in payloads.iter().enumerate() {
        put_packet(&mut out, at as u8 + 1, payload);
    }
    out
}

/// Feeds a reply in pieces, as a proxy does: what was not used comes again with more behind it. Returns how many bytes were used.
fn feed(bytes: &[u8], awaits: Awaits, capabilities: u32, pieces: &[usize]) -> (usize, bool) {
    let mut reply = Reply::new(awaits, capabilities);
    let (mut used, mut there) = (0, 0);
    let mut sizes = pieces.iter().copied().chain(std::iter::repeat(bytes.len()));
    while there < bytes.len() && !reply.ended() {
        there = (there + sizes.next().unwrap_or(1).max(1)).min(bytes.len());
        loop {
            let part = reply.next(&bytes[used..there]).expect("well formed");
            if matches!(part, Part::More | Part::End) {
                break;
            }
            used += part.length();
        }
    }
    (used, reply.ended())
}

fn check(bytes: &[u8], awaits: Awaits, capabilities: u32) {
    let mut longer = bytes.to_vec();
    longer.extend_from_slice(&[1, 0, 0, 0, 0x0E]);
    for piece in 1..=bytes.len().min(40) {
        let pieces = vec![piece; bytes.len()];
        assert_eq!(
            feed(bytes, awaits, capabilities, &pieces),
            (bytes.len(), true),
            "in pieces of {piece}: {bytes:?}"
        );
    }
    assert_eq!(
        feed(&longer, awaits, capabilities, &[]),
        (bytes.len(), true),
        "what follows is left alone: {bytes:?}"
    );
}

#[test]
fn replies_end_where_they_end_however_they_arrive() {
    let ok = ok_packet(status::AUTOCOMMIT);
    let more = ok_packet(status::MORE_RESULTS);
    let error = err_packet(1064, "42000", "no");
    let rows_ok: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];
    let (column, row): (&[u8], &[u8]) = (b"\x03def column", b"\x01a\xFB");
    let new = caps::DEPRECATE_EOF;
    check(&packets(&[&ok]), Awaits::Results, 0);
    check(&packets(&[&error]), Awaits::Results, 0);
    check(&packets(&[&[2], column, column, EOF, row, row, EOF]), Awaits::Results, 0);
    check(&packets(&[&[2], column, column, row, row, rows_ok]), Awaits::Results, new);
    check(&packets(&[&[1], column, EOF, EOF]), Awaits::Results, 0);
    check(&packets(&[&[1], column, EOF, row, &error]), Awaits::Results, 0);
    check(&packets(&[&more, &[1], column, EOF, row, EOF]), Awaits::Results, 0);
    check(&packets(&[&[1], column, EOF, row, &[0xFE, 0, 0, 8, 0], &ok]), Awaits::Results, 0);
    // A cursor: no rows yet.
    check(&packets(&[&[1], column, &[0xFE, 0, 0, 0x42, 0]]), Awaits::Results, 0);
    check(&packets(&[row, row, &[0xFE, 0, 0, 0xC2, 0]]), Awaits::Rows, 0);
    let prepared = |columns: u8, parameters: u8| [0, 9, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0];
    check(&packets(&[&prepared(0, 0)]), Awaits::Prepared, 0);
    check(&packets(&[&prepared(1, 2), column, column, EOF, column, EOF]), Awaits::Prepared, 0);
    check(&packets(&[&prepared(1, 2), column, column, column]), Awaits::Prepared, new);
    check(&packets(&[&prepared(2, 0), column, column, EOF]), Awaits::Prepared, 0);
    check(&packets(&[EOF]), Awaits::Simple, 0);
    check(&packets(&[b"Uptime: 1"]), Awaits::Text, 0);
    check(&packets(&[b"\xFBfile", &ok]), Awaits::Results, 0);
}

#[test]
fn a_row_of_several_packets_is_one_row() {
    let mut bytes = packets(&[&[1], b"\x03def", EOF]);
    bytes.extend_from_slice(&[0xFF, 0xFF, 0xFF, 4, 0xFE]);
    bytes.resize(bytes.len() + FULL - 1, 7);
    // Its continuation looks like the end of rows, and is not.
    bytes.extend_from_slice(&packets(&[EOF]));
    let end = packets(&[EOF]);
    bytes.extend_from_slice(&end);
    assert_eq!(feed(&bytes, Awaits::Results, 0, &[65_536; 300]), (bytes.len(), true));
}

proptest! {
    #[test]
    fn arbitrary_replies_never_panic_and_never_use_more_than_there_is(bytes: Vec<u8>, which in 0..5, capabilities: u32) {
        let awaits = [Awaits::Results, Awaits::Rows, Awaits::Prepared, Awaits::Simple, Awaits::Text][which as usize];
        let mut reply = Reply::new(awaits, capabilities);
        let mut used = 0;
        while let Ok(part) = reply.next(&bytes[used..]) {
            used += part.length();
            prop_assert!(used <= bytes.len());
            if part.length() == 0 {
                break;
            }
        }
    }
}
