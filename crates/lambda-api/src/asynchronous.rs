//! Asynchronous invocations: accepted at once, then tried until they succeed or AWS would give up (§7.4).
//!
//! Each accepted event is a task of its own; how many there may be is bounded. What is left of an event that ended is a record for its
//! destination, or the event itself for its dead letter target.

use crate::api::{Api, now_ms};
use crate::arn;
use crate::delivery::{self, Ended};
use crate::fault::{Fault, Throttle};
use crate::store::EventInvoke;
use bytes::Bytes;
use danki_host::{Call, Caller, Function, Outcome};
use danki_model::RequestId;
use danki_model::metrics::{Metric, Subject};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Events accepted and not yet ended. AWS's queue has no published bound; memory has.
const QUEUED: usize = 10_000;
/// Before the second and the third attempt of an event whose function failed.
const AFTER_FAILURE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(120)];
/// First and longest pause after a throttle.
const AFTER_THROTTLE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// An event is given up at this age unless it says otherwise: 6 h.
const MAX_AGE_S: u32 = 21_600;
/// Functions that invoke each other through destinations: AWS stops a loop at 16.
const CHAIN: u32 = 16;

/// What is counted here.
pub const METRICS: [Metric; 6] = [
    Metric::AsyncEventAge,
    Metric::AsyncEventsDropped,
    Metric::AsyncEventsReceived,
    Metric::DeadLetterErrors,
    Metric::DestinationDeliveryFailures,
    Metric::RecursiveInvocationsDropped,
];

/// Events under way.
pub struct Queue {
    time_scale: f64,
    /// Where records for targets that are not functions go.
    pub files: PathBuf,
    events: Arc<AtomicUsize>,
}

/// An accepted event.
pub struct Event {
    pub id: RequestId,
    pub function: String,
    /// As the caller named it; none is `$LATEST`.
    pub qualifier: Option<String>,
    pub payload: Bytes,
    pub client_context: Option<String>,
    pub trace_id: Option<String>,
    /// How many destinations it came through.
    pub chain: u32,
}

impl Event {
    /// Counts something that belongs to the event as it was invoked; which version serves it may change from attempt to attempt.
    pub fn count(&self, api: &Api, metric: Metric, value: f64) {
        let invoked = Subject::invoked(&self.function, self.qualifier.as_deref(), "");
        api.metrics().record(now_ms(), &Subject { version: None, ..invoked }, &[(metric, value)]);
    }
}

/// How an attempt went.
enum Attempt {
    Succeeded(Box<Outcome>),
    Failed(Box<Outcome>),
    Throttled,
    Gone,
}

impl Queue {
    pub fn new(time_scale: f64, files: PathBuf) -> Queue {
        Queue { time_scale, files, events: Arc::default() }
    }

    /// Events accepted and not yet ended.
    pub fn len(&self) -> usize {
        self.events.load(Ordering::Acquire)
    }

    fn scaled(&self, duration: Duration) -> Duration {
        duration.div_f64(self.time_scale)
    }

    fn admit(&self) -> Result<Ticket, Fault> {
        let more = |n: usize| (n < QUEUED).then_some(n + 1);
        let admitted = self.events.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        admitted.map_err(|_| Fault::throttled(Throttle::AccountRate))?;
        Ok(Ticket(Arc::clone(&self.events)))
    }
}

/// A place in the queue, given back when dropped.
struct Ticket(Arc<AtomicUsize>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Accepts an event.
pub fn accept(api: &Arc<Api>, event: Event) -> Result<(), Fault> {
    let ticket = api.queue.admit()?;
    let api = Arc::clone(api);
    event.count(&api, Metric::AsyncEventsReceived, 1.0);
    tokio::spawn(async move {
        let ended = run(&api, &event).await;
        if !matches!(ended, Ended::Succeeded { .. }) {
            event.count(&api, Metric::AsyncEventsDropped, 1.0);
        }
        if event.chain < CHAIN {
            delivery::deliver(&api, &event, &ended);
        } else {
            event.count(&api, Metric::RecursiveInvocationsDropped, 1.0);
        }
        drop(ticket);
    });
    Ok(())
}

/// Tries until the event is done with.
async fn run(api: &Arc<Api>, event: &Event) -> Ended {
    let began_ms = now_ms();
    let (mut attempts, mut failures) = (0, 0);
    let mut pause = AFTER_THROTTLE.0;
    loop {
        let (settings, reserved) = settings(api, event);
        if reserved == Some(0) {
            return Ended::Zero;
        }
        let max_age = Duration::from_secs(u64::from(settings.max_age_s.unwrap_or(MAX_AGE_S)));
        let age = Duration::from_millis(now_ms().saturating_sub(began_ms));
        if age > api.queue.scaled(max_age) {
            return Ended::TooOld { attempts };
        }
        let attempted = attempt(api, event).await;
        if matches!(attempted, Attempt::Succeeded(_) | Attempt::Failed(_)) {
            event.count(api, Metric::AsyncEventAge, age.as_millis() as f64);
        }
        let wait = match attempted {
            Attempt::Succeeded(outcome) => return Ended::Succeeded { outcome, attempts: attempts + 1 },
            Attempt::Failed(outcome) => {
                attempts += 1;
                failures += 1;
                if failures > settings.retries.unwrap_or(2) {
                    return Ended::Exhausted { outcome, attempts };
                }
                AFTER_FAILURE[usize::from(failures > 1)]
            }
            Attempt::Throttled => {
                let now = pause;
                pause = (pause * 2).min(AFTER_THROTTLE.1);
                now
            }
            Attempt::Gone => return Ended::Gone,
        };
        tokio::time::sleep(api.queue.scaled(wait)).await;
    }
}

async fn attempt(api: &Arc<Api>, event: &Event) -> Attempt {
    let Ok(version) = crate::ops::invoke::choose(api, &event.function, event.qualifier.as_deref()) else {
        return Attempt::Gone;
    };
    let Some(function) = api.fleet.get(&event.function, &version) else {
        // The version is being deployed, or cannot be: both are the platform's errors, which AWS retries for hours.
        return Attempt::Throttled;
    };
    match invoke(api, &function, event).await {
        Ok(outcome) if outcome.function_error.is_none() => Attempt::Succeeded(Box::new(outcome)),
        Ok(outcome) => Attempt::Failed(Box::new(outcome)),
        Err(_throttled_or_broken) => Attempt::Throttled,
    }
}

async fn invoke(api: &Arc<Api>, function: &Function, event: &Event) -> Result<Outcome, danki_host::Error> {
    let call = Call {
        payload: event.payload.clone(),
        intended_ns: danki_sys::clock::monotonic_ns(),
        caller: Caller {
            request_id: Some(event.id.clone()),
            function_arn: Some(arn::function(api.region(), &event.function, event.qualifier.as_deref())),
            trace_id: event.trace_id.clone(),
            client_context: event.client_context.clone(),
            ..Caller::default()
        },
        asynchronous: true,
        ..Call::default()
    };
    function.invoke(call).await
}

fn settings(api: &Arc<Api>, event: &Event) -> (EventInvoke, Option<u32>) {
    let account = api.account();
    let Some(function) = account.functions.get(&event.function) else { return Default::default() };
    let qualifier = event.qualifier.as_deref().unwrap_or(crate::store::LATEST);
    (function.event_invoke.get(qualifier).cloned().unwrap_or_default(), function.reserved)
}
