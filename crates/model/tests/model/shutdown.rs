//! The end of an env with extensions: the orders of each case, then every promise under arbitrary facts.

use danki_model::crew::{ExtensionId, ExtensionKind, Registration};
use danki_model::lifecycle::{
    Action, Ending, ExtensionFault, Failure, Input, Lifecycle, Phase, State, Timer,
};
use danki_model::shutdown::{EXTERNAL_BUDGET_MS, Shutdown, ShutdownFact, ShutdownOrder};
use danki_model::{Exit, RequestId, platform_error};
use proptest::prelude::*;

fn external(n: u32, invoke: bool, shutdown: bool) -> Registration {
    Registration { id: ExtensionId(n), kind: ExtensionKind::External, invoke, shutdown }
}

fn internal(n: u32, invoke: bool) -> Registration {
    Registration { id: ExtensionId(n), kind: ExtensionKind::Internal, invoke, shutdown: false }
}

fn id(n: u32) -> RequestId {
    RequestId(n.to_string())
}

/// An env whose init is under way, with these extensions registered.
fn registered(members: &[Registration]) -> Lifecycle {
    let externals = members.iter().filter(|m| m.kind == ExtensionKind::External).count();
    let mut env = Lifecycle::with_extensions(externals);
    env.step(Input::Created);
    members.iter().for_each(|m| drop(env.step(Input::ExtensionRegistered(*m))));
    env
}

/// … and idle.
fn idle(members: &[Registration]) -> Lifecycle {
    let mut env = registered(members);
    members.iter().for_each(|m| drop(env.step(Input::ExtensionNext(m.id))));
    env.step(Input::NextRequested);
    assert_eq!(env.state(), &State::Idle);
    env
}

#[test]
fn the_runtime_starts_after_the_registrations_and_init_ends_when_all_wait() {
    let mut env = Lifecycle::with_extensions(2);
    let ended = Action::InitEnded { phase: Phase::Init, failure: None };
    for (input, expect) in [
        (Input::Created, vec![Action::Arm(Timer::Init), Action::StartExtensions(Phase::Init)]),
        (Input::ExtensionRegistered(external(1, true, true)), vec![]),
        (Input::ExtensionNext(ExtensionId(1)), vec![]),
        (Input::ExtensionRegistered(external(2, false, false)), vec![Action::StartRuntime(Phase::Init)]),
        (Input::ExtensionRegistered(internal(3, false)), vec![]),
        (Input::NextRequested, vec![]),
        (Input::ExtensionNext(ExtensionId(3)), vec![]),
        (Input::ExtensionNext(ExtensionId(2)), vec![ended, Action::Freeze]),
    ] {
        assert_eq!(env.step(input.clone()), expect, "{input:?}");
    }
}

#[test]
fn work_after_the_answer_is_part_of_the_invocation() {
    let mut env = idle(&[external(1, true, false), external(2, false, true)]);
    env.step(Input::Dispatch(id(1)));
    assert_eq!(env.step(Input::ExtensionNext(ExtensionId(2))), [], "it got no event");
    env.step(Input::Response(id(1)));
    assert_eq!(env.step(Input::NextRequested), [], "the extension still works");
    let over = [Action::Freeze, Action::Report(id(1), Ending::Response)];
    assert_eq!(env.step(Input::ExtensionNext(ExtensionId(1))), over);
    env.step(Input::Dispatch(id(2)));
    assert_eq!(env.step(Input::ExtensionNext(ExtensionId(1))), [], "the runtime still works");
    env.step(Input::Response(id(2)));
    let timeout = Ending::Failed(Failure::Timeout);
    let late = [Action::Kill, Action::Report(id(2), timeout)];
    assert_eq!(env.step(Input::InvokeTimeout(id(2))), late, "answered, but it never came to rest");
}

#[test]
fn an_extension_that_ends_fails_what_is_under_way() {
    let check = |inputs: &[Input], error_type: &str, message: &str| {
        let mut env = idle(&[external(1, true, true)]);
        env.step(Input::Dispatch(id(1)));
        let last = inputs.iter().map(|input| env.step(input.clone())).last().expect("not empty");
        let Some(Action::AnswerCaller(_, Ending::Failed(failure))) = last.first() else {
            panic!("{inputs:?}: {last:?}")
        };
        assert_eq!(platform_error::error_type(*failure), Some(error_type));
        let payload = platform_error::payload(*failure, &id(1), 3_000).expect("the platform's");
        assert_eq!(
            payload,
            format!("{{\"errorType\":\"{error_type}\",\"errorMessage\":\"RequestId: 1 Error: {message}\"}}")
        );
        env.step(Input::ProcessesGone);
        let again = env.step(Input::Dispatch(id(2)));
        let invoke = Action::Arm(Timer::Invoke(id(2)));
        assert_eq!(again, [invoke, Action::StartExtensions(Phase::Invoke)]);
    };
    let exited = |code| Input::ExtensionExited(Exit::Code(code));
    check(&[exited(0)], "Extension.Crash", "exit code 0");
    check(&[exited(1)], "Extension.Crash", "exit status 1");
    check(&[Input::ExtensionExited(Exit::Signal(9))], "Extension.Crash", "signal: killed");
    let said = Input::ExtensionFault;
    check(&[said(ExtensionFault::InitError), exited(1)], "Extension.InitError", "exit status 1");
    check(&[said(ExtensionFault::ExitError), exited(1)], "Extension.ExitError", "exit status 1");
    let internal = Input::ProcessExited(Exit::Code(1));
    check(&[said(ExtensionFault::ExitError), internal], "Extension.ExitError", "exit status 1");
}

#[test]
fn an_extension_that_cannot_start_fails_init() {
    let mut env = Lifecycle::with_extensions(1);
    env.step(Input::Created);
    let failed = Action::InitEnded { phase: Phase::Init, failure: Some(Failure::ExtensionLaunch) };
    assert_eq!(env.step(Input::ExtensionNotLaunched), [failed, Action::Kill]);
}

const ONE: ExtensionId = ExtensionId(1);
const TWO: ExtensionId = ExtensionId(2);

#[test]
fn without_extensions_there_is_no_mercy() {
    let (shutdown, orders) = Shutdown::begin(idle(&[]).crew(), true, &[]);
    assert_eq!((orders, shutdown.deadline_ms()), (vec![ShutdownOrder::KillAll], None));
}

#[test]
fn a_runtime_with_an_internal_extension_gets_500_ms() {
    for last in [ShutdownFact::RuntimeGone, ShutdownFact::Elapsed] {
        let (mut shutdown, orders) = Shutdown::begin(idle(&[internal(1, false)]).crew(), true, &[]);
        assert_eq!((orders, shutdown.deadline_ms()), (vec![ShutdownOrder::TermRuntime], Some(500)));
        assert_eq!(shutdown.step(last), [ShutdownOrder::KillAll]);
    }
}

#[test]
fn external_extensions_hear_of_it_when_the_runtime_is_gone() {
    let env = idle(&[external(1, true, true), external(2, true, false)]);
    let (mut shutdown, orders) = Shutdown::begin(env.crew(), true, &[ONE, TWO]);
    assert_eq!((orders, shutdown.deadline_ms()), (vec![ShutdownOrder::TermRuntime], Some(300)));
    assert_eq!(shutdown.step(ShutdownFact::Elapsed), [ShutdownOrder::KillRuntime]);
    let notified = [ShutdownOrder::Notify(vec![ONE]), ShutdownOrder::KillExtensions(vec![TWO])];
    assert_eq!(shutdown.step(ShutdownFact::RuntimeGone), notified);
    assert_eq!(shutdown.deadline_ms(), Some(2_000));
    assert_eq!(shutdown.step(ShutdownFact::ExtensionGone(TWO)), []);
    assert_eq!(shutdown.step(ShutdownFact::ExtensionGone(ONE)), [ShutdownOrder::KillAll]);
    let env = idle(&[external(1, true, true), internal(2, false)]);
    assert_eq!(Shutdown::begin(env.crew(), true, &[ONE]).0.deadline_ms(), Some(500));
    assert_eq!(Shutdown::begin(env.crew(), true, &[]).1, [ShutdownOrder::TermRuntime]);
    assert_eq!(Shutdown::begin(env.crew(), false, &[]).1, [ShutdownOrder::KillAll]);
}

fn members() -> impl Strategy<Value = Vec<Registration>> {
    let one = (any::<bool>(), any::<bool>(), any::<bool>());
    prop::collection::vec(one, 0..10).prop_map(|all| {
        let member = |(n, (outside, invoke, shutdown))| match outside {
            true => external(n, invoke, shutdown),
            false => internal(n, invoke),
        };
        (0..).zip(all).map(member).collect()
    })
}

proptest! {
    #[test]
    fn every_shutdown_ends_within_its_budget_and_in_order(
        members in members(),
        runtime in any::<bool>(),
        facts in prop::collection::vec((0_usize..4, 0_u32..10), 0..40),
    ) {
        let env = registered(&members);
        let running: Vec<ExtensionId> =
            members.iter().filter(|m| m.kind == ExtensionKind::External).map(|m| m.id).collect();
        let (mut shutdown, mut orders) = Shutdown::begin(env.crew(), runtime, &running);
        let mut alive = runtime;
        let (mut killed_all, mut notified) = (0, 0);
        let mut see = |orders: &[ShutdownOrder], alive: bool| {
            for order in orders {
                match order {
                    ShutdownOrder::Notify(ids) => {
                        assert!(!alive, "SHUTDOWN while the runtime lives");
                        assert!(ids.iter().all(|id| members.iter().any(|m| m.id == *id && m.shutdown)));
                        notified += 1;
                    }
                    ShutdownOrder::KillAll => killed_all += 1,
                    _ => assert_eq!(killed_all, 0, "{order:?} after the end"),
                }
            }
            assert!(killed_all <= 1 && notified <= 1);
            killed_all
        };
        see(&orders, alive);
        for (kind, n) in facts {
            let fact = match kind {
                0 if alive => {
                    alive = false;
                    ShutdownFact::RuntimeGone
                }
                1 => ShutdownFact::Elapsed,
                _ => ShutdownFact::ExtensionGone(ExtensionId(n)),
            };
            orders = shutdown.step(fact);
            see(&orders, alive);
        }
        let mut last = 0;
        while let Some(deadline) = shutdown.deadline_ms() {
            prop_assert!(deadline >= last && deadline <= EXTERNAL_BUDGET_MS);
            last = deadline;
            orders = shutdown.step(ShutdownFact::Elapsed);
            see(&orders, alive);
        }
        prop_assert_eq!(see(&[], alive), 1, "everything is killed in the end, once");
    }
}
