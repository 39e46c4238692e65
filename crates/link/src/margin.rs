//! How long before a release the thread must be awake.
//!
//! Waking takes 5 µs on an idle-polling machine and above 50 µs on a virtual one whose CPU has been asleep for 10 ms. So the margin
//! follows what wake-ups really took: up at once, down slowly.

/// Never less: DESIGN §6, "a last 50 µs of spinning".
const LEAST_NS: u64 = 50_000;
/// Never more: spinning takes the CPU from the functions under test.
const MOST_NS: u64 = 150_000;
/// Beyond the latest wake-up.
const SPARE_NS: u64 = 15_000;
/// A wake-up that was faster than the margin needs lowers it by this part of the difference.
const DECAY: u64 = 32;

#[derive(Debug)]
pub(crate) struct Margin(u64);

impl Default for Margin {
    fn default() -> Self {
        Margin(LEAST_NS)
    }
}

impl Margin {
    pub(crate) fn ns(&self) -> u64 {
        self.0
    }

    /// A wake-up came this much after its time.
    pub(crate) fn woke(&mut self, late_ns: u64) {
        let needed_ns = late_ns.saturating_add(SPARE_NS).clamp(LEAST_NS, MOST_NS);
        let lower_ns = self.0.saturating_sub(needed_ns) / DECAY;
        self.0 = needed_ns.max(self.0 - lower_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_slow_wake_ups_within_bounds_and_forgets_them() {
        let mut margin = Margin::default();
        let mut check = |late_ns, times, low_ns, high_ns| {
            (0..times).for_each(|_| margin.woke(late_ns));
            assert!((low_ns..=high_ns).contains(&margin.ns()), "{late_ns}: {margin:?}");
        };
        check(5_000, 1, LEAST_NS, LEAST_NS);
        check(80_000, 1, 95_000, 95_000);
        check(10_000, 10, 80_000, 90_000);
        check(10_000, 1000, LEAST_NS, LEAST_NS + DECAY);
        check(u64::MAX, 1, MOST_NS, MOST_NS);
    }
}
