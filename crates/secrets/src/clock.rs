//! Two clocks, because neither alone can be trusted with a secret's age: the monotonic one may stand still while Lambda has the whole
//! machine paused, the wall clock may be set back. What is older than its time on either is old.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Since some fixed point.
    pub monotonic: Duration,
    /// Since 1970-01-01 UTC.
    pub epoch: Duration,
}

impl Now {
    /// The time that passed since `earlier`: the longer of what the two clocks say. A clock set back counts as no time.
    pub fn since(self, earlier: Now) -> Duration {
        let monotonic = self.monotonic.saturating_sub(earlier.monotonic);
        monotonic.max(self.epoch.saturating_sub(earlier.epoch))
    }
}

/// This moment.
pub fn now() -> Now {
    Now {
        monotonic: duration(clock_gettime(ClockId::Monotonic)),
        epoch: duration(clock_gettime(ClockId::Realtime)),
    }
}

fn duration(at: Timespec) -> Duration {
    // Both are far from these bounds; a clock before its epoch reads as its epoch.
    let seconds = u64::try_from(at.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(at.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(monotonic_s: u64, epoch_s: u64) -> Now {
        Now { monotonic: Duration::from_secs(monotonic_s), epoch: Duration::from_secs(epoch_s) }
    }

    #[test]
    fn the_clock_that_went_further_counts() {
        let check =
            |from: Now, to: Now, seconds: u64| assert_eq!(to.since(from), Duration::from_secs(seconds));
        check(at(10, 1000), at(15, 1005), 5);
        check(at(10, 1000), at(10, 1600), 600); // paused
        check(at(10, 1000), at(15, 900), 5); // set back
        check(at(10, 1000), at(9, 900), 0);
    }

    #[test]
    fn now_is_after_then() {
        let then = now();
        assert!(now().monotonic >= then.monotonic && then.epoch.as_secs() > 1_700_000_000);
    }
}
