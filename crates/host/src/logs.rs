//! Log lines for whoever wants to read them while they are written: a log store, `danki logs -f`.
//!
//! A reader that is slower than the functions loses lines and is told how many; nothing waits for it.

use danki_model::RequestId;
use std::sync::Arc;
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};

/// Lines that a reader may be behind.
const LINES_BEHIND_MAX: usize = 16_384;

/// One line of a function's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// When danki read it, milliseconds of the epoch.
    pub at_epoch_ms: u64,
    /// Function name.
    pub function: String,
    /// Function version.
    pub version: String,
    /// Log group.
    pub group: String,
    /// Log stream: one per env.
    pub stream: String,
    /// The invocation under way, if there is one.
    pub request_id: Option<RequestId>,
    /// Who wrote it.
    pub kind: LogKind,
    /// The line, without its final newline.
    pub text: String,
}

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Lambda: START, END, REPORT…
    Platform,
    /// The function.
    Function,
    /// One of its extensions.
    Extension,
}

/// What a subscription yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogNews {
    /// A line.
    Line(Arc<LogRecord>),
    /// So many lines were lost here, because they were not read in time.
    Missed(u64),
}

/// All lines from the time of subscription on.
#[derive(Debug)]
pub struct LogSubscription(broadcast::Receiver<Arc<LogRecord>>);

impl LogSubscription {
    /// The next news; `None` when the host is gone.
    pub async fn next(&mut self) -> Option<LogNews> {
        match self.0.recv().await {
            Ok(line) => Some(LogNews::Line(line)),
            Err(RecvError::Lagged(missed)) => Some(LogNews::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next news, if there is some already.
    pub fn try_next(&mut self) -> Option<LogNews> {
        match self.0.try_recv() {
            Ok(line) => Some(LogNews::Line(line)),
            Err(TryRecvError::Lagged(missed)) => Some(LogNews::Missed(missed)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

/// Where envs put lines.
#[derive(Clone, Debug)]
pub(crate) struct LogHub(broadcast::Sender<Arc<LogRecord>>);

impl LogHub {
    pub fn new() -> LogHub {
        LogHub(broadcast::Sender::new(LINES_BEHIND_MAX))
    }

    pub fn subscribe(&self) -> LogSubscription {
        LogSubscription(self.0.subscribe())
    }

    /// Makes the line only if somebody reads it.
    pub fn publish(&self, line: impl FnOnce() -> LogRecord) {
        if self.0.receiver_count() > 0 {
            // Err: the last reader left just now.
            let _ = self.0.send(Arc::new(line()));
        }
    }
}
