//! What a CPU quota does to one thread: CPU bandwidth control of Linux's fair scheduler (kernel/sched/fair.c), in arithmetic.
//!
//! The quota fills a pool once per period. A running thread's time is booked when its account is *settled*: at ticks, and when the
//! thread asks for its CPU time. If what it holds is used up then, it takes up to [`SLICE_NS`] from the pool, and if that does not
//! suffice it stands still until refills have paid its debt. So a thread overruns a small quota by whole ticks, and *where the refill
//! lies between two ticks* decides how long it runs between two pauses. For this, see
//! `docs/decisions/2026-11-21-quota-and-tick-are-in-phase.md`.

use crate::{MemoryMb, PERIOD_US};

/// What an account takes from the pool at a time (`sched_cfs_bandwidth_slice_us`, 5 ms).
const SLICE_NS: i64 = 5_000_000;

/// Length of the scheduler's tick on Lambda's hosts, HZ=250: in T1 no run of the CPU is cut before 4 ms.
pub const TICK_NS: u64 = 4_000_000;

/// A quota, its period, and the tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// CPU time per period, ns.
    pub quota_ns: u64,
    /// Length of a period, ns.
    pub period_ns: u64,
    /// Length of a tick, ns.
    pub tick_ns: u64,
    /// From a refill to the first tick after it, ns: above 0, at most a tick.
    pub first_tick_ns: u64,
}

/// When an account is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// At ticks.
    AtTicks,
    /// At ticks and after each piece of work: the thread asks for its CPU time there.
    AfterEachPiece,
}

impl Bandwidth {
    /// The quota of a memory size, with Lambda's period and tick.
    pub fn of(memory: MemoryMb, first_tick_ns: u64) -> Bandwidth {
        // Not `quota_us`, which is rounded: a µs is 1 ‰ of the smallest quota.
        let quota_ns = (memory.vcpus() * PERIOD_US as f64 * 1e3).round() as u64;
        Bandwidth { quota_ns, period_ns: PERIOD_US * 1_000, tick_ns: TICK_NS, first_tick_ns }
    }

    /// How long pieces of work take by the wall clock, one after the other, given the CPU time of each. The first one begins `start_ns`
    /// after a refill, with nothing owed.
    pub fn walls_ns(self, pieces_ns: &[u64], start_ns: u64, settled: Settled) -> Vec<u64> {
        let mut thread = Thread::start(self, start_ns);
        let mut ended_ns = start_ns;
        let mut walls = Vec::with_capacity(pieces_ns.len());
        for piece in pieces_ns {
            thread.work(*piece);
            walls.push(thread.now_ns - ended_ns);
            ended_ns = thread.now_ns;
            if settled == Settled::AfterEachPiece {
                thread.settle();
            }
        }
        walls
    }
}

/// A thread and its account.
#[derive(Clone, Copy, Debug)]
struct Thread {
    of: Bandwidth,
    /// Counted from a refill.
    now_ns: u64,
    /// Time up to here is booked.
    booked_ns: u64,
    /// Periods whose refill has happened.
    periods: u64,
    pool_ns: i64,
    held_ns: i64,
}

impl Thread {
    fn start(of: Bandwidth, now_ns: u64) -> Thread {
        let periods = now_ns / of.period_ns;
        Thread { of, now_ns, booked_ns: now_ns, periods, pool_ns: of.quota_ns.cast_signed(), held_ns: 0 }
    }

    /// Runs until so much CPU time is used, with pauses where the quota makes them.
    fn work(&mut self, mut left_ns: u64) {
        while left_ns > 0 {
            let refill = (self.periods + 1) * self.of.period_ns;
            let tick = self.next_tick_ns();
            let until = (self.now_ns + left_ns).min(refill).min(tick);
            left_ns -= until - self.now_ns;
            self.now_ns = until;
            if until == refill {
                self.refill();
            }
            if until == tick {
                self.settle();
            }
        }
    }

    fn next_tick_ns(&self) -> u64 {
        let Bandwidth { tick_ns, first_tick_ns, .. } = self.of;
        let phase = first_tick_ns % tick_ns;
        // Ticks are at `phase` plus multiples; the one wanted is later than now.
        let past = (self.now_ns + tick_ns - phase) % tick_ns;
        self.now_ns + tick_ns - past
    }

    fn refill(&mut self) {
        self.periods += 1;
        self.pool_ns = self.of.quota_ns.cast_signed();
    }

    /// Books the time since, and pauses if that is more than the quota gives.
    fn settle(&mut self) {
        self.held_ns -= (self.now_ns - self.booked_ns).cast_signed();
        if self.held_ns <= 0 {
            self.take(SLICE_NS - self.held_ns);
        }
        while self.held_ns <= 0 {
            self.refill();
            self.now_ns = self.periods * self.of.period_ns;
            // A refill pays the debt and one ns, not a slice.
            self.take(1 - self.held_ns);
        }
        self.booked_ns = self.now_ns;
    }

    fn take(&mut self, wanted_ns: i64) {
        let taken = wanted_ns.min(self.pool_ns);
        self.pool_ns -= taken;
        self.held_ns += taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn mb(size: u32) -> MemoryMb {
        MemoryMb::try_from(size).expect("in range")
    }

    fn check(first_tick_ns: u64, pieces_ns: &[u64], settled: Settled, expect_ms: &[f64]) {
        let walls = Bandwidth::of(mb(128), first_tick_ns).walls_ns(pieces_ns, 0, settled);
        let walls: Vec<f64> = walls.iter().map(|ns| (*ns as f64 / 1e4).round() / 1e2).collect();
        assert_eq!(walls, expect_ms);
    }

    /// At 128 MB a period pays 1.447 ms.
    #[test]
    fn a_quota_is_overrun_until_the_account_is_settled() {
        use Settled::*;
        // The first tick finds 4 ms used: 2.55 are owed, which the second refill pays. Then 4 ms again, of 5.11: 3 refills.
        check(4 * MS, &[3 * MS, 3 * MS, 3 * MS], AtTicks, &[3.0, 39.0, 59.0]);
        // Settled after the piece, 1.55 are owed: the second refill pays, and so on.
        check(4 * MS, &[3 * MS, 3 * MS, 3 * MS], AfterEachPiece, &[3.0, 40.0, 40.0]);
        // A tick right after the refill finds the quota not used up, so the next cut comes a tick later.
        check(MS, &[4 * MS, 3 * MS / 2], AtTicks, &[4.0, 56.5]);
    }

    #[test]
    fn a_whole_vcpu_is_not_cut() {
        let walls = Bandwidth::of(mb(1_769), 4 * MS).walls_ns(&[7 * MS; 9], 0, Settled::AfterEachPiece);
        assert_eq!(walls, [7 * MS; 9]);
    }

    proptest! {
        /// Whatever the tick does: in the long run a thread gets its quota, and never more than that and one overrun. A little less near
        /// a whole vCPU, where a refill comes before the last one is used up, and replaces the rest.
        #[test]
        fn in_the_long_run_the_share_is_the_quotas(
            size in 128_u32..1_769,
            first_tick_ns in 1_u64..=4 * MS,
            piece_ns in MS / 10..9 * MS,
            start_ns in 0..20 * MS,
            asks in any::<bool>(),
        ) {
            let settled = if asks { Settled::AfterEachPiece } else { Settled::AtTicks };
            let bandwidth = Bandwidth::of(mb(size), first_tick_ns);
            let pieces = vec![piece_ns; (2_000 * MS / piece_ns) as usize];
            let walls = bandwidth.walls_ns(&pieces, start_ns, settled);
            prop_assert!(walls.iter().all(|wall| *wall >= piece_ns));
            let used = pieces.iter().sum::<u64>() as f64;
            let paid = walls.iter().sum::<u64>() as f64 * mb(size).vcpus();
            let quota = bandwidth.quota_ns as f64;
            prop_assert!(used <= paid + 2.0 * quota + 4e6, "{used} of {paid}");
            prop_assert!(used >= paid * 0.9 - quota, "{used} of {paid}");
        }
    }
}
