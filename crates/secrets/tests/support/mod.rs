//! Scripted peers for the extension: the services upstream of it, the platform above it, and a client below.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod client;
pub mod platform;
pub mod process;
pub mod tls;
pub mod upstream;

use danki_secrets::log::{Level, Log};
use danki_secrets::settings::Settings;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

pub use client::{Answer, Client};
pub use platform::Platform;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
pub use upstream::{Call, Reply, Upstream};

pub const TOKEN: &str = "the session token";

/// A running extension with a platform of its own.
pub struct Running {
    pub port: u16,
    pub platform: Platform,
    pub log: Arc<Mutex<String>>,
    thread: Option<JoinHandle<Result<(), danki_secrets::Error>>>,
}

/// What most tests set: the upstream, and serving without waiting for an invocation.
pub fn variables(upstream: &str) -> Vec<(String, String)> {
    [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_SESSION_TOKEN", TOKEN),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", upstream),
        ("DANKI_SECRETS_READY", "init"),
        ("PARAMETERS_SECRETS_EXTENSION_LOG_LEVEL", "debug"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

impl Running {
    /// Starts it with these variables beside the usual ones; a later one of a name replaces an earlier.
    pub fn start(upstream: &str, more: &[(&str, &str)]) -> Running {
        Running::start_with(upstream, more, |_| {})
    }

    /// The same, with what is no environment variable.
    pub fn start_with(upstream: &str, more: &[(&str, &str)], change: impl FnOnce(&mut Settings)) -> Running {
        let platform = Platform::start();
        let mut all = variables(upstream);
        all.push(("AWS_LAMBDA_RUNTIME_API".to_owned(), platform.address.clone()));
        all.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let get =
            |name: &str| all.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let mut settings = Settings::read(&get).expect("valid settings");
        settings.port = 0;
        change(&mut settings);
        let log = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&log);
        let sink = Arc::new(move |line: &str| kept.lock().expect("sound").push_str(line));
        let (bound, port) = mpsc::channel();
        let level = settings.level;
        let thread = std::thread::spawn(move || {
            danki_secrets::run(&settings, danki_secrets::extension::NAME, &Log::new(level, sink), |port| {
                bound.send(port).expect("the test waits");
            })
        });
        let port = port.recv().expect("it listens");
        Running { port, platform, log, thread: Some(thread) }
    }

    /// A new connection with the right token.
    pub fn client(&self) -> Client {
        Client::connect(self.port, Some(TOKEN))
    }

    /// One request on a connection of its own.
    pub fn get(&self, target: &str) -> Answer {
        self.client().get(target)
    }

    pub fn logged(&self) -> String {
        self.log.lock().expect("sound").clone()
    }

    /// SHUTDOWN, and how it ended.
    pub fn stop(&mut self) -> Result<(), danki_secrets::Error> {
        self.platform.shutdown();
        self.thread.take().map_or(Ok(()), |thread| thread.join().expect("it does not panic"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop().expect("it ends well");
        }
    }
}

/// A log that nobody reads.
pub fn silent() -> Log {
    Log::new(Level::None, Arc::new(|_: &str| {}))
}
