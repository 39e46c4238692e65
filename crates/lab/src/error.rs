//! What can go wrong around a run, in the user's words: what failed, the value, what is allowed, and what to do next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A mistake in something the user wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadInput {
    /// `file:line`, a file, or a directory; empty if there is no such place.
    pub place: String,
    /// What is wrong, with the value and what is allowed.
    pub what: String,
    /// The next step.
    pub hint: Option<String>,
}

impl BadInput {
    /// A mistake without a place.
    pub fn new(what: impl Into<String>) -> BadInput {
        BadInput { place: String::new(), what: what.into(), hint: None }
    }

    /// The same mistake, found there.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> BadInput {
        self.place = place.to_string();
        self
    }

    /// The same mistake, with the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> BadInput {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for BadInput {}

/// Whose fault it is; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The user's input.
    Input,
    /// This machine lacks something.
    Machine,
}

/// A run, calibration or validation could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user's input is wrong.
    #[error(transparent)]
    Input(#[from] BadInput),
    /// This machine cannot do the run faithfully.
    #[error("{what}")]
    Demand {
        /// What is asked for, and what there is.
        what: String,
    },
    /// CPU quotas cannot be scaled to this machine's core.
    #[error(transparent)]
    Scale(#[from] danki_model::ScaleError),
    /// A file or directory of the run could not be written or read.
    #[error("cannot {verb} {}: {source}", .path.display())]
    File {
        /// What was tried.
        verb: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The kernel or the keeper refused.
    #[error(transparent)]
    Sys(#[from] danki_sys::Error),
    /// The link refused.
    #[error(transparent)]
    Link(#[from] danki_link::Error),
    /// The region refused.
    #[error(transparent)]
    Region(#[from] danki_region::Error),
    /// The database refused.
    #[error(transparent)]
    Database(#[from] danki_database::Error),
    /// The host refused.
    #[error(transparent)]
    Host(#[from] danki_host::Error),
    /// An invocation could not even be tried.
    #[error("variant {variant:?}: {source}")]
    Invoke {
        /// Which variant.
        variant: String,
        /// Why.
        source: danki_host::Error,
    },
    /// Provisioned concurrency could not be asked for.
    #[error("variant {variant:?}: provisioned concurrency: {source}")]
    Refused {
        /// Which variant.
        variant: String,
        /// Why.
        source: danki_host::Refused,
    },
    /// Provisioned concurrency could not be allocated.
    #[error("variant {variant:?}: provisioned concurrency failed: {reason}")]
    Unprovisioned {
        /// Which variant.
        variant: String,
        /// AWS's `StatusReason`.
        reason: &'static str,
    },
    /// A part of danki did not do what it must.
    #[error("danki is at fault: {0}")]
    Broken(&'static str),
    /// An interpreter that a measurement needs did not do its work.
    #[error("{program} failed: {problem}")]
    Interpreter {
        /// Which program.
        program: String,
        /// What it said.
        problem: String,
    },
}

impl Error {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Database(error) if error.is_input() => Fault::Input,
            Error::Input(_) | Error::Scale(_) | Error::Host(danki_host::Error::BadFunction { .. }) => {
                Fault::Input
            }
            _ => Fault::Machine,
        }
    }

    /// The next step, if one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Input(bad) => bad.hint.clone(),
            Error::Demand { .. } => {
                Some("ask for less (fewer clients, a smaller memory size), or --force".to_owned())
            }
            Error::Host(danki_host::Error::InterpreterMissing { what, .. }) => {
                Some(format!("install {what} where it can be found, or use a function of another runtime"))
            }
            Error::Database(error) => error.hint(),
            Error::Unprovisioned { .. } => Some(
                "`danki run` shows what the function's init prints; its log is in events.jsonl".to_owned(),
            ),
            Error::Sys(_) => Some("`danki doctor` says what this machine lacks".to_owned()),
            _ => None,
        }
    }
}

/// Names the file in an IO error.
pub fn file(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::File { verb, path, source }
}
