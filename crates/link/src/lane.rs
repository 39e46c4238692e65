//! One direction of one path of one env: a FIFO whose release times never decrease.

use crate::config::{BANDWIDTH_QUEUE_NS, Path};
use std::collections::VecDeque;

/// A path in the units of the queue.
#[derive(Clone, Debug)]
pub(crate) struct Delay {
    half_ns: u64,
    jitter_ns: u64,
    loss: f64,
    ns_per_byte: f64,
}

impl Delay {
    pub(crate) fn new(path: &Path) -> Delay {
        Delay {
            half_ns: path.rtt_us * 1000 / 2,
            jitter_ns: path.jitter_us * 1000 / 2,
            loss: path.loss,
            ns_per_byte: path.bandwidth_mbps.map_or(0.0, |mbps| 8000.0 / mbps),
        }
    }
}

/// What becomes of a packet that enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Release(u64),
    Lost,
    Full,
}

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    pub due_ns: u64,
    pub order: u64,
    pub bytes: usize,
    pub tries: u8,
    pub parcel: P,
}

#[derive(Debug)]
pub(crate) struct Lane<P> {
    pub queue: VecDeque<Waiting<P>>,
    /// Time and order under which its head stands in the router's heap.
    pub scheduled: Option<(u64, u64)>,
    last_due_ns: u64,
    wire_free_ns: u64,
    random: SplitMix,
}

impl<P> Lane<P> {
    pub(crate) fn new(seed: u64) -> Lane<P> {
        Lane {
            queue: VecDeque::new(),
            scheduled: None,
            last_due_ns: 0,
            wire_free_ns: 0,
            random: SplitMix(seed),
        }
    }

    /// Decides when a packet of so many bytes that enters now is due.
    pub(crate) fn fate(&mut self, now_ns: u64, bytes: usize, delay: &Delay) -> Fate {
        if delay.loss > 0.0 && self.random.unit() < delay.loss {
            return Fate::Lost;
        }
        let mut sent_ns = now_ns;
        if delay.ns_per_byte > 0.0 {
            let start_ns = self.wire_free_ns.max(now_ns);
            if start_ns - now_ns > BANDWIDTH_QUEUE_NS {
                return Fate::Full;
            }
            sent_ns = start_ns + (bytes as f64 * delay.ns_per_byte) as u64;
            self.wire_free_ns = sent_ns;
        }
        let jitter_ns = if delay.jitter_ns > 0 { self.random.next() % (delay.jitter_ns + 1) } else { 0 };
        self.last_due_ns = self.last_due_ns.max(sent_ns + delay.half_ns + jitter_ns);
        Fate::Release(self.last_due_ns)
    }
}

/// splitmix64 (Steele, Lea, Flood 2014): stable across library versions, so that a seed keeps its meaning.
#[derive(Clone, Copy, Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// splitmix64's finalizer: spreads neighbouring seeds.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(path: &Path, packets: usize, bytes: usize) -> Vec<Fate> {
        let (delay, mut lane) = (Delay::new(path), Lane::<()>::new(7));
        (0..packets).map(|_| lane.fate(1_000_000, bytes, &delay)).collect()
    }

    #[test]
    fn half_the_round_trip() {
        let path = Path { rtt_us: 5000, ..Path::default() };
        assert_eq!(fates(&path, 2, 1500), [Fate::Release(3_500_000); 2]);
    }

    #[test]
    fn jitter_adds_up_to_half_of_itself_in_order() {
        let path = Path { rtt_us: 2000, jitter_us: 1000, ..Path::default() };
        let due = fates(&path, 100, 1500);
        let times: Vec<u64> =
            due.iter().map(|fate| if let Fate::Release(at) = fate { *at } else { 0 }).collect();
        assert!(times.is_sorted());
        assert!(times.iter().all(|at| (2_000_000..=2_500_000).contains(at)));
        assert!(times[99] > times[0]);
    }

    #[test]
    fn loss_is_as_likely_as_asked() {
        let lost = |loss| {
            let path = Path { loss, ..Path::default() };
            fates(&path, 10_000, 1500).iter().filter(|fate| **fate == Fate::Lost).count()
        };
        assert_eq!((lost(0.0), lost(1.0)), (0, 10_000));
        assert!((900..1100).contains(&lost(0.1)), "{}", lost(0.1));
    }

    #[test]
    fn bandwidth_spaces_packets_and_drops_the_tail() {
        // 1250 bytes at 10 Mbit/s take 1 ms.
        let path = Path { rtt_us: 0, bandwidth_mbps: Some(10.0), ..Path::default() };
        let due = fates(&path, 200, 1250);
        assert_eq!(due[..3], [2, 3, 4].map(|ms| Fate::Release(ms * 1_000_000)));
        assert_eq!(due.iter().filter(|fate| **fate == Fate::Full).count(), 99);
    }
}
