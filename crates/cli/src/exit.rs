//! How danki ends: exit codes, and errors in words.

use danki_lab::Fault;
use std::process::ExitCode;

/// Exit codes (DESIGN §12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is fine.
    Fine = 0,
    /// A published figure or a budget was missed.
    Missed = 1,
    /// Bad usage or input.
    Usage = 2,
    /// This machine lacks something.
    Machine = 3,
    /// The function failed.
    Function = 4,
    /// Interrupted (128 + SIGINT, as shells have it).
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub struct Failure {
    /// What failed, with the value and what is allowed.
    pub what: String,
    /// The next step.
    pub hint: Option<String>,
    /// How the process ends.
    pub exit: Exit,
}

impl Failure {
    /// Something the user got wrong.
    pub fn usage(what: impl Into<String>) -> Failure {
        Failure { what: what.into(), hint: None, exit: Exit::Usage }
    }

    /// Something this machine lacks.
    pub fn machine(what: impl Into<String>) -> Failure {
        Failure { what: what.into(), hint: None, exit: Exit::Machine }
    }

    /// With the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

impl From<danki_lab::Error> for Failure {
    fn from(error: danki_lab::Error) -> Failure {
        let exit = match error.fault() {
            Fault::Input => Exit::Usage,
            Fault::Machine => Exit::Machine,
        };
        Failure { what: error.to_string(), hint: error.hint(), exit }
    }
}

impl From<danki_lab::BadInput> for Failure {
    fn from(bad: danki_lab::BadInput) -> Failure {
        danki_lab::Error::from(bad).into()
    }
}

impl From<danki_runview::Error> for Failure {
    fn from(error: danki_runview::Error) -> Failure {
        let hint = error.hint();
        Failure { hint, ..Failure::usage(error.to_string()) }
    }
}

impl From<danki_sys::Error> for Failure {
    fn from(error: danki_sys::Error) -> Failure {
        Failure::machine(error.to_string()).hint("`danki doctor` says what this machine lacks")
    }
}
