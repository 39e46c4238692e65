//! Pings: invocations beside the load, so that an env that nobody asks does not idle, nor its connections. They count as none of the
//! variant's invocations. One env is kept busy, the one that was used last, as a schedule of EventBridge's would.

use super::tally::Tally;
use crate::error::Error;
use crate::experiment::Variant;
use bytes::Bytes;
use danki_host::{Call, Function};
use danki_sys::clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Since when a variant's functions have had nothing to do.
#[derive(Debug)]
pub struct Idle {
    busy: AtomicU32,
    since_ns: AtomicU64,
}

impl Idle {
    pub fn new() -> Arc<Idle> {
        Arc::new(Idle { busy: AtomicU32::new(0), since_ns: AtomicU64::new(clock::monotonic_ns()) })
    }

    pub fn begins(&self) {
        self.busy.fetch_add(1, Ordering::SeqCst);
    }

    pub fn ends(&self) {
        self.since_ns.store(clock::monotonic_ns(), Ordering::SeqCst);
        self.busy.fetch_sub(1, Ordering::SeqCst);
    }

    /// How long from now until it has been idle for `every`; that whole time where it is busy.
    fn until(&self, every: Duration) -> Duration {
        if self.busy.load(Ordering::SeqCst) > 0 {
            return every;
        }
        let for_ns = clock::monotonic_ns().saturating_sub(self.since_ns.load(Ordering::SeqCst));
        every.saturating_sub(Duration::from_nanos(for_ns))
    }
}

/// The pings of all variants that want some.
#[derive(Default)]
pub struct Pings {
    tasks: Vec<JoinHandle<()>>,
}

impl Pings {
    /// Pings a function whenever it has been idle for `every`, until `stop`.
    pub fn add(
        &mut self,
        (function, variant): (Function, &Variant),
        every: Duration,
        idle: Arc<Idle>,
        tally: Arc<Tally>,
        mut stop: watch::Receiver<bool>,
    ) {
        let (name, payload) = (variant.name.clone(), Bytes::from(variant.event.as_str().to_owned()));
        let task = tokio::spawn(async move {
            loop {
                let wait = idle.until(every);
                if !wait.is_zero() {
                    tokio::select! {
                        () = tokio::time::sleep(wait) => continue,
                        _ = stop.wait_for(|stop| *stop) => return,
                    }
                }
                idle.begins();
                let call = Call { payload: payload.clone(), ping: true, ..Call::default() };
                let ended = function.invoke(call).await;
                idle.ends();
                match ended {
                    Ok(_) | Err(danki_host::Error::Throttled(_)) => {}
                    Err(source) => return tally.failed(Error::Invoke { variant: name, source }),
                }
            }
        });
        self.tasks.push(task);
    }

    /// Waits until the last ping has ended. They were told to stop.
    pub async fn ended(self) {
        for task in self.tasks {
            // One that panicked has said so.
            task.await.ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_busy_is_not_idle() {
        let every = Duration::from_secs(3_600);
        let idle = Idle::new();
        assert!(idle.until(every) <= every && idle.until(Duration::ZERO).is_zero());
        idle.begins();
        assert_eq!(idle.until(every), every);
        idle.ends();
        assert!(idle.until(every) > Duration::from_secs(3_000));
    }
}
