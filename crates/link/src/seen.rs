//! Which bytes of one direction of a TCP connection have been seen.

use crate::packet::{Flags, Segment};

/// Gaps remembered per direction; the bytes of further ones count as seen.
const MAX_GAPS: usize = 64;

/// Sequence numbers below `next` were seen, except for the gaps.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    next: Option<u32>,
    gaps: Vec<(u32, u32)>,
}

impl Seen {
    /// Takes a segment in; returns how many of its payload bytes are new.
    pub(crate) fn take(&mut self, segment: &Segment) -> u32 {
        let syn = segment.flags.has(Flags::SYN);
        if segment.payload == 0 && !syn {
            return 0;
        }
        let begin = segment.sequence.wrapping_add(u32::from(syn));
        let end = begin.wrapping_add(segment.payload);
        let Some(next) = self.next else {
            self.next = Some(end);
            return segment.payload;
        };
        let filled = self.fill(begin, segment.payload);
        if distance(next, begin) > 0 && self.gaps.len() < MAX_GAPS {
            self.gaps.push((next, begin));
        }
        let ahead = distance(next, end);
        if ahead <= 0 {
            return filled;
        }
        self.next = Some(end);
        filled + ahead.unsigned_abs().min(segment.payload)
    }

    /// Takes `length` bytes from `begin` out of the gaps; returns how many were in them.
    fn fill(&mut self, begin: u32, length: u32) -> u32 {
        let (end, mut filled) = (begin.wrapping_add(length), 0);
        for (from, to) in std::mem::take(&mut self.gaps) {
            let low = distance(begin, from).max(0);
            let high = distance(begin, to).min(i32::try_from(length).unwrap_or(i32::MAX));
            if high <= low {
                self.gaps.push((from, to));
                continue;
            }
            filled += low.abs_diff(high);
            if distance(from, begin) > 0 {
                self.gaps.push((from, begin));
            }
            if distance(end, to) > 0 {
                self.gaps.push((end, to));
            }
        }
        filled
    }
}

/// From `a` to `b` in sequence space (RFC 9293 §3.4: modulo 2³²).
fn distance(a: u32, b: u32) -> i32 {
    b.wrapping_sub(a) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Direction;
    use proptest::prelude::*;

    fn segment(sequence: u32, payload: u32, flags: Flags) -> Segment {
        let any = "10.0.0.1:1".parse().unwrap();
        Segment {
            direction: Direction::Up,
            client: any,
            server: any,
            sequence,
            flags,
            payload,
            client_hello: false,
        }
    }

    #[test]
    fn counts_each_byte_once() {
        let mut seen = Seen::default();
        let mut check = |at: i64, length, expect| {
            let sequence = (i64::from(u32::MAX) + at) as u32; // across the wrap
            assert_eq!(seen.take(&segment(sequence, length, Flags::ACK)), expect, "{length} bytes at {at}");
        };
        check(-5, 10, 10);
        check(-5, 10, 0); // again
        check(5, 0, 0); // bare ACK
        check(4, 1, 0); // keep-alive probe with an old byte
        check(15, 10, 10); // leaves a gap
        check(15, 10, 0);
        check(3, 4, 2); // into the gap, overlapping
        check(0, 25, 8); // all of it
        check(25, 1, 1);
    }

    #[test]
    fn a_syn_takes_one_number() {
        let mut seen = Seen::default();
        assert_eq!(seen.take(&segment(100, 0, Flags::SYN)), 0);
        assert_eq!(seen.take(&segment(101, 5, Flags::ACK)), 5);
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_bytes(base: u32, parts in prop::collection::vec((0u32..40, 1u32..20), 1..40)) {
            let (mut seen, mut bytes) = (Seen::default(), std::collections::HashSet::new());
            seen.take(&segment(base.wrapping_sub(1), 0, Flags::SYN));
            for (at, length) in parts {
                let new = (at..at + length).filter(|byte| bytes.insert(*byte)).count();
                let took = seen.take(&segment(base.wrapping_add(at), length, Flags::ACK));
                prop_assert_eq!(took as usize, new);
            }
        }
    }
}
