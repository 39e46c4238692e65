//! What a browser sees of a running `danki up`: functions, envs as they are, invocations as they end, and the report's page of the last
//! few hundred of them.
//!
//! Facts come from the recorder, which never waits: a thread takes them into a window of bounded size. A browser reads that window at
//! its own speed: what it was too slow for it does not get, and nobody else notices. Only pages from this address are answered, so
//! that no site in the same browser can read what functions do: see `guard`.

mod guard;
mod page;
mod stream;
mod view;
mod window;

pub use view::{Live, LiveEnv, LiveFunction, LiveInvocation, News};

use bytes::Bytes;
use danki_explain::Setting;
use danki_record::{Connection, Received, Recording};
use danki_serve::{Answer, Call};
use danki_sys::clock;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use window::Window;

/// Where the page is; what it asks for lies below.
pub const PATH: &str = "/_danki/ui";
/// The built page: `web/` makes it.
const PAGE: &str = include_str!("../assets/dashboard.html");
/// Pages that are kept up to date at once; a further one is told so.
const STREAMS: usize = 8;
/// How long the reading thread waits for a fact before it looks whether it shall end.
const PATIENCE: Duration = Duration::from_millis(200);
/// Facts are taken over together, so often.
const GATHER: Duration = Duration::from_millis(10);

/// What does not change while danki runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Version of danki.
    pub version: String,
    /// AWS name of the region.
    pub region: String,
    /// Idle envs are frozen.
    pub freezes: bool,
}

/// Functions and envs as they are now, given what makes ns of the monotonic clock ns since 1970: the same each time, so that what has not
/// changed looks the same.
type LiveSource = Box<dyn Fn(u64) -> (Vec<LiveFunction>, Vec<LiveEnv>) + Send + Sync>;
/// How each function is deployed.
type SettingSource = Box<dyn Fn() -> Vec<Setting> + Send + Sync>;
/// Connections that are open: they are recorded only when they end.
type ConnectionSource = Box<dyn Fn() -> Vec<Connection> + Send + Sync>;

struct Shared {
    setup: Setup,
    started_ns: u64,
    epoch_offset_ns: u64,
    window: Mutex<Window>,
    dropped: AtomicU64,
    stopping: AtomicBool,
    stopped: watch::Sender<bool>,
    streams: Arc<Semaphore>,
    /// One page is made at a time.
    making: tokio::sync::Mutex<()>,
    account: OnceLock<(LiveSource, SettingSource)>,
    connections: OnceLock<ConnectionSource>,
}

/// The dashboard of a running endpoint; cheap to clone.
#[derive(Clone)]
pub struct Dashboard {
    shared: Arc<Shared>,
}

impl Dashboard {
    /// Begins to read facts, on a thread that ends with [`Dashboard::stop`] or with the last recorder.
    pub fn start(setup: Setup, recording: Recording) -> Dashboard {
        let shared = Arc::new(Shared {
            setup,
            started_ns: clock::monotonic_ns(),
            epoch_offset_ns: clock::epoch_offset_ns(),
            window: Mutex::default(),
            dropped: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            stopped: watch::channel(false).0,
            streams: Arc::new(Semaphore::new(STREAMS)),
            making: tokio::sync::Mutex::default(),
            account: OnceLock::new(),
            connections: OnceLock::new(),
        });
        let reader = Arc::clone(&shared);
        thread::Builder::new()
            .name("danki-live".to_owned())
            .spawn(move || reader.read(&recording))
            .expect("a thread can be started");
        Dashboard { shared }
    }

    /// Where functions and envs (given the offset from the monotonic clock to 1970, ns), and how they are deployed, are asked for.
    /// The first call counts.
    pub fn follow_account(
        &self,
        live: impl Fn(u64) -> (Vec<LiveFunction>, Vec<LiveEnv>) + Send + Sync + 'static,
        settings: impl Fn() -> Vec<Setting> + Send + Sync + 'static,
    ) {
        self.shared.account.set((Box::new(live), Box::new(settings))).ok();
    }

    /// Where open connections are asked for; it may take a moment. The first call counts.
    pub fn follow_connections(&self, open: impl Fn() -> Vec<Connection> + Send + Sync + 'static) {
        self.shared.connections.set(Box::new(open)).ok();
    }

    /// Whether a path is the dashboard's.
    pub fn owns(path: &str) -> bool {
        path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Answers a request whose path is the dashboard's.
    pub async fn answer(&self, call: Call) -> Answer {
        if let Err(why) = guard::check(&call.head.headers, call.peer.local) {
            return reply(StatusCode::FORBIDDEN, "text/plain; charset=utf-8", why.to_owned());
        }
        if call.head.method != hyper::Method::GET {
            return reply(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", "GET only".to_owned());
        }
        match call.head.uri.path().strip_prefix(PATH).unwrap_or_default() {
            "" | "/" => reply(StatusCode::OK, "text/html; charset=utf-8", PAGE.to_owned()),
            "/events" => stream::start(&self.shared),
            "/page" => reply(StatusCode::OK, "application/json", page::make(&self.shared).await),
            _ => reply(
                StatusCode::NOT_FOUND,
                "text/plain; charset=utf-8",
                format!("the dashboard is at {PATH}"),
            ),
        }
    }

    /// Ends the streams and the reading thread.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.stopped.send_replace(true);
    }
}

impl Shared {
    fn read(&self, recording: &Recording) {
        while !self.stopping.load(Ordering::Relaxed) {
            match recording.receive(PATIENCE) {
                Received::Event(event) => self.window().push(*event, self.epoch_offset_ns),
                Received::Nothing => {}
                Received::Ended => return,
            }
            while let Received::Event(event) = recording.receive(Duration::ZERO) {
                self.window().push(*event, self.epoch_offset_ns);
            }
            self.dropped.store(recording.dropped(), Ordering::Relaxed);
            // Whoever records a fact would have to wake this thread, in the middle of somebody's invocation.
            thread::park_timeout(GATHER);
        }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is now.
    fn live(&self) -> Live {
        let (functions, envs) =
            self.account.get().map(|(live, _)| live(self.epoch_offset_ns)).unwrap_or_default();
        let window = self.window();
        let counted = |function: LiveFunction| {
            let counts = window.counts(&function.name);
            LiveFunction {
                invocations: counts.invocations,
                errors: counts.errors,
                throttles: counts.throttles,
                ..function
            }
        };
        let functions = functions.into_iter().map(counted).collect();
        Live {
            danki: self.setup.version.clone(),
            region: self.setup.region.clone(),
            freezes: self.setup.freezes,
            started_epoch_ms: (self.started_ns + self.epoch_offset_ns) / 1_000_000,
            dropped: self.dropped.load(Ordering::Relaxed),
            functions,
            envs,
        }
    }
}

fn reply(status: StatusCode, kind: &'static str, body: String) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    *response.headers_mut() = headers(kind);
    Answer::reply(response)
}

/// No other page may embed, read or guess at what is answered, and nothing of it is kept.
fn headers(kind: &'static str) -> HeaderMap {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in [
        ("cache-control", "no-store"),
        ("content-security-policy", policy),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
}
