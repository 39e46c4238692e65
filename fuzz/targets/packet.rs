//! A function sends what it likes. Input: packets, each behind a length byte; they go through the parser and the ledger, which must
//! neither panic nor keep more connections open than its bound, and must close what it opened.
#![no_main]

use danki_link::{Direction, Ledger, Segment, Sight, parse_packet};
use danki_model::EnvId;
use danki_record::Event;
use libfuzzer_sys::fuzz_target;

const BOUND: usize = 4;

fuzz_target!(|data: &[u8]| {
    let mut ledger = Ledger::new(BOUND);
    let mut events = Vec::new();
    let (mut rest, mut now_ns) = (data, 0);
    while let Some((&length, after)) = rest.split_first() {
        let (packet, next) = after.split_at(usize::from(length).min(after.len()));
        rest = next;
        now_ns += 1_000;
        let Ok(parsed) = parse_packet(packet) else { continue };
        let Some(tcp) = &parsed.tcp else { continue };
        let segment = Segment::new(if length & 1 == 0 { Direction::Up } else { Direction::Down }, tcp);
        let conn = ledger.observe(EnvId(1), now_ns, Sight::Entered, &segment, None, &mut events);
        let after = if length & 2 == 0 { Sight::Left } else { Sight::Dropped };
        ledger.observe(EnvId(1), now_ns + 500, after, &segment, conn, &mut events);
    }
    ledger.end(now_ns + 1_000, &mut events);
    let closed = events.iter().filter(|event| matches!(event, Event::Connection(_))).count() as u64;
    assert_eq!(closed, ledger.opened(), "each connection that was opened is recorded once");
});
