//! A precise wait.
//!
//! tokio's timers tick in milliseconds, which is the size of what a service time is about. A timerfd has the kernel's
//! resolution and wakes through the same epoll: tens of µs late on an idle machine, without a thread and without
//! spinning. One per wait: creating and closing it costs a few µs, and it cannot outlive its waiter.

use danki_sys::clock::monotonic_ns;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

const NS_PER_S: u64 = 1_000_000_000;

/// Waits until the monotonic clock shows `at_ns`; returns at once if it already does.
///
/// Where no timer can be had (out of descriptors) it falls back to tokio's, up to 1 ms late.
pub async fn sleep_until(at_ns: u64) {
    if at_ns <= monotonic_ns() {
        return;
    }
    if timer_at(at_ns).await.is_err() {
        tokio::time::sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()))).await;
    }
}

async fn timer_at(at_ns: u64) -> io::Result<()> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let at = Timespec { tv_sec: (at_ns / NS_PER_S).cast_signed(), tv_nsec: (at_ns % NS_PER_S).cast_signed() };
    let never_again = Timespec { tv_sec: 0, tv_nsec: 0 };
    timerfd_settime(
        &timer,
        TimerfdTimerFlags::ABSTIME,
        &Itimerspec { it_interval: never_again, it_value: at },
    )?;
    #[expect(
        deprecated,
        reason = "its heir is unsafe for types that lie about the descriptor; OwnedFd does not"
    )]
    let timer = AsyncFd::with_interest(timer, tokio::io::Interest::READABLE)?;
    timer.readable().await?.retain_ready();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn never_early_and_not_a_millisecond_clock() {
        let mut late_ns: Vec<u64> = Vec::new();
        for _ in 0..50 {
            let at = monotonic_ns() + 300_000;
            sleep_until(at).await;
            let now = monotonic_ns();
            assert!(now >= at, "woke {} ns early", at - now);
            late_ns.push(now - at);
        }
        late_ns.sort_unstable();
        eprintln!("lateness p50 {} µs, p90 {} µs", late_ns[25] / 1_000, late_ns[45] / 1_000);
        assert!(late_ns[5] < 700_000, "a tenth of the waits ends within 0.7 ms even on a busy machine");
    }

    #[tokio::test]
    async fn the_past_does_not_wait() {
        sleep_until(0).await;
        sleep_until(monotonic_ns()).await;
    }
}
