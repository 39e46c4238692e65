//! The scheduler's tick: how often, and where on the monotonic clock.

use rustix::time::{ClockId, clock_getres};
use std::fs;

/// Names of the tick's timer in `/proc/timer_list`: of Linux 6.8 and later, and before.
const HANDLERS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];

/// Ticks of two CPUs that are less apart than this are one (`skew_tick` would move them by hundreds of µs).
const SAME_NS: u64 = 10_000;

/// Where the ticks of all CPUs are: at `offset_ns` plus multiples of `length_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    pub length_ns: u64,
    pub offset_ns: u64,
}

impl Tick {
    /// Asks the kernel. The error says why it cannot be known.
    pub(crate) fn of_this_machine() -> Result<Tick, String> {
        let resolution = clock_getres(ClockId::MonotonicCoarse);
        let length_ns = u64::try_from(resolution.tv_nsec).unwrap_or(0);
        let path = "/proc/timer_list";
        let timers = fs::read_to_string(path).map_err(|error| format!("read {path}: {error}"))?;
        Tick::parse(&timers, length_ns)
    }

    fn parse(timers: &str, length_ns: u64) -> Result<Tick, String> {
        if length_ns == 0 {
            return Err("the kernel does not tell the length of its tick".to_owned());
        }
        let expiries = HANDLERS.iter().flat_map(|name| expiries(timers, name));
        let mut offsets = expiries.map(|at| at % length_ns);
        let offset_ns = offsets.next().ok_or("the kernel lists no timer of its tick")?;
        let tick = Tick { length_ns, offset_ns };
        match offsets.all(|other| tick.past_ns(other + length_ns).min(tick.until_ns(other)) < SAME_NS) {
            true => Ok(tick),
            false => Err("the ticks of the CPUs are apart (skew_tick)".to_owned()),
        }
    }

    /// From then to the next tick, 0 on a tick.
    pub(crate) fn until_ns(self, at_ns: u64) -> u64 {
        let past = self.past_ns(at_ns);
        if past == 0 { 0 } else { self.length_ns - past }
    }

    /// From the last tick to then, 0 on a tick.
    pub(crate) fn past_ns(self, at_ns: u64) -> u64 {
        (at_ns % self.length_ns + self.length_ns - self.offset_ns) % self.length_ns
    }
}

/// When the timers with this handler expire next, ns of the monotonic clock.
pub(crate) fn expiries(timers: &str, handler: &str) -> Vec<u64> {
    let mut lines = timers.lines();
    let mut found = vec![];
    while let Some(line) = lines.next() {
        if line.split([',', ' ']).any(|word| word == handler) {
            let expires = lines.next().and_then(|line| line.trim().strip_prefix("# expires at "));
            found.extend(expires.and_then(|text| text.split('-').next()?.parse::<u64>().ok()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = " #0: <00000000decb087e>, tick_nohz_handler, S:01\n \
        # expires at 932940000000-932940000000 nsecs [in 3747216 to 3747216 nsecs]\n \
        #1: <00000000bf8c1be2>, hrtimer_wakeup, S:01\n \
        # expires at 933084218810-933084268810 nsecs [in 147966026 to 148016026 nsecs]\n\
        cpu: 1\n #0: <00000000decb087f>, tick_nohz_handler, S:01\n # expires at 932943999000-932943999000 nsecs\n";

    #[test]
    fn ticks_are_read_from_the_list_of_timers() {
        let tick = Tick::parse(LIST, 4_000_000).expect("there");
        assert_eq!(tick, Tick { length_ns: 4_000_000, offset_ns: 0 });
        assert_eq!(expiries(LIST, "hrtimer_wakeup"), [933_084_218_810]);
        let skewed = LIST.replace("932943999000", "932942000000");
        assert!(Tick::parse(&skewed, 4_000_000).is_err());
        assert!(Tick::parse("", 4_000_000).is_err());
        assert!(Tick::parse(LIST, 0).is_err());
    }

    #[test]
    fn distances_to_ticks() {
        let tick = Tick { length_ns: 4_000, offset_ns: 1_000 };
        for (at, past, until) in
            [(1_000, 0, 0), (5_000, 0, 0), (5_001, 1, 3_999), (4_999, 3_999, 1), (0, 3_000, 1_000)]
        {
            assert_eq!((tick.past_ns(at), tick.until_ns(at)), (past, until), "at {at}");
        }
    }
}
