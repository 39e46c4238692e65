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
//! Extensions (`lambda-platform.md` §2): external ones start before the runtime, which starts when all of them have registered. An init
//! ends when the runtime and every extension have asked for an event, an invocation when the runtime and those that got its event have.
//! A process that ends ends both; so the work that an extension does after the answer is part of the invocation.
//!
//! The driver performs the actions in order and feeds what happens back. Facts that no longer matter (a timer that
//! fires late, an exit during a reset) are ignored here, so the driver need not cancel anything to be correct.

mod words;

pub use words::{Action, EndReason, Ending, ExtensionFault, Failure, Input, Phase, State, Timer};

use crate::RequestId;
use crate::crew::{Crew, Registration};

/// One env's state. See the module's header for the machine.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    state: State,
    waiting: Option<RequestId>,
    retiring: bool,
    crew: Crew,
    /// The runtime's process was started.
    runtime_started: bool,
    /// The runtime waits in `/next`.
    runtime_waits: bool,
    fault: Option<ExtensionFault>,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Lifecycle::new()
    }
}

impl Lifecycle {
    /// An env whose sandbox is about to be made, without extensions.
    pub fn new() -> Self {
        Lifecycle::with_extensions(0)
    }

    /// An env with so many external extensions.
    pub fn with_extensions(externals: usize) -> Self {
        Lifecycle {
            state: State::Creating,
            waiting: None,
            retiring: false,
            crew: Crew::expecting(externals),
            runtime_started: false,
            runtime_waits: false,
            fault: None,
        }
    }

    /// Its extensions.
    pub fn crew(&self) -> &Crew {
        &self.crew
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
            (Input::ProcessExited(exit), _) => match self.fault {
                Some(fault) => self.failed(Failure::Extension(fault, exit)),
                None => self.failed(Failure::Exit(exit)),
            },
            (Input::ExtensionRegistered(extension), _) => self.registered(extension),
            (Input::ExtensionNext(id), _) => {
                self.crew.asked(id);
                self.settle()
            }
            (Input::ExtensionFault(fault), _) => {
                self.fault.get_or_insert(fault);
                Vec::new()
            }
            (Input::ExtensionExited(exit), _) => {
                self.failed(Failure::Extension(self.fault.unwrap_or(ExtensionFault::Crash), exit))
            }
            (Input::ExtensionNotLaunched, _) => self.failed(Failure::ExtensionLaunch),
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
        (self.runtime_started, self.runtime_waits, self.fault) = (false, false, None);
        let first = match self.crew.externals() {
            0 => self.start_runtime(phase),
            _ => Action::StartExtensions(phase),
        };
        vec![Action::Arm(timer), first]
    }

    fn start_runtime(&mut self, phase: Phase) -> Action {
        self.runtime_started = true;
        Action::StartRuntime(phase)
    }

    fn registered(&mut self, extension: Registration) -> Vec<Action> {
        let State::Initializing { phase } = self.state else { return Vec::new() };
        self.crew.register(extension);
        match !self.runtime_started && self.crew.all_registered() {
            true => vec![self.start_runtime(phase)],
            false => Vec::new(),
        }
    }

    /// `arm` is false when the invocation's clock already runs: a suppressed init is part of its time.
    fn deliver(&mut self, request: RequestId, arm: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        if arm {
            actions.push(Action::Arm(Timer::Invoke(request.clone())));
        }
        actions.extend([Action::Begin(request.clone()), Action::Deliver(request.clone())]);
        self.runtime_waits = false;
        self.crew.invoke();
        self.state = State::Busy { request, answered: None };
        actions
    }

    /// While an event is unanswered, the Runtime API repeats it by itself; that is no step of the env's life.
    fn next_requested(&mut self) -> Vec<Action> {
        match self.state {
            State::Initializing { .. } => self.runtime_waits = self.runtime_started,
            State::Busy { answered: Some(_), .. } => self.runtime_waits = true,
            _ => return Vec::new(),
        }
        self.settle()
    }

    /// Somebody began to wait: if everybody does, an init or an invocation is over.
    fn settle(&mut self) -> Vec<Action> {
        if !self.runtime_waits || !self.crew.all_wait() {
            return Vec::new();
        }
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
        self.crew.reset();
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
