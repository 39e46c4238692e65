//! Log groups and streams, as CloudWatch Logs would have them, in memory.

use danki_host::{LogNews, LogSubscription};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Bytes kept per group; the oldest lines go first.
const GROUP_BYTES: usize = 8 * 1024 * 1024;
/// Streams kept per group: one per environment; the oldest go first.
const STREAMS: usize = 1_000;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Ordinal among all lines: the order in which they came.
    pub id: u64,
    pub at_ms: u64,
    pub stream: String,
    pub text: String,
}

/// One group: lines in the order in which they came.
#[derive(Debug, Default)]
pub struct Group {
    pub created_ms: u64,
    pub lines: VecDeque<Line>,
    /// Stream → times of its first and last line.
    pub streams: BTreeMap<String, (u64, u64)>,
    bytes: usize,
    /// Lines that had to go.
    pub dropped: u64,
}

/// All groups.
pub struct Logs {
    groups: Mutex<BTreeMap<String, Group>>,
    last: watch::Sender<u64>,
}

impl Default for Logs {
    fn default() -> Self {
        Logs { groups: Mutex::default(), last: watch::Sender::new(0) }
    }
}

impl Logs {
    /// The groups, to look at or to change.
    pub fn groups(&self) -> MutexGuard<'_, BTreeMap<String, Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves to true when a line with a higher id than this is there.
    pub fn after(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    pub fn take(&self, group: &str, stream: &str, at_ms: u64, text: &str) {
        let id = *self.last.borrow() + 1;
        let mut groups = self.groups();
        let group = groups.entry(group.to_owned()).or_default();
        if group.created_ms == 0 {
            group.created_ms = at_ms;
        }
        group.push(Line { id, at_ms, stream: stream.to_owned(), text: text.to_owned() });
        drop(groups);
        self.last.send_replace(id);
    }

    /// Takes what the host writes until the host is gone. One caller only: it gives the ids.
    pub async fn follow(&self, mut subscription: LogSubscription) {
        while let Some(news) = subscription.next().await {
            match news {
                LogNews::Line(r) => self.take(&r.group, &r.stream, r.at_epoch_ms, &r.text),
                LogNews::Missed(lines) => {
                    let text = format!("{lines} lines were lost: they came faster than they could be kept");
                    self.take("/danki", "missed", crate::api::now_ms(), &text);
                }
            }
        }
    }
}

impl Group {
    /// A group without lines.
    pub fn new(created_ms: u64) -> Group {
        Group { created_ms, ..Group::default() }
    }

    fn push(&mut self, line: Line) {
        let at_ms = line.at_ms;
        self.streams
            .entry(line.stream.clone())
            .and_modify(|(_, last)| *last = at_ms)
            .or_insert((at_ms, at_ms));
        self.bytes += line.text.len() + line.stream.len();
        self.lines.push_back(line);
        while self.bytes > GROUP_BYTES && self.lines.len() > 1 {
            self.drop_oldest();
        }
        if self.streams.len() > STREAMS {
            let oldest = self.streams.iter().min_by_key(|(_, times)| times.1).map(|(name, _)| name.clone());
            oldest.and_then(|name| self.streams.remove(&name));
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(line) = self.lines.pop_front() {
            self.bytes -= line.text.len() + line.stream.len();
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_bounded_and_keeps_the_newest() {
        let logs = Logs::default();
        let text = "x".repeat(GROUP_BYTES / 8);
        for n in 0..20 {
            logs.take("g", &format!("s{n}"), n, &text);
        }
        let groups = logs.groups();
        let group = &groups["g"];
        assert!(group.lines.len() < 9 && group.bytes <= GROUP_BYTES, "{}", group.lines.len());
        assert_eq!(group.lines.back().expect("the newest").at_ms, 19);
        assert_eq!(group.dropped + group.lines.len() as u64, 20);
    }

    #[test]
    fn streams_are_bounded() {
        let logs = Logs::default();
        for n in 0..STREAMS as u64 + 5 {
            logs.take("g", &format!("s{n}"), n, "x");
        }
        assert_eq!(logs.groups()["g"].streams.len(), STREAMS);
    }
}
