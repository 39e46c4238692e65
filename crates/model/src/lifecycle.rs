//! The life of one execution environment as a pure state machine: facts in, actions out.
//!
//! ```text
//! Creating ─Created→ Initializing{Init} ─NextRequested→ Idle (frozen) ─Dispatch→ Busy ─Response, NextRequested→ Idle
//!                        │ exit, error, 10 s                │ exit                 │ exit, timeout, out of memory
//!                        └───────────────→ Resetting ←──────┴──────────────────────┘
//!                                              └─ProcessesGone→ Down ─Dispatch→ Initializing{Invoke} → Busy
//! ```
//!
//! A reset keeps the sandbox and `/tmp` and kills the processes; the next dispatch initialises again *inside* the
//! invocation ("suppressed init"), under the function's own timeout and without the CPU boost. A failed init on the
//! caller's path is retried at once in the same way; if that fails too, the invocation fails.
//! Sources: `lambda-platform.md` §1.5, §1.7, §2.7, §3 (AWS's own RAPID source and docs); order of log lines as in
//! published logs (INIT_REPORT, START, error, END, REPORT).
//!
//! The driver performs the actions in order and feeds what happens back. Facts that no longer matter (a timer that
//! fires late, an exit during a reset) are ignored here, so the driver need not cancel anything to be correct.

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
    /// The memory limit was hit.
    OutOfMemory,
    /// A time limit passed.
    Timeout,
    /// The sandbox itself failed.
    Sandbox,
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
    /// Answer `/next` with the event.
    Deliver(RequestId),
    /// Give the caller its answer.
    AnswerCaller(RequestId, Ending),
    /// Kill all processes, keep the sandbox; then [`Input::ProcessesGone`].
    Kill,
    /// Write END and REPORT.
    Report(RequestId, Ending),
    /// This env does not take the invocation: place it elsewhere.
    Refuse(RequestId),
    /// Remove the env.
    Destroy(EndReason),
}

/// One env's state. See the module's header for the machine.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    state: State,
    waiting: Option<RequestId>,
    retiring: bool,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Lifecycle::new()
    }
}

impl Lifecycle {
    /// An env whose sandbox is about to be made.
    pub fn new() -> Self {
        Lifecycle { state: State::Creating, waiting: None, retiring: false }
    }

    /// Where it is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The invocation placed on it that waits for init or reset.
    pub fn waiting(&self) -> Option<&RequestId> {
        self.waiting.as_ref()
    }

    /// It would start a dispatched invocation at once.
    pub fn is_free(&self) -> bool {
        matches!(self.state, State::Idle | State::Down) && !self.retiring
    }

    /// Takes a fact, returns what to do about it.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        match (input, &self.state) {
            (Input::Dispatch(request), _) => self.dispatch(request),
            (Input::Created, State::Creating) => self.start(Phase::Init),
            (Input::NextRequested, _) => self.next_requested(),
            (Input::Response(request), _) => self.posted(request, Ending::Response),
            (Input::Error(request), _) => self.posted(request, Ending::FunctionError),
            (Input::InitError, State::Initializing { phase }) => self.init_failed(*phase, Failure::InitError),
            (Input::ProcessExited(exit), _) => self.failed(Failure::Exit(exit)),
            (Input::OutOfMemory, _) => self.failed(Failure::OutOfMemory),
            (Input::InitTimeout, State::Initializing { phase: Phase::Init }) => {
                self.init_failed(Phase::Init, Failure::Timeout)
            }
            (Input::InvokeTimeout(request), _) => self.invoke_timeout(&request),
            (Input::ProcessesGone, State::Resetting) => self.reset_done(),
            (Input::IdleExpired, State::Idle | State::Down) => self.end(EndReason::Spindown),
            (Input::Retire, _) => self.retire(),
            (Input::SandboxFailed, _) => self.sandbox_failed(),
            _ => Vec::new(),
        }
    }

    fn dispatch(&mut self, request: RequestId) -> Vec<Action> {
        if self.waiting.is_some() || self.retiring {
            return vec![Action::Refuse(request)];
        }
        match self.state {
            State::Idle => {
                let mut actions = vec![Action::Thaw];
                actions.extend(self.deliver(request, true));
                actions
            }
            State::Down => {
                self.waiting = Some(request);
                self.start(Phase::Invoke)
            }
            State::Creating | State::Initializing { .. } | State::Resetting => {
                self.waiting = Some(request);
                Vec::new()
            }
            State::Busy { .. } | State::Ended => vec![Action::Refuse(request)],
        }
    }

    fn start(&mut self, phase: Phase) -> Vec<Action> {
        self.state = State::Initializing { phase };
        let timer = match (phase, &self.waiting) {
            (Phase::Invoke, Some(request)) => Timer::Invoke(request.clone()),
            _ => Timer::Init,
        };
        vec![Action::Arm(timer), Action::StartRuntime(phase)]
    }

    /// `arm` is false when the invocation's clock already runs: a suppressed init is part of its time.
    fn deliver(&mut self, request: RequestId, arm: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        if arm {
            actions.push(Action::Arm(Timer::Invoke(request.clone())));
        }
        actions.extend([Action::Begin(request.clone()), Action::Deliver(request.clone())]);
        self.state = State::Busy { request, answered: None };
        actions
    }

    /// While an event is unanswered, the Runtime API repeats it by itself; that is no step of the env's life.
    fn next_requested(&mut self) -> Vec<Action> {
        match self.state.clone() {
            State::Initializing { phase } => {
                let mut actions = vec![Action::InitEnded { phase, failure: None }];
                match self.waiting.take() {
                    Some(request) => actions.extend(self.deliver(request, phase == Phase::Init)),
                    None => actions.extend(self.rest()),
                }
                actions
            }
            State::Busy { request, answered: Some(ending) } => {
                let mut actions = self.rest();
                let at = actions.len().min(1);
                actions.insert(at, Action::Report(request, ending));
                actions
            }
            _ => Vec::new(),
        }
    }

    /// Freezes, and ends the env if it was asked to retire.
    fn rest(&mut self) -> Vec<Action> {
        self.state = State::Idle;
        let mut actions = vec![Action::Freeze];
        if self.retiring {
            actions.extend(self.end(EndReason::Retired));
        }
        actions
    }

    fn posted(&mut self, posted: RequestId, ending: Ending) -> Vec<Action> {
        match &mut self.state {
            State::Busy { request, answered: answered @ None } if *request == posted => {
                *answered = Some(ending);
                vec![Action::AnswerCaller(posted, ending)]
            }
            _ => Vec::new(),
        }
    }

    fn failed(&mut self, failure: Failure) -> Vec<Action> {
        match self.state.clone() {
            State::Initializing { phase } => self.init_failed(phase, failure),
            State::Busy { request, answered } => self.invocation_failed(request, answered, failure),
            State::Idle => {
                self.state = State::Resetting;
                vec![Action::Thaw, Action::Kill]
            }
            State::Creating | State::Resetting | State::Down | State::Ended => Vec::new(),
        }
    }

    fn init_failed(&mut self, phase: Phase, failure: Failure) -> Vec<Action> {
        let mut actions = vec![Action::InitEnded { phase, failure: Some(failure) }];
        match self.waiting.take() {
            Some(request) if phase == Phase::Invoke => {
                actions.push(Action::Begin(request.clone()));
                actions.extend(self.invocation_failed(request, None, failure));
            }
            waiting => {
                self.waiting = waiting;
                self.state = State::Resetting;
                actions.push(Action::Kill);
            }
        }
        actions
    }

    fn invocation_failed(
        &mut self,
        request: RequestId,
        answered: Option<Ending>,
        failure: Failure,
    ) -> Vec<Action> {
        let ending = Ending::Failed(failure);
        let mut actions = Vec::new();
        if answered.is_none() {
            actions.push(Action::AnswerCaller(request.clone(), ending));
        }
        self.state = State::Resetting;
        actions.extend([Action::Kill, Action::Report(request, ending)]);
        actions
    }

    fn invoke_timeout(&mut self, timed_out: &RequestId) -> Vec<Action> {
        match self.state.clone() {
            State::Busy { request, answered } if request == *timed_out => {
                self.invocation_failed(request, answered, Failure::Timeout)
            }
            State::Initializing { phase: Phase::Invoke } if self.waiting.as_ref() == Some(timed_out) => {
                self.init_failed(Phase::Invoke, Failure::Timeout)
            }
            _ => Vec::new(),
        }
    }

    fn reset_done(&mut self) -> Vec<Action> {
        self.state = State::Down;
        match (&self.waiting, self.retiring) {
            (Some(_), _) => self.start(Phase::Invoke),
            (None, true) => self.end(EndReason::Retired),
            (None, false) => Vec::new(),
        }
    }

    fn retire(&mut self) -> Vec<Action> {
        if self.state == State::Ended {
            return Vec::new();
        }
        self.retiring = true;
        let has_work = self.waiting.is_some() || matches!(self.state, State::Busy { .. });
        if has_work { Vec::new() } else { self.end(EndReason::Retired) }
    }

    fn sandbox_failed(&mut self) -> Vec<Action> {
        if self.state == State::Ended {
            return Vec::new();
        }
        let ending = Ending::Failed(Failure::Sandbox);
        let mut actions = Vec::new();
        if let State::Busy { request, answered } = self.state.clone() {
            if answered.is_none() {
                actions.push(Action::AnswerCaller(request.clone(), ending));
            }
            actions.push(Action::Report(request, ending));
        }
        if let Some(request) = self.waiting.take() {
            actions.push(Action::AnswerCaller(request, ending));
        }
        actions.extend(self.end(EndReason::Failure));
        actions
    }

    fn end(&mut self, reason: EndReason) -> Vec<Action> {
        self.state = State::Ended;
        vec![Action::Destroy(reason)]
    }
}
