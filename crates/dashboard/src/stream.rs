//! Server-sent events: `live` when something is not as it was, `news` when invocations have ended.
//!
//! Each browser has a task of its own, which looks at the window and writes what is new. A browser that does not read makes that
//! task wait, and nobody else: what it has missed meanwhile it gets as a number.

use crate::view::News;
use crate::{Shared, headers, reply};
use bytes::Bytes;
use danki_serve::Answer;
use hyper::{Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// How often it is looked; a person sees no difference to at once.
const TICK: Duration = Duration::from_millis(150);
/// Without news a comment goes out after so many looks, so that a dead browser is noticed.
const QUIET_TICKS: u32 = 100;
/// Messages that wait for the browser.
const WAITING: usize = 4;
/// Rows of one message.
const ROWS: usize = 100;

/// A stream of events, or a refusal if there are too many already.
pub(crate) fn start(shared: &Arc<Shared>) -> Answer {
    let Ok(permit) = Arc::clone(&shared.streams).try_acquire_owned() else {
        let text = "too many dashboards are open; close one".to_owned();
        return reply(StatusCode::SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", text);
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(run(Arc::clone(shared), sender, permit));
    let mut response = Response::new(receiver);
    *response.headers_mut() = headers("text/event-stream");
    Answer::Stream { response }
}

async fn run(shared: Arc<Shared>, sender: mpsc::Sender<Bytes>, _permit: OwnedSemaphorePermit) {
    let mut stopped = shared.stopped.subscribe();
    let write = async {
        let (mut told, mut seen) = (String::new(), None);
        let mut quiet = 0;
        loop {
            let text = news(&shared, &mut told, &mut seen);
            quiet = if text.is_empty() { quiet + 1 } else { 0 };
            let text = if quiet >= QUIET_TICKS { ":\n\n".to_owned() } else { text };
            if quiet >= QUIET_TICKS {
                quiet = 0;
            }
            if !text.is_empty() && sender.send(Bytes::from(text)).await.is_err() {
                return;
            }
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::select! {
        () = write => {}
        () = sender.closed() => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
}

/// What has changed since the last look, as events; empty if nothing has.
fn news(shared: &Shared, told: &mut String, seen: &mut Option<u64>) -> String {
    let mut out = String::new();
    let live = serde_json::to_string(&shared.live()).expect("plain data");
    if live != *told {
        out += &format!("event: live\ndata: {live}\n\n");
        *told = live;
    }
    let (now, (invocations, missed)) = {
        let window = shared.window();
        (window.seen(), window.rows_after(seen.unwrap_or(0), ROWS))
    };
    if *seen != Some(now) {
        // A browser that has just come has missed nothing.
        let missed = if seen.is_none() { 0 } else { missed };
        let news = serde_json::to_string(&News { invocations, missed }).expect("plain data");
        out += &format!("event: news\ndata: {news}\n\n");
        *seen = Some(now);
    }
    out
}
