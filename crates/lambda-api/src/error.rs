//! What can go wrong with the endpoint itself. What an operation refuses is a [`crate::fault::Fault`] and goes to its caller.

use std::io;
use std::path::{Path, PathBuf};

/// The endpoint could not start or keep its state.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port is taken, or not allowed.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Where it was tried.
        address: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The server refused its listener.
    #[error(transparent)]
    Serve(#[from] danki_serve::Error),
    /// The state directory cannot be used.
    #[error("cannot {verb} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The kept state is not what this version wrote.
    #[error("state file {} does not read: {problem}\nhint: move it away to start with an empty account", .path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl Error {
    pub(crate) fn state(verb: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io { verb, path: path.to_path_buf(), source }
    }
}
