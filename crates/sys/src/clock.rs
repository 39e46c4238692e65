//! The clocks of a run. Everything is stamped with `CLOCK_MONOTONIC` in nanoseconds: one clock for all processes of the machine, so
//! that facts of danki, of the link and of an env can be put in order. The wall clock is only for people and for deadlines that
//! AWS's protocol states as an epoch.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds since 1970-01-01 UTC.
pub fn epoch_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// Nanoseconds of CPU that this process has used, all threads together.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// What to add to [`monotonic_ns`] to get [`epoch_ns`]. Taken between two monotonic readings, as exact as those are close.
pub fn epoch_offset_ns() -> u64 {
    let before = monotonic_ns();
    let epoch = epoch_ns();
    let after = monotonic_ns();
    epoch.saturating_sub(before + (after - before) / 2)
}

/// Resolution of the monotonic clock in nanoseconds.
pub fn resolution_ns() -> u64 {
    nanoseconds(rustix::time::clock_getres(ClockId::Monotonic))
}

fn nanoseconds(at: Timespec) -> u64 {
    let seconds = u64::try_from(at.tv_sec).expect("both clocks are after their epochs");
    let rest = u64::try_from(at.tv_nsec).expect("nanoseconds of a timespec are not negative");
    seconds * 1_000_000_000 + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward_and_agree() {
        let first = monotonic_ns();
        let second = monotonic_ns();
        assert!(second >= first);
        let offset = epoch_offset_ns();
        let difference = epoch_ns().abs_diff(monotonic_ns() + offset);
        assert!(difference < 1_000_000_000, "{difference} ns apart");
        assert!(epoch_ns() > 1_700_000_000_000_000_000);
        assert!(process_cpu_ns() > 0);
    }
}
