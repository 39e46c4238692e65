//! Payloads that the platform itself returns to a synchronous caller.
//!
//! Recorded on AWS by LocalStack's validated tests (`lambda-platform.md` §1.6, §1.8). They are built as text because
//! the order of keys is part of what was recorded: platform errors put `errorType` first, the size error puts
//! `errorMessage` first.

use crate::lifecycle::{ExtensionFault, Failure};
use crate::{RequestId, limits};
use std::fmt;

/// How a process ended; displays as Lambda words it (`exit status 1`, `signal: killed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It called `exit`.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

impl fmt::Display for Exit {
    /// Words of Go's `os.ProcessState`, in which AWS's daemon is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Exit::Code(code) => return write!(f, "exit status {code}"),
            Exit::Signal(1) => "hangup",
            Exit::Signal(2) => "interrupt",
            Exit::Signal(3) => "quit",
            Exit::Signal(4) => "illegal instruction",
            Exit::Signal(6) => "aborted",
            Exit::Signal(7) => "bus error",
            Exit::Signal(8) => "floating point exception",
            Exit::Signal(9) => "killed",
            Exit::Signal(11) => "segmentation fault",
            Exit::Signal(13) => "broken pipe",
            Exit::Signal(15) => "terminated",
            Exit::Signal(other) => return write!(f, "signal: signal {other}"),
        };
        write!(f, "signal: {name}")
    }
}

/// `errorType` of a failure, as in the payload; `None` for an init error, whose type the runtime posted.
pub fn error_type(failure: Failure) -> Option<&'static str> {
    match failure {
        Failure::InitError => None,
        Failure::Exit(_) => Some("Runtime.ExitError"),
        Failure::Extension(ExtensionFault::Crash, _) => Some("Extension.Crash"),
        Failure::Extension(ExtensionFault::InitError, _) => Some("Extension.InitError"),
        Failure::Extension(ExtensionFault::ExitError, _) => Some("Extension.ExitError"),
        Failure::ExtensionLaunch => Some("Extension.LaunchError"),
        Failure::OutOfMemory => Some("Runtime.OutOfMemory"),
        Failure::Timeout => Some("Sandbox.Timedout"),
        Failure::Sandbox => Some("Sandbox.Failure"),
    }
}

/// What went wrong, without the request id: `Runtime exited with error: exit status 1`.
///
/// The text of an out-of-memory kill is the older recorded one under the newer type, that of a broken sandbox is ours.
pub fn message(failure: Failure, timeout_ms: u64) -> Option<String> {
    match failure {
        Failure::InitError => None,
        Failure::Exit(Exit::Code(0)) => Some("Runtime exited without providing a reason".to_owned()),
        Failure::Exit(exit) => Some(format!("Runtime exited with error: {exit}")),
        // As AWS's source words an extension's end.
        Failure::Extension(_, Exit::Code(0)) => Some("exit code 0".to_owned()),
        Failure::Extension(_, exit) => Some(exit.to_string()),
        Failure::ExtensionLaunch => Some("an extension could not be started".to_owned()),
        Failure::OutOfMemory => Some(format!("Runtime exited with error: {}", Exit::Signal(9))),
        Failure::Timeout => Some(timed_out(timeout_ms)),
        Failure::Sandbox => Some("The execution environment failed".to_owned()),
    }
}

/// The whole payload; `None` for an init error, where the posted body is the payload.
pub fn payload(failure: Failure, request: &RequestId, timeout_ms: u64) -> Option<String> {
    let (kind, message) = (error_type(failure)?, message(failure, timeout_ms)?);
    Some(format!(r#"{{"errorType":"{kind}","errorMessage":"RequestId: {request} Error: {message}"}}"#))
}

/// The payload when a response exceeds [`limits::RESPONSE_BYTES`]; the env survives.
pub fn response_too_large() -> String {
    format!(
        r#"{{"errorMessage":"Response payload size exceeded maximum allowed payload size ({} bytes).","errorType":"Function.ResponseSizeTooLarge"}}"#,
        limits::RESPONSE_BYTES
    )
}

/// The payload when the runtime cannot be started, e.g. a missing `bootstrap`; `why` must be free of quotes.
pub fn invalid_entrypoint(request: &RequestId, why: &str) -> String {
    let why = why.replace(['"', '\\'], "'");
    format!(
        r#"{{"errorType":"Runtime.InvalidEntrypoint","errorMessage":"RequestId: {request} Error: {why}"}}"#
    )
}

/// `Task timed out after 3.00 seconds`.
pub(crate) fn timed_out(timeout_ms: u64) -> String {
    format!("Task timed out after {}.{:02} seconds", timeout_ms / 1_000, timeout_ms % 1_000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_as_recorded() {
        let check = |failure, expect: &str| {
            let id = RequestId("ID".to_owned());
            assert_eq!(payload(failure, &id, 1_000).as_deref(), Some(expect));
        };
        check(
            Failure::Exit(Exit::Code(0)),
            r#"{"errorType":"Runtime.ExitError","errorMessage":"RequestId: ID Error: Runtime exited without providing a reason"}"#,
        );
        check(
            Failure::Exit(Exit::Code(127)),
            r#"{"errorType":"Runtime.ExitError","errorMessage":"RequestId: ID Error: Runtime exited with error: exit status 127"}"#,
        );
        check(
            Failure::Exit(Exit::Signal(9)),
            r#"{"errorType":"Runtime.ExitError","errorMessage":"RequestId: ID Error: Runtime exited with error: signal: killed"}"#,
        );
        check(
            Failure::OutOfMemory,
            r#"{"errorType":"Runtime.OutOfMemory","errorMessage":"RequestId: ID Error: Runtime exited with error: signal: killed"}"#,
        );
        check(
            Failure::Timeout,
            r#"{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: ID Error: Task timed out after 1.00 seconds"}"#,
        );
        assert_eq!(payload(Failure::InitError, &RequestId("ID".to_owned()), 1_000), None);
        assert_eq!(
            response_too_large(),
            r#"{"errorMessage":"Response payload size exceeded maximum allowed payload size (6291556 bytes).","errorType":"Function.ResponseSizeTooLarge"}"#
        );
        assert_eq!(
            invalid_entrypoint(&RequestId("ID".to_owned()), "fork/exec /var/task/bootstrap: \"x\\"),
            r#"{"errorType":"Runtime.InvalidEntrypoint","errorMessage":"RequestId: ID Error: fork/exec /var/task/bootstrap: 'x'"}"#
        );
        assert_eq!(timed_out(2_505), "Task timed out after 2.50 seconds");
    }
}
