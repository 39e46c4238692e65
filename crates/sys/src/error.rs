//! What can go wrong below danki, in words that name the thing and the value.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An operation of the kernel, or of a process that works for danki, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file of a cgroup did not take a value.
    #[error("cannot write {text:?} to {file}: {source}", file = .file.display())]
    Cgroup {
        /// The file.
        file: PathBuf,
        /// The value.
        text: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A CPU quota that the kernel does not take.
    #[error(
        "a CPU quota of {quota_us} µs is below the 1000 µs that the kernel accepts; hint: use a longer period or a larger memory size"
    )]
    QuotaTooSmall {
        /// What was asked for, in µs per period.
        quota_us: u64,
    },
    /// The machine lacks what was asked for.
    #[error("this machine has no usable {what}; hint: `danki doctor` says why")]
    Unavailable {
        /// What is missing.
        what: &'static str,
    },
    /// The processes of an env did not freeze.
    #[error("the processes did not freeze within {} ms", .0.as_millis())]
    NotFrozen(Duration),
    /// The plan of an env could not be applied.
    #[error("cannot create env {id}: {step}: {source}")]
    Apply {
        /// Number of the env.
        id: u32,
        /// The step that failed and its value.
        step: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A process could not be prepared.
    #[error("cannot start {program}: {step}: {source}")]
    Spawn {
        /// Program that was to be executed.
        program: String,
        /// The step that failed.
        step: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A program could not be executed.
    #[error("cannot execute {program}: {source}")]
    Exec {
        /// Path inside of the env.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The keeper, or pid 1 of an env, has ended.
    #[error("{who} has ended")]
    Gone {
        /// Which process.
        who: &'static str,
    },
    /// Somebody did not answer in time.
    #[error("{who} did not {action} within {} ms", .deadline.as_millis())]
    Late {
        /// Which process.
        who: &'static str,
        /// What was waited for.
        action: &'static str,
        /// How long.
        deadline: Duration,
    },
    /// A message between danki's own processes was not understood: a bug, or a keeper of another version.
    #[error("unreadable message from {who}: {source}")]
    Message {
        /// Who sent it.
        who: &'static str,
        /// What was wrong with it.
        source: serde_json::Error,
    },
}

/// Names the action of a system call that failed.
pub(crate) trait Trying<T> {
    fn trying(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Trying<T> for Result<T, E> {
    fn trying(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::System { action: action(), source: source.into() })
    }
}
