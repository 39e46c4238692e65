//! The words of an env's life: states, facts and actions.

use crate::crew::{ExtensionId, Registration};
use crate::{Exit, RequestId};

/// Which kind of initialisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The init phase of a new env: CPU boost, own time limit.
    Init,
    /// Inside an invocation, after a failure: no boost, the function's timeout.
    Invoke,
}

/// Where the env is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The sandbox is being made.
    Creating,
    /// The runtime starts and loads the function.
    Initializing {
        /// Which kind of init.
        phase: Phase,
    },
    /// Frozen, the runtime waits in `/next`.
    Idle,
    /// An event was delivered.
    Busy {
        /// The invocation.
        request: RequestId,
        /// What the caller was told, once it was.
        answered: Option<Ending>,
    },
    /// Processes are being killed.
    Resetting,
    /// No process runs, `/tmp` is kept; the next dispatch initialises again.
    Down,
    /// Gone.
    Ended,
}

/// A fact that the driver reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The sandbox exists.
    Created,
    /// An invocation is placed on this env. Legal in any state; refused if the env has one already or is ending.
    Dispatch(RequestId),
    /// The runtime asked for the next event.
    NextRequested,
    /// The runtime posted a response.
    Response(RequestId),
    /// The runtime posted an error, or the Runtime API made one of a response that is too large.
    Error(RequestId),
    /// The runtime posted to `/init/error`.
    InitError,
    /// The runtime's process ended.
    ProcessExited(Exit),
    /// An extension registered.
    ExtensionRegistered(Registration),
    /// An extension asked for its next event.
    ExtensionNext(ExtensionId),
    /// An extension posted an error. Its process, or the runtime's, is to end now; that is when something follows from it.
    ExtensionFault(ExtensionFault),
    /// An external extension's process ended.
    ExtensionExited(Exit),
    /// A file of `/opt/extensions` cannot be executed, or there are too many.
    ExtensionNotLaunched,
    /// The kernel killed a process of the env for lack of memory (report it before the exit it causes).
    OutOfMemory,
    /// [`Timer::Init`] fired.
    InitTimeout,
    /// [`Timer::Invoke`] fired.
    InvokeTimeout(RequestId),
    /// After [`Action::Kill`]: nothing of it runs any more.
    ProcessesGone,
    /// The env has been idle for its whole idle lifetime.
    IdleExpired,
    /// End it as soon as it has nothing to do.
    Retire,
    /// The sandbox cannot be made, is broken or must go at once.
    SandboxFailed,
}

/// Why something did not come to its regular end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// `/init/error` was posted; its body is the payload.
    InitError,
    /// The runtime's process ended.
    Exit(Exit),
    /// An extension's process ended, or the runtime's after one of its extensions had posted an error.
    Extension(ExtensionFault, Exit),
    /// An extension could not be started.
    ExtensionLaunch,
    /// The memory limit was hit.
    OutOfMemory,
    /// A time limit passed.
    Timeout,
    /// The sandbox itself failed.
    Sandbox,
}

/// What an extension said before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionFault {
    /// Nothing.
    Crash,
    /// It posted to `/extension/init/error`.
    InitError,
    /// It posted to `/extension/exit/error`.
    ExitError,
}

/// How an invocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the posted response.
    Response,
    /// With the posted error.
    FunctionError,
    /// The platform ended it; the payload is [`crate::platform_error::payload`].
    Failed(Failure),
}

/// Why an env is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Idle for too long.
    Spindown,
    /// Asked to retire.
    Retired,
    /// The sandbox failed.
    Failure,
}

/// A clock that the driver starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timer {
    /// [`crate::limits::INIT_LIMIT_MS`], then [`Input::InitTimeout`].
    Init,
    /// The function's timeout, then [`Input::InvokeTimeout`].
    Invoke(RequestId),
}

/// What the driver does, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start the processes of all external extensions (with the CPU boost only in [`Phase::Init`]).
    StartExtensions(Phase),
    /// Start the runtime's process (with the CPU boost only in [`Phase::Init`]).
    StartRuntime(Phase),
    /// Start a clock.
    Arm(Timer),
    /// Init ended; on failure write INIT_REPORT.
    InitEnded {
        /// Which kind of init.
        phase: Phase,
        /// Why it failed, if it did.
        failure: Option<Failure>,
    },
    /// Stop all processes and hold the env's network.
    Freeze,
    /// Let processes run and held packets go.
    Thaw,
    /// Write START.
    Begin(RequestId),
    /// Answer `/next` with the event; extensions that want it get theirs at the same moment.
    Deliver(RequestId),
    /// Give the caller its answer.
    AnswerCaller(RequestId, Ending),
    /// End all processes in the order of [`crate::shutdown`], keep the sandbox; then [`Input::ProcessesGone`].
    Kill,
    /// Write END and REPORT.
    Report(RequestId, Ending),
    /// This env does not take the invocation: place it elsewhere.
    Refuse(RequestId),
    /// Remove the env.
    Destroy(EndReason),
}
