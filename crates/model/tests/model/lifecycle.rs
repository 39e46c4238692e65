//! The env's state machine: the paths by name, then every promise under arbitrary facts.

use danki_model::crew::{ExtensionId, ExtensionKind, Registration};
use danki_model::lifecycle::{
    Action, EndReason, Ending, ExtensionFault, Failure, Input, Lifecycle, Phase, State, Timer,
};
use danki_model::{Exit, RequestId};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn id(n: u32) -> RequestId {
    RequestId(n.to_string())
}

/// Feeds inputs, compares the actions of each.
fn check(steps: &[(Input, &[Action])]) -> Lifecycle {
    let mut env = Lifecycle::new();
    for (n, (input, expect)) in steps.iter().enumerate() {
        assert_eq!(env.step(input.clone()), *expect, "step {n}: {input:?}");
    }
    env
}

fn warm() -> Vec<(Input, &'static [Action])> {
    vec![
        (Input::Created, &[Action::Arm(Timer::Init), Action::StartRuntime(Phase::Init)]),
        (Input::NextRequested, &[Action::InitEnded { phase: Phase::Init, failure: None }, Action::Freeze]),
    ]
}

#[test]
fn cold_then_warm_then_spindown() {
    let begun = |n| vec![Action::Arm(Timer::Invoke(id(n))), Action::Begin(id(n)), Action::Deliver(id(n))];
    let mut cold = vec![Action::InitEnded { phase: Phase::Init, failure: None }];
    cold.extend(begun(1));
    let mut thawed = vec![Action::Thaw];
    thawed.extend(begun(2));
    check(&[
        (Input::Dispatch(id(1)), &[]),
        (Input::Created, &[Action::Arm(Timer::Init), Action::StartRuntime(Phase::Init)]),
        (Input::NextRequested, &cold),
        (Input::Dispatch(id(9)), &[Action::Refuse(id(9))]),
        (Input::NextRequested, &[]), // the Runtime API repeats the event by itself
        (Input::Response(id(1)), &[Action::AnswerCaller(id(1), Ending::Response)]),
        (Input::Response(id(1)), &[]),
        (Input::NextRequested, &[Action::Freeze, Action::Report(id(1), Ending::Response)]),
        (Input::InvokeTimeout(id(1)), &[]), // late
        (Input::InitTimeout, &[]),
        (Input::Dispatch(id(2)), &thawed),
        (Input::Error(id(2)), &[Action::AnswerCaller(id(2), Ending::FunctionError)]),
        (Input::NextRequested, &[Action::Freeze, Action::Report(id(2), Ending::FunctionError)]),
        (Input::IdleExpired, &[Action::Destroy(EndReason::Spindown)]),
        (Input::Dispatch(id(3)), &[Action::Refuse(id(3))]),
    ]);
}

#[test]
fn a_failed_init_is_retried_inside_the_waiting_invocation() {
    let exit = Failure::Exit(Exit::Code(1));
    let env = check(&[
        (Input::Dispatch(id(1)), &[]),
        (Input::Created, &[Action::Arm(Timer::Init), Action::StartRuntime(Phase::Init)]),
        (
            Input::ProcessExited(Exit::Code(1)),
            &[Action::InitEnded { phase: Phase::Init, failure: Some(exit) }, Action::Kill],
        ),
        (Input::ProcessesGone, &[Action::Arm(Timer::Invoke(id(1))), Action::StartRuntime(Phase::Invoke)]),
        (
            Input::InitError,
            &[
                Action::InitEnded { phase: Phase::Invoke, failure: Some(Failure::InitError) },
                Action::Begin(id(1)),
                Action::AnswerCaller(id(1), Ending::Failed(Failure::InitError)),
                Action::Kill,
                Action::Report(id(1), Ending::Failed(Failure::InitError)),
            ],
        ),
        (Input::ProcessExited(Exit::Code(1)), &[]),
        (Input::ProcessesGone, &[]),
    ]);
    assert_eq!(env.state(), &State::Down);
    assert!(env.is_free());
}

#[test]
fn a_timeout_resets_and_the_next_dispatch_initialises_again() {
    let timeout = Ending::Failed(Failure::Timeout);
    let mut steps = warm();
    let after: Vec<(Input, Vec<Action>)> = vec![
        (
            Input::Dispatch(id(1)),
            vec![
                Action::Thaw,
                Action::Arm(Timer::Invoke(id(1))),
                Action::Begin(id(1)),
                Action::Deliver(id(1)),
            ],
        ),
        (
            Input::InvokeTimeout(id(1)),
            vec![Action::AnswerCaller(id(1), timeout), Action::Kill, Action::Report(id(1), timeout)],
        ),
        (Input::Dispatch(id(2)), vec![]),
        (Input::ProcessesGone, vec![Action::Arm(Timer::Invoke(id(2))), Action::StartRuntime(Phase::Invoke)]),
        (
            Input::NextRequested,
            vec![
                Action::InitEnded { phase: Phase::Invoke, failure: None },
                Action::Begin(id(2)),
                Action::Deliver(id(2)),
            ],
        ),
        (Input::Retire, vec![]),
        (Input::Response(id(2)), vec![Action::AnswerCaller(id(2), Ending::Response)]),
        (
            Input::NextRequested,
            vec![
                Action::Freeze,
                Action::Report(id(2), Ending::Response),
                Action::Destroy(EndReason::Retired),
            ],
        ),
    ];
    steps.extend(after.iter().map(|(input, actions)| (input.clone(), actions.as_slice())));
    check(&steps);
}

#[test]
fn a_crash_while_frozen_or_after_the_answer_is_not_the_callers() {
    let mut env = check(&warm());
    assert_eq!(env.step(Input::ProcessExited(Exit::Signal(9))), [Action::Thaw, Action::Kill]);
    let mut env = check(&warm());
    env.step(Input::Dispatch(id(1)));
    env.step(Input::Response(id(1)));
    let oom = Ending::Failed(Failure::OutOfMemory);
    assert_eq!(env.step(Input::OutOfMemory), [Action::Kill, Action::Report(id(1), oom)]);
}

/// What an observer of the actions alone knows; panics when a promise is broken.
#[derive(Default)]
struct Observer {
    frozen: bool,
    runs: bool,
    crew: bool,
    ready: bool,
    failed: bool,
    destroyed: bool,
    inits: u32,
    in_flight: Option<RequestId>,
    answers: BTreeMap<RequestId, u32>,
    open: Vec<RequestId>,
}

impl Observer {
    fn see(&mut self, action: &Action) {
        let refused = matches!(action, Action::Refuse(_));
        assert!(!self.destroyed || refused, "{action:?} after the end");
        match action {
            Action::StartExtensions(phase) => {
                assert!(!self.runs && !self.frozen && !self.crew);
                assert_eq!(*phase == Phase::Invoke, self.failed, "suppressed init after a failure only");
                self.crew = true;
            }
            Action::StartRuntime(phase) => {
                assert!(!self.runs && !self.frozen);
                assert_eq!(*phase == Phase::Invoke, self.failed, "suppressed init after a failure only");
                self.inits += u32::from(*phase == Phase::Init);
                assert!(self.inits <= 1);
                self.runs = true;
            }
            Action::InitEnded { failure: None, .. } => (self.ready, self.failed) = (true, false),
            Action::InitEnded { .. } => self.failed = true,
            Action::Freeze => {
                assert!(self.runs && !self.frozen);
                self.frozen = true;
            }
            Action::Thaw => {
                assert!(self.frozen);
                self.frozen = false;
            }
            Action::Begin(request) => {
                assert!(!self.open.contains(request));
                self.open.push(request.clone());
            }
            Action::Deliver(request) => {
                assert!(self.runs && self.ready && !self.frozen && self.open.contains(request));
                assert_eq!(self.in_flight.replace(request.clone()), None, "two events in flight");
            }
            Action::AnswerCaller(request, _) | Action::Refuse(request) => {
                *self.answers.entry(request.clone()).or_default() += 1;
            }
            Action::Kill => {
                assert!((self.runs || self.crew) && !self.frozen);
                (self.runs, self.crew, self.ready, self.failed) = (false, false, false, true);
            }
            Action::Report(request, _) => {
                self.in_flight = None;
                let at = self.open.iter().position(|r| r == request).expect("REPORT has its START");
                self.open.remove(at);
            }
            Action::Destroy(_) => self.destroyed = true,
            Action::Arm(_) => {}
        }
    }
}

/// Two external ones are expected in half of all runs; the third is internal.
fn extension() -> impl Strategy<Value = Registration> {
    (0_u32..3, any::<bool>(), any::<bool>()).prop_map(|(n, invoke, shutdown)| {
        let kind = if n < 2 { ExtensionKind::External } else { ExtensionKind::Internal };
        Registration { id: ExtensionId(n), kind, invoke, shutdown }
    })
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    // Dispatches get fresh ids below; other ids name one of the last dispatches or nobody.
    let request = (0_u32..6).prop_map(id);
    let one = prop_oneof![
        4 => Just(Input::Dispatch(id(0))),
        6 => Just(Input::NextRequested),
        4 => request.clone().prop_map(Input::Response),
        1 => request.clone().prop_map(Input::Error),
        2 => Just(Input::Created),
        3 => Just(Input::ProcessesGone),
        1 => Just(Input::InitError),
        1 => (0..3).prop_map(|code| Input::ProcessExited(Exit::Code(code))),
        1 => Just(Input::OutOfMemory),
        1 => Just(Input::InitTimeout),
        1 => request.prop_map(Input::InvokeTimeout),
        1 => Just(Input::IdleExpired),
        1 => Just(Input::Retire),
        1 => Just(Input::SandboxFailed),
        3 => extension().prop_map(Input::ExtensionRegistered),
        6 => (0_u32..3).prop_map(|n| Input::ExtensionNext(ExtensionId(n))),
        1 => Just(Input::ExtensionFault(ExtensionFault::InitError)),
        1 => (0..3).prop_map(|code| Input::ExtensionExited(Exit::Code(code))),
        1 => Just(Input::ExtensionNotLaunched),
    ];
    prop::collection::vec(one, 0..80)
}

/// Ids count backwards from the newest dispatch, so that most of them mean something.
fn resolve(input: Input, dispatched: &mut u32) -> Input {
    let name = |back: &RequestId| id(dispatched.wrapping_sub(back.0.parse::<u32>().expect("made above")));
    match input {
        Input::Dispatch(_) => {
            *dispatched += 1;
            Input::Dispatch(id(*dispatched))
        }
        Input::Response(back) => Input::Response(name(&back)),
        Input::Error(back) => Input::Error(name(&back)),
        Input::InvokeTimeout(back) => Input::InvokeTimeout(name(&back)),
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn promises_hold_whatever_happens(inputs in inputs(), extensions in any::<bool>()) {
        let env = Lifecycle::with_extensions(if extensions { 2 } else { 0 });
        let (mut env, mut seen, mut dispatched) = (env, Observer::default(), 0);
        // Most sequences would be over early: endings are only taken in the last quarter.
        let last = inputs.len() * 3 / 4;
        for (n, input) in inputs.into_iter().enumerate() {
            let ends = matches!(input, Input::IdleExpired | Input::Retire | Input::SandboxFailed);
            if ends && n < last {
                continue;
            }
            let input = resolve(input, &mut dispatched);
            for action in env.step(input) {
                seen.see(&action);
            }
            prop_assert_eq!(matches!(env.state(), State::Ended), seen.destroyed);
            prop_assert_eq!(matches!(env.state(), State::Idle), seen.frozen && !seen.destroyed);
        }
        for action in env.step(Input::SandboxFailed) {
            seen.see(&action);
        }
        prop_assert!(seen.destroyed);
        prop_assert!(seen.open.is_empty(), "START without REPORT: {:?}", seen.open);
        for n in 1..=dispatched {
            prop_assert_eq!(seen.answers.get(&id(n)), Some(&1), "answers of {}", n);
        }
    }
}
