//! What can go wrong with environments.

use danki_model::concurrency::Throttle;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An env or a function could not do what was asked. Errors of the *function* are not here: they are outcomes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The interpreter of the runtime is not on this machine.
    #[error("no {what} found in {}", display(.searched))]
    InterpreterMissing {
        /// `node` or `python3`.
        what: String,
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
    /// The function's configuration or code is not usable.
    #[error("function {function:?}: {problem}")]
    BadFunction {
        /// Function name.
        function: String,
        /// What is wrong, with the value and the allowed range.
        problem: String,
    },
    /// The invocation is not taken.
    #[error("throttled: {0}")]
    Throttled(Throttle),
    /// A forced idle gap that is too long.
    #[error("an idle gap of {} s is longer than 3600 s", .0.as_secs())]
    IdleGap(Duration),
    /// A file of the run could not be prepared.
    #[error("cannot prepare {}: {source}", .path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel or the keeper refused.
    #[error(transparent)]
    Sys(#[from] danki_sys::Error),
    /// The link refused.
    #[error(transparent)]
    Link(#[from] danki_link::Error),
    /// The Runtime API could not be served.
    #[error(transparent)]
    RuntimeApi(#[from] danki_runtime_api::Error),
    /// An env could not be watched.
    #[error("cannot watch the environment: {0}")]
    Io(#[from] io::Error),
    /// The host was stopped while the invocation was under way.
    #[error("the host was stopped")]
    Stopped,
}

fn display(paths: &[PathBuf]) -> String {
    paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
}
