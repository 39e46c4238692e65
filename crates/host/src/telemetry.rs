//! Telemetry of one env to the extensions that subscribed (`lambda-platform.md` §2.6): what is to be sent, and in which batches.
//!
//! An extension that subscribes in the middle of init gets what happened since its beginning. Nothing waits for a reader: what it is behind
//! with is bounded, and what does not fit is dropped and told in a `platform.logsDropped`.

use crate::deliver::{self, Message};
use danki_model::telemetry::{self, Platform};
use danki_runtime_api::Subscription;
use danki_sys::clock;
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Records kept of an init for whoever subscribes later.
const HISTORY_MAX: usize = 1_000;
/// A reader may be behind by this many of its batches.
const BATCHES_BEHIND_MAX: usize = 4;

/// What a record is about: `types` of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Platform,
    Function,
    Extension,
}

/// Where an env puts its telemetry; cheap to clone, and to use while nobody reads.
#[derive(Clone, Default)]
pub(crate) struct Telemetry {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Somebody reads, or may still begin to.
    active: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Since the beginning of init, while it lasts.
    history: Option<Vec<(Kind, Arc<str>)>>,
    readers: Vec<Reader>,
}

struct Reader {
    subscription: Subscription,
    messages: mpsc::Sender<Message>,
    backlog: Arc<Backlog>,
}

/// What was put into a reader's queue and is not sent yet, and what did not fit.
#[derive(Default)]
pub(crate) struct Backlog {
    pub bytes: AtomicUsize,
    pub dropped_records: AtomicU64,
    pub dropped_bytes: AtomicU64,
}

impl Backlog {
    fn drop_one(&self, bytes: usize) {
        self.dropped_records.fetch_add(1, Ordering::Relaxed);
        self.dropped_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The record of what was lost since this was asked last.
    pub fn lost(&self) -> Option<String> {
        let records = self.dropped_records.swap(0, Ordering::Relaxed);
        let bytes = self.dropped_bytes.swap(0, Ordering::Relaxed);
        let reason = "Consumer seems to have fallen behind as it has not acknowledged receipt of logs.";
        let dropped = Platform::LogsDropped { reason: reason.to_owned(), records, bytes };
        (records > 0).then(|| dropped.json(clock::epoch_ns() / 1_000_000))
    }
}

impl Telemetry {
    /// Init begins: whoever subscribes gets what happens from here on.
    pub fn begin(&self) {
        let mut state = self.lock();
        *state = State { history: Some(Vec::new()), readers: Vec::new() };
        self.inner.active.store(true, Ordering::Release);
    }

    /// Init is over: nobody may subscribe any more.
    pub fn init_is_over(&self) {
        let mut state = self.lock();
        state.history = None;
        self.inner.active.store(!state.readers.is_empty(), Ordering::Release);
    }

    /// The processes are gone, and with them the readers.
    pub fn reset(&self) {
        *self.lock() = State::default();
        self.inner.active.store(false, Ordering::Release);
    }

    /// Somebody reads or may still begin to.
    pub fn is_active(&self) -> bool {
        self.inner.active.load(Ordering::Acquire)
    }

    /// An extension subscribes; its listener is in this network namespace.
    pub fn subscribe(&self, subscription: Subscription, netns: OwnedFd) {
        let (messages, queue) = mpsc::channel(subscription.buffering.max_items * BATCHES_BEHIND_MAX);
        let backlog = Arc::new(Backlog::default());
        let destination = subscription.destination.clone();
        tokio::spawn(deliver::run(
            queue,
            subscription.buffering,
            destination,
            Arc::clone(&backlog),
            Arc::new(netns),
        ));
        let reader = Reader { subscription, messages, backlog };
        let mut state = self.lock();
        state.history.iter().flatten().for_each(|(kind, record)| reader.put(*kind, record));
        state.readers.push(reader);
    }

    /// A platform event.
    pub fn platform(&self, event: &Platform, epoch_ms: u64) {
        if self.is_active() {
            self.put(Kind::Platform, event.json(epoch_ms));
        }
    }

    /// A log line. In JSON format a line that is an object is sent as one.
    pub fn line(&self, kind: Kind, text: &str, json: bool, epoch_ms: u64) {
        if !self.is_active() {
            return;
        }
        let object =
            json.then(|| serde_json::from_str::<Value>(text).ok()).flatten().filter(Value::is_object);
        let record = object.unwrap_or_else(|| Value::String(text.to_owned()));
        let name = if kind == Kind::Extension { "extension" } else { "function" };
        self.put(kind, telemetry::event(epoch_ms, name, &record));
    }

    /// Sends what is buffered; waits at most this long for it to arrive.
    pub async fn flush(&self, patience: Duration) {
        let mut waits = Vec::new();
        for reader in &self.lock().readers {
            let (done, wait) = oneshot::channel();
            if reader.messages.try_send(Message::Flush(done)).is_ok() {
                waits.push(wait);
            }
        }
        let all = async {
            for wait in waits {
                wait.await.ok();
            }
        };
        timeout(patience, all).await.ok();
    }

    fn put(&self, kind: Kind, record: String) {
        let record: Arc<str> = record.into();
        let mut state = self.lock();
        state.readers.iter().for_each(|reader| reader.put(kind, &record));
        if let Some(history) = state.history.as_mut().filter(|history| history.len() < HISTORY_MAX) {
            history.push((kind, record));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    fn put(&self, kind: Kind, record: &Arc<str>) {
        let wanted = match kind {
            Kind::Platform => self.subscription.platform,
            Kind::Function => self.subscription.function,
            Kind::Extension => self.subscription.extension,
        };
        if !wanted {
            return;
        }
        let behind = self.backlog.bytes.load(Ordering::Relaxed) + record.len();
        let room = behind <= self.subscription.buffering.max_bytes * BATCHES_BEHIND_MAX;
        if room && self.messages.try_send(Message::Record(Arc::clone(record))).is_ok() {
            self.backlog.bytes.fetch_add(record.len(), Ordering::Relaxed);
        } else {
            self.backlog.drop_one(record.len());
        }
    }
}
