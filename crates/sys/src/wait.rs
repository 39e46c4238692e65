//! Waiting with a deadline, for states that the kernel has no event for.

use crate::clock::monotonic_ns;
use rustix::thread::{NanosleepRelativeResult, nanosleep};
use std::time::Duration;

/// Polls this often without giving the CPU away: freezing an idle process takes 0.1 ms.
const SPINS: u32 = 50;

/// After this many more polls, each of which yields, it sleeps between polls.
const YIELDS: u32 = 200;

/// The first sleep between polls; each is twice as long as the one before, up to [`LONGEST_NAP`].
const FIRST_NAP: Duration = Duration::from_micros(50);
const LONGEST_NAP: Duration = Duration::from_millis(5);

/// Polls `done` until it is true. Returns whether it was before the deadline.
pub(crate) fn until(deadline: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = monotonic_ns().saturating_add(u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX));
    let mut polls = 0;
    let mut pause = FIRST_NAP;
    loop {
        if done() {
            return true;
        }
        if monotonic_ns() >= end {
            return false;
        }
        polls += 1;
        match polls {
            0..SPINS => std::hint::spin_loop(),
            SPINS..YIELDS => rustix::thread::sched_yield(),
            _ => {
                nap(pause);
                pause = (pause * 2).min(LONGEST_NAP);
            }
        }
    }
}

/// Sleeps; signals make it shorter.
pub(crate) fn nap(pause: Duration) {
    let seconds = i64::try_from(pause.as_secs()).unwrap_or(i64::MAX);
    let request = rustix::time::Timespec { tv_sec: seconds, tv_nsec: pause.subsec_nanos().into() };
    match nanosleep(&request) {
        NanosleepRelativeResult::Ok
        | NanosleepRelativeResult::Interrupted(_)
        | NanosleepRelativeResult::Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_when_done_or_late() {
        let mut polls = 0;
        assert!(until(Duration::from_secs(5), || {
            polls += 1;
            polls == 300
        }));
        assert!(!until(Duration::from_millis(2), || false));
    }
}
