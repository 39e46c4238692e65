//! Moves the refill of a CPU quota onto the scheduler's tick.
//!
//! Since Linux 6.4 the kernel draws, for each cgroup, when within a period its quota is refilled. No file sets that, but the period
//! itself can be used to: each time the timer fires it is set ahead by the period of that moment. So the timer is watched firing once
//! in a short period, then given one period that is longer by what is missing to a tick, then the right one. No process need be in the
//! cgroup: setting a quota starts the timer, and `nr_periods` counts.
//!
//! The kernel's side: `tg_set_cfs_bandwidth`, `start_cfs_bandwidth` and `sched_cfs_period_timer` in kernel/sched. Takes 1 to 2 ms, half
//! of it on the CPU.

use crate::Error;
use crate::tick::Tick;
use std::sync::Mutex;

/// The shortest period that the kernel takes, in µs.
const SHORT_US: u64 = 1_000;

/// A firing is known this well, or watched anew: the refill then lies between a tick and this much after it.
const SURE_NS: u64 = 40_000;

/// A machine that interrupts us so often in a row is too busy.
const ATTEMPTS: u32 = 8;

/// Longest wait for the timer: after a failed attempt it may have to live through a whole period first.
const PATIENCE_NS: u64 = 50_000_000;

/// What aligning needs of the machine, once for a run.
#[derive(Debug)]
pub(crate) struct Clockwork {
    /// Or why it is not known.
    pub tick: Result<Tick, String>,
    /// Held while one env's timer is watched: that takes a CPU for a ms.
    pub alone: Mutex<()>,
}

impl Clockwork {
    pub(crate) fn of_this_machine() -> Clockwork {
        Clockwork { tick: Tick::of_this_machine(), alone: Mutex::new(()) }
    }
}

/// What is done to a cgroup without processes, as functions, so that a test can be the kernel.
pub(super) struct Hands<'a> {
    /// The monotonic clock, ns.
    pub now: &'a dyn Fn() -> u64,
    /// `nr_periods`.
    pub firings: &'a dyn Fn() -> u64,
    /// Sets a period in µs, and a quota.
    pub set_period: &'a dyn Fn(u64) -> Result<(), Error>,
    /// Sleeps for about as many ns.
    pub nap: &'a dyn Fn(u64),
}

/// Moves the timer to a tick. The period that is set afterwards, `period_us`, must be a multiple of the tick's. `false`: not done, because
/// this machine is too busy to see the timer fire.
///
/// # Errors
/// A setting is refused.
pub(super) fn align(hands: &Hands<'_>, tick: Tick, period_us: u64) -> Result<bool, Error> {
    for _ in 0..ATTEMPTS {
        let mut seen_after = (hands.now)();
        let before = (hands.firings)();
        (hands.set_period)(SHORT_US)?;
        let Some(seen_at) = fired(hands, before, &mut seen_after) else { continue };
        if seen_at - seen_after > SURE_NS {
            continue;
        }
        // `seen_after` is just before it fired: a tick is overshot by the doubt, not missed by it.
        let next_ns = seen_after + SHORT_US * 1_000;
        (hands.set_period)(period_us + tick.until_ns(next_ns).div_ceil(1_000))?;
        if (hands.now)() >= next_ns {
            continue;
        }
        let before = (hands.firings)();
        (hands.nap)(next_ns.saturating_sub((hands.now)()));
        let end = next_ns + PATIENCE_NS;
        while (hands.firings)() == before && (hands.now)() < end {
            (hands.nap)(SURE_NS);
        }
        return Ok((hands.firings)() > before);
    }
    Ok(false)
}

/// Watches the timer until it fires: it did so after `seen_after` and before the time returned.
fn fired(hands: &Hands<'_>, before: u64, seen_after: &mut u64) -> Option<u64> {
    let end = *seen_after + PATIENCE_NS;
    loop {
        let asked = (hands.now)();
        if (hands.firings)() > before {
            return Some((hands.now)());
        }
        if asked >= end {
            return None;
        }
        *seen_after = asked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// A cgroup's timer as the kernel runs it. Each look at the clock takes a µs.
    struct Kernel {
        now: u64,
        expires: u64,
        period: u64,
        active: bool,
        idle: bool,
        firings: u64,
    }

    impl Kernel {
        fn advance(&mut self, ns: u64) {
            self.now += ns;
            while self.active && self.expires <= self.now {
                self.expires += self.period;
                self.firings += 1;
                (self.active, self.idle) = (!self.idle, true);
            }
        }

        fn set(&mut self, period: u64) {
            self.advance(10_000);
            self.period = period;
            if !self.active {
                while self.expires <= self.now {
                    self.expires += self.period;
                }
                self.active = true;
            }
        }
    }

    fn check(offset: u64, tick: Tick, interrupted_every: u64, expect: bool) {
        let uptime = 7_777_777_777;
        let kernel = RefCell::new(Kernel {
            now: uptime,
            expires: uptime / 100_000_000 * 100_000_000 + offset,
            period: 100_000_000,
            active: false,
            idle: false,
            firings: 0,
        });
        let looks = RefCell::new(0_u64);
        let now = || {
            let mut looks = looks.borrow_mut();
            *looks += 1;
            let pause = if interrupted_every > 0 && looks.is_multiple_of(interrupted_every) {
                3_000_000
            } else {
                1_000
            };
            kernel.borrow_mut().advance(pause);
            kernel.borrow().now
        };
        let hands = Hands {
            now: &now,
            firings: &|| kernel.borrow().firings,
            set_period: &|us| {
                kernel.borrow_mut().set(us * 1_000);
                Ok(())
            },
            nap: &|ns| kernel.borrow_mut().advance(ns),
        };
        assert_eq!(align(&hands, tick, 20_000).expect("nothing is refused"), expect, "offset {offset}");
        let mut kernel = kernel.borrow_mut();
        kernel.set(20_000_000);
        kernel.advance(60_000_000);
        if expect {
            assert!(
                tick.past_ns(kernel.expires) <= SURE_NS,
                "{} ns after a tick",
                tick.past_ns(kernel.expires)
            );
        }
    }

    #[test]
    fn whatever_was_drawn_the_refill_comes_with_a_tick() {
        for offset in (0..100_000_000).step_by(1_234_567) {
            for (length_ns, offset_ns) in
                [(4_000_000, 0), (4_000_000, 1_234_567), (1_000_000, 999), (10_000_000, 5)]
            {
                check(offset, Tick { length_ns, offset_ns }, 0, true);
            }
        }
    }

    #[test]
    fn a_machine_that_always_interrupts_is_given_up() {
        let tick = Tick { length_ns: 4_000_000, offset_ns: 0 };
        check(5_000_000, tick, 1, false);
        check(5_000_000, tick, 400, true);
    }
}
