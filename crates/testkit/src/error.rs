//! Why a test's lab could not do what was asked.

use std::path::PathBuf;

/// Errors of functions are not here: they are replies.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The world could not be started or stopped.
    #[error(transparent)]
    Lab(#[from] danki_lab::Error),
    /// A function could not be deployed or invoked.
    #[error(transparent)]
    Host(#[from] danki_host::Error),
    /// AWS would refuse a setting.
    #[error(transparent)]
    Refused(#[from] danki_host::Refused),
    /// The keeper could not be started or stopped.
    #[error(transparent)]
    Sys(#[from] danki_sys::Error),
    /// A file or thread of the test's own could not be made.
    #[error("cannot prepare the test: {0}")]
    Io(#[from] std::io::Error),
    /// The event is no JSON.
    #[error("cannot encode the event: {0}")]
    Json(#[from] serde_json::Error),
    /// Something took longer than anything in a test may.
    #[error("{what} took longer than {seconds} s")]
    Late {
        /// What was waited for.
        what: &'static str,
        /// For how long.
        seconds: u64,
    },
    /// A directory holds no function.
    #[error("no function in {}", .0.display())]
    NoFunction(PathBuf),
}

impl From<danki_lab::BadInput> for Error {
    fn from(bad: danki_lab::BadInput) -> Error {
        Error::Lab(bad.into())
    }
}
