//! Drives a schedule in real time.

use crate::{Fire, Schedule, Turn};
use std::future::Future;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Sends what the schedule asks for until it is done or `stop` becomes true; then invocations still under way are
/// abandoned. `clock` gives ns; `ready` names variants whose provisioned concurrency is READY; `invoke` resolves to the time at which
/// the invocation ended. Returns whether the schedule was done.
pub async fn run<F>(
    schedule: &mut Schedule,
    clock: impl Fn() -> u64,
    mut stop: watch::Receiver<bool>,
    mut ready: mpsc::Receiver<usize>,
    mut invoke: impl FnMut(Fire) -> F,
) -> bool
where
    F: Future<Output = u64> + Send + 'static,
{
    let mut in_flight: JoinSet<(usize, u64)> = JoinSet::new();
    // False once nobody is left who could stop the run.
    let mut stoppable = true;
    loop {
        if *stop.borrow() {
            return false;
        }
        let now_ns = clock();
        // Without an end to wait for, the only time that passes is the timer's.
        let timer = match schedule.turn(now_ns) {
            Turn::Done => return true,
            Turn::Fire(fire) => {
                let invocation = invoke(fire);
                in_flight.spawn(async move { (fire.variant, invocation.await) });
                continue;
            }
            Turn::WaitUntil(at_ns) => Some(Duration::from_nanos(at_ns.saturating_sub(now_ns))),
            Turn::WaitForEnd | Turn::WaitForReady => None,
        };
        tokio::select! {
            ended = in_flight.join_next(), if !in_flight.is_empty() => match ended {
                Some(Ok((variant, at_ns))) => schedule.ended(variant, at_ns),
                Some(Err(lost)) => std::panic::resume_unwind(lost.into_panic()),
                None => {}
            },
            Some(variant) = ready.recv() => schedule.ready(variant, clock()),
            () = sleep(timer), if timer.is_some() => {}
            changed = stop.changed(), if stoppable => stoppable = changed.is_ok(),
            // Who could say that a variant is ready has gone.
            else => return false,
        }
    }
}

async fn sleep(timer: Option<Duration>) {
    if let Some(timer) = timer {
        tokio::time::sleep(timer).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, Step, Stop};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn schedule() -> Schedule {
        Schedule::new(&Load::Closed { clients: 2, stop: Stop::Count(6) }, 2, 1, 1.0, 0)
    }

    fn nobody_is_ready() -> mpsc::Receiver<usize> {
        mpsc::channel(1).1
    }

    #[tokio::test]
    async fn it_sends_what_the_schedule_asks_for() {
        let time = Arc::new(AtomicU64::new(0));
        let (_keep, stop) = watch::channel(false);
        let mut sent = Vec::new();
        let clock = || time.load(Ordering::Relaxed);
        let done = run(&mut schedule(), clock, stop, nobody_is_ready(), |fire| {
            sent.push((fire.variant, fire.index));
            let time = Arc::clone(&time);
            async move { time.fetch_add(1, Ordering::Relaxed) }
        })
        .await;
        assert!(done);
        sent.sort_unstable();
        let expect: Vec<_> = (0..2).flat_map(|v| (0..6).map(move |i| (v, i))).collect();
        assert_eq!(sent, expect);
    }

    #[tokio::test]
    async fn it_waits_until_a_variant_is_ready() {
        let steps = vec![Step::UntilPcReady, Step::Invoke(1)];
        let mut schedule = Schedule::new(&Load::Steps { steps }, 1, 1, 1.0, 0);
        let (_keep, stop) = watch::channel(false);
        let (tell, ready) = mpsc::channel(1);
        let mut sent = 0;
        let count = |_| {
            sent += 1;
            std::future::ready(0)
        };
        let run = run(&mut schedule, || 0, stop, ready, count);
        let (done, told) = tokio::join!(run, async {
            tokio::task::yield_now().await;
            tell.send(0).await
        });
        assert!(done && told.is_ok());
        assert_eq!(sent, 1);
    }

    #[tokio::test]
    async fn a_stopped_run_abandons_what_is_under_way() {
        let (stopper, stop) = watch::channel(false);
        let done = run(
            &mut schedule(),
            || 0,
            stop,
            nobody_is_ready(),
            |_| {
                stopper.send_replace(true);
                std::future::pending()
            },
        )
        .await;
        assert!(!done);
    }

    #[tokio::test]
    async fn a_run_that_nobody_can_stop_still_ends() {
        let (stopper, stop) = watch::channel(false);
        drop(stopper);
        let mut schedule = schedule();
        let done = run(
            &mut schedule,
            || 0,
            stop,
            nobody_is_ready(),
            |_| async {
                tokio::task::yield_now().await;
                0
            },
        );
        assert!(done.await);
    }
}
