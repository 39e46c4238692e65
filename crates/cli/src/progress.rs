//! One line that says how far a run is. Not on a terminal: a line per tenth.

use danki_lab::{Progress, Watcher};
use danki_sys::clock;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shortest time between two states of the line.
const INTERVAL_NS: u64 = 100_000_000;

/// Shows progress on stderr.
pub fn watcher(name: &str) -> Watcher {
    let name = name.to_owned();
    let last = AtomicU64::new(0);
    if io::stderr().is_terminal() {
        return Arc::new(move |p| {
            let now = clock::monotonic_ns();
            let over = p.total == Some(p.done);
            if over || now.saturating_sub(last.load(Ordering::Relaxed)) > INTERVAL_NS {
                last.store(now, Ordering::Relaxed);
                write!(io::stderr().lock(), "\r\x1b[K{}{}", line(&name, p), if over { "\n" } else { "" })
                    .ok();
            }
        });
    }
    Arc::new(move |p| {
        let Some(total) = p.total else { return };
        let tenth = p.done * 10 / total.max(1);
        if last.swap(tenth, Ordering::Relaxed) < tenth {
            writeln!(io::stderr().lock(), "{}", line(&name, p)).ok();
        }
    })
}

/// Shows nothing.
pub fn silent() -> Watcher {
    Arc::new(|_| {})
}

fn line(name: &str, p: &Progress) -> String {
    match p.total {
        Some(total) => format!("{name}: {}/{total} invocations ({})", p.done, p.variant),
        None => format!("{name}: {} invocations ({})", p.done, p.variant),
    }
}
