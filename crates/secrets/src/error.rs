//! Why the extension cannot run.

use std::io;
use thiserror::Error;

/// What ends the process; everything else is answered or logged.
#[derive(Debug, Error)]
pub enum Error {
    /// A setting of our own is wrong. AWS's settings fall back to their defaults with a warning, as a function may carry them along.
    #[error("{name} is {value:?}; allowed: {allowed}\nhint: unset {name}, or give it an allowed value")]
    Setting {
        /// Environment variable.
        name: &'static str,
        /// What it says.
        value: String,
        /// What it may say.
        allowed: &'static str,
    },
    /// The place to listen is taken or not allowed.
    #[error(
        "cannot listen on {place}: {error}\nhint: is another secrets extension among the function's layers?"
    )]
    Listen {
        /// Port or path.
        place: String,
        /// Why.
        error: io::Error,
    },
    /// The Extensions API refuses.
    #[error(
        "{what}: {why}\nhint: the file in /opt/extensions must be called as the extension registers itself"
    )]
    Extension {
        /// What was tried.
        what: &'static str,
        /// Answer or error.
        why: String,
    },
    /// The kernel refuses.
    #[error("{what}: {error}")]
    Kernel {
        /// System call.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}
