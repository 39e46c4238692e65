//! How producers hand facts over without ever waiting.

use crate::Event;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// A producer's end: cheap to clone, never blocks. At the bound it drops and counts.
#[derive(Clone)]
pub struct Recorder {
    sender: SyncSender<Event>,
    dropped: Arc<AtomicU64>,
}

/// The reader's end: ends when every [`Recorder`] is gone.
pub struct Recording {
    receiver: Receiver<Event>,
    dropped: Arc<AtomicU64>,
}

impl Recorder {
    /// A recorder that holds at most `bound` events not yet read.
    pub fn bounded(bound: usize) -> (Recorder, Recording) {
        let (sender, receiver) = sync_channel(bound);
        let dropped = Arc::new(AtomicU64::new(0));
        (Recorder { sender, dropped: Arc::clone(&dropped) }, Recording { receiver, dropped })
    }

    /// Hands over a fact; if the reader is behind by the whole bound, the fact is dropped and counted.
    pub fn record(&self, event: Event) {
        match self.sender.try_send(event) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// What a reader that does not wait for ever gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Received {
    /// A fact.
    Event(Box<Event>),
    /// Nothing within the time given.
    Nothing,
    /// Every [`Recorder`] is gone.
    Ended,
}

impl Recording {
    /// The next fact, if it comes within `patience`.
    pub fn receive(&self, patience: Duration) -> Received {
        match self.receiver.recv_timeout(patience) {
            Ok(event) => Received::Event(Box::new(event)),
            Err(RecvTimeoutError::Timeout) => Received::Nothing,
            Err(RecvTimeoutError::Disconnected) => Received::Ended,
        }
    }

    /// Facts dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Iterator for Recording {
    type Item = Event;
    fn next(&mut self) -> Option<Event> {
        self.receiver.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_recorder_drops_and_counts() {
        let (recorder, mut recording) = Recorder::bounded(1);
        recorder.record(Event::Caveat { text: "kept".to_owned() });
        recorder.record(Event::Caveat { text: "dropped".to_owned() });
        assert_eq!(recording.dropped(), 1);
        assert_eq!(
            recording.receive(Duration::ZERO),
            Received::Event(Box::new(Event::Caveat { text: "kept".to_owned() }))
        );
        assert_eq!(recording.receive(Duration::ZERO), Received::Nothing);
        recorder.record(Event::Caveat { text: "kept".to_owned() });
        drop(recorder);
        assert_eq!(recording.next(), Some(Event::Caveat { text: "kept".to_owned() }));
        assert_eq!(recording.next(), None);
    }
}
