//! The fleet's rules: paths by name, then every promise under arbitrary traffic, settings and losses.

use danki_model::EnvId;
use danki_model::concurrency::{
    Action, EndReason, Fleet, Forced, Input, Refused, Rules, Throttle, Ticket, VersionId,
};

const S: u64 = 1_000_000_000;

fn rules() -> Rules {
    Rules {
        account_limit: 1_000,
        max_envs: 5_000,
        idle_ttl_ns: 360 * S,
        settle_ns: 84 * S,
        provisioned_age_ns: 3_600 * S,
    }
}

fn arrive(
    fleet: &mut Fleet,
    now_ns: u64,
    ticket: u64,
    version: VersionId,
    forced: Option<Forced>,
) -> Vec<Action> {
    fleet.step(now_ns, Input::Arrive { ticket: Ticket(ticket), version, forced, asynchronous: false })
}

fn run(ticket: u64, env: u32, new: bool) -> Action {
    Action::Run { ticket: Ticket(ticket), env: EnvId(env), new, spillover: false }
}

/// Throttles of `n` arrivals at once, by reason.
fn burst(fleet: &mut Fleet, version: VersionId, n: u64) -> (usize, Vec<Throttle>) {
    let actions: Vec<Action> = (0..n).flat_map(|ticket| arrive(fleet, 0, ticket, version, None)).collect();
    let throttled = actions.iter().filter_map(|action| match action {
        Action::Throttle(_, reason) => Some(*reason),
        _ => None,
    });
    let throttled: Vec<Throttle> = throttled.collect();
    (actions.len() - throttled.len(), throttled)
}

#[test]
fn reserved_concurrency_is_a_ceiling() {
    let mut fleet = Fleet::new(rules(), 0);
    let version = fleet.deploy("f", 0);
    fleet.reserve(0, "f", Some(50)).expect("allowed");
    let (run, throttled) = burst(&mut fleet, version, 500);
    assert_eq!((run, throttled.len(), fleet.envs().count()), (50, 450, 50));
    assert!(throttled.iter().all(|r| *r == Throttle::ReservedFunctionConcurrentInvocationLimitExceeded));
    // And a guarantee: the others share what is left.
    let other = fleet.deploy("g", 0);
    let (run, throttled) = burst(&mut fleet, other, 1_000);
    assert_eq!((run, throttled.len()), (950, 50));
    assert!(throttled.iter().all(|r| *r == Throttle::ConcurrentInvocationLimitExceeded));
}

#[test]
fn no_reserved_concurrency_switches_a_function_off() {
    let mut fleet = Fleet::new(rules(), 0);
    let version = fleet.deploy("f", 0);
    fleet.reserve(0, "f", Some(0)).expect("allowed");
    let off = Throttle::ReservedFunctionConcurrentInvocationLimitExceeded;
    assert_eq!(burst(&mut fleet, version, 3), (0, vec![off; 3]));
    fleet.reserve(0, "f", None).expect("allowed");
    assert_eq!(burst(&mut fleet, version, 3).0, 3);
}

#[test]
fn requests_per_second_are_ten_times_the_concurrency() {
    let mut fleet = Fleet::new(rules(), 0);
    let version = fleet.deploy("f", 0);
    fleet.reserve(0, "f", Some(1)).expect("allowed");
    let mut one = |now_ns, ticket| {
        let actions = arrive(&mut fleet, now_ns, ticket, version, None);
        match actions[0] {
            Action::Run { env, .. } => {
                fleet.step(now_ns, Input::Freed(env));
                None
            }
            Action::Throttle(_, reason) => Some(reason),
            _ => panic!("{actions:?}"),
        }
    };
    let reasons: Vec<_> = (0..20).filter_map(|ticket| one(0, ticket)).collect();
    assert_eq!(reasons, vec![Throttle::ReservedFunctionInvocationRateLimitExceeded; 10]);
    assert_eq!(one(S / 10, 99), None, "a tenth of a second refills one");
}

#[test]
fn a_function_grows_by_a_thousand_then_by_a_hundred_a_second() {
    let mut fleet = Fleet::new(Rules { account_limit: 3_000, ..rules() }, 0);
    let version = fleet.deploy("f", 0);
    let (run, throttled) = burst(&mut fleet, version, 1_200);
    assert_eq!((run, throttled[0]), (1_000, Throttle::ConcurrentInvocationLimitExceeded));
    let later = (0..200)
        .filter(|n| arrive(&mut fleet, S, 5_000 + n, version, None)[0] == run_new(5_000 + n, 1_001 + n));
    assert_eq!(later.count(), 100);
}

fn run_new(ticket: u64, env: u64) -> Action {
    run(ticket, u32::try_from(env).expect("small"), true)
}

#[test]
fn the_last_used_environment_serves_and_the_idle_ones_end() {
    let mut fleet = Fleet::new(rules(), 0);
    let version = fleet.deploy("f", 0);
    assert_eq!(arrive(&mut fleet, 0, 1, version, None), [run(1, 1, true)]);
    assert_eq!(arrive(&mut fleet, 0, 2, version, None), [run(2, 2, true)]);
    fleet.step(S, Input::Freed(EnvId(2)));
    fleet.step(2 * S, Input::Freed(EnvId(1)));
    assert_eq!(arrive(&mut fleet, 3 * S, 3, version, None), [run(3, 1, false)]);
    assert_eq!(fleet.wake_ns(), Some(361 * S));
    assert_eq!(fleet.step(361 * S, Input::Tick), [Action::End(EnvId(2), EndReason::Spindown)]);
}

#[test]
fn states_can_be_forced() {
    let mut fleet = Fleet::new(rules(), 0);
    let version = fleet.deploy("f", 0);
    let prepare = |env| Action::Prepare {
        env: EnvId(env),
        version,
        initialization: danki_model::InitializationType::OnDemand,
    };
    // Warm without an environment: it is initialised first.
    assert_eq!(arrive(&mut fleet, 0, 1, version, Some(Forced::Warm)), [prepare(1)]);
    let prepared = Input::Prepared { env: EnvId(1), failure: None };
    assert_eq!(fleet.step(S, prepared), [run(1, 1, false)]);
    fleet.step(2 * S, Input::Freed(EnvId(1)));
    assert_eq!(arrive(&mut fleet, 3 * S, 2, version, Some(Forced::Cold)), [run(2, 2, true)]);
    // The environment waits until it has rested for long enough.
    assert_eq!(arrive(&mut fleet, 4 * S, 3, version, Some(Forced::IdleGap(30 * S))), []);
    assert_eq!(fleet.wake_ns(), Some(32 * S));
    assert_eq!(arrive(&mut fleet, 5 * S, 4, version, None), [run(4, 3, true)], "it is kept for the third");
    assert_eq!(fleet.step(32 * S, Input::Tick), [run(3, 1, false)]);
    fleet.step(33 * S, Input::Freed(EnvId(1)));
    let expired = arrive(&mut fleet, 34 * S, 5, version, Some(Forced::Expired));
    assert_eq!(expired, [Action::End(EnvId(1), EndReason::Spindown), run(5, 4, true)]);
}

#[test]
fn provisioned_concurrency_serves_when_ready_and_spills_over() {
    let mut fleet = Fleet::new(rules(), 0);
    let version = fleet.deploy("f", 0);
    let (view, actions) = fleet.provision(0, version, 1).expect("allowed");
    assert_eq!((view.status.as_str(), actions.len()), ("IN_PROGRESS", 1));
    fleet.step(2 * S, Input::Prepared { env: EnvId(1), failure: None });
    assert_eq!(arrive(&mut fleet, 3 * S, 1, version, None), [run(1, 2, true)], "not before READY");
    fleet.step(4 * S, Input::Freed(EnvId(2)));
    assert_eq!(fleet.wake_ns(), Some(86 * S));
    fleet.step(86 * S, Input::Tick);
    assert_eq!(arrive(&mut fleet, 87 * S, 2, version, None), [run(2, 1, false)]);
    let spilt = Action::Run { ticket: Ticket(3), env: EnvId(2), new: false, spillover: true };
    assert_eq!(arrive(&mut fleet, 87 * S, 3, version, None), [spilt]);
    fleet.step(88 * S, Input::Freed(EnvId(1)));
    // Idle for a week: it is replaced in time, but never ends for being idle.
    let actions = fleet.step(88 * S + 3_000 * S, Input::Tick);
    assert!(!actions.contains(&Action::End(EnvId(1), EndReason::Spindown)), "{actions:?}");
    let ends = fleet.deprovision(4_000 * S, version).expect("there is one");
    assert_eq!(ends, [Action::End(EnvId(1), EndReason::Surplus)]);
}

#[test]
fn provisioned_concurrency_that_takes_all_of_a_reservation_leaves_nothing_to_other_versions() {
    let mut fleet = Fleet::new(rules(), 0);
    let (latest, one) = (fleet.deploy("f", 0), fleet.deploy("f", 0));
    fleet.reserve(0, "f", Some(2)).expect("allowed");
    fleet.provision(0, one, 2).expect("allowed");
    let reason = Throttle::ReservedFunctionConcurrentInvocationLimitExceeded;
    assert_eq!(burst(&mut fleet, latest, 1), (0, vec![reason]));
    assert_eq!(fleet.provision(0, latest, 1), Err(Refused::AboveReserved));
    assert_eq!(
        fleet.reserve(0, "f", Some(1)),
        Err(Refused::BelowProvisioned { reserved: 1, provisioned: 2 })
    );
}

#[test]
fn a_provisioned_version_takes_ten_requests_per_second_for_each_environment() {
    let mut fleet = Fleet::new(rules(), 0);
    let version = fleet.deploy("f", 0);
    fleet.provision(0, version, 1).expect("allowed");
    fleet.step(0, Input::Prepared { env: EnvId(1), failure: None });
    fleet.step(100 * S, Input::Tick);
    let mut by_env = [0, 0];
    for ticket in 0..12 {
        let Action::Run { env, spillover, .. } = arrive(&mut fleet, 100 * S, ticket, version, None)[0] else {
            panic!("it runs")
        };
        assert_eq!(spillover, env != EnvId(1));
        by_env[usize::from(spillover)] += 1;
        fleet.step(100 * S, Input::Freed(env));
    }
    assert_eq!(by_env, [10, 2]);
}

#[test]
fn a_full_machine_lets_an_idle_environment_go() {
    let mut fleet = Fleet::new(Rules { max_envs: 2, ..rules() }, 0);
    let (f, g) = (fleet.deploy("f", 0), fleet.deploy("g", 0));
    arrive(&mut fleet, 0, 1, f, None);
    arrive(&mut fleet, 0, 2, f, None);
    let full = Action::Throttle(Ticket(3), Throttle::ConcurrentInvocationLimitExceeded);
    assert_eq!(arrive(&mut fleet, 0, 3, g, None), [full]);
    fleet.step(S, Input::Freed(EnvId(1)));
    let evicted = [Action::End(EnvId(1), EndReason::Evicted), run(4, 3, true)];
    assert_eq!(arrive(&mut fleet, S, 4, g, None), evicted);
}

#[test]
fn a_retired_version_takes_nothing_and_fails_who_waits() {
    let mut fleet = Fleet::new(rules(), 0);
    let version = fleet.deploy("f", 0);
    arrive(&mut fleet, 0, 1, version, None);
    fleet.step(0, Input::Freed(EnvId(1)));
    arrive(&mut fleet, 0, 2, version, Some(Forced::IdleGap(S)));
    let actions = fleet.step(0, Input::Retire(version));
    assert_eq!(actions, [Action::Fail(Ticket(2)), Action::End(EnvId(1), EndReason::Retired)]);
    assert_eq!(arrive(&mut fleet, 0, 3, version, None), [Action::Fail(Ticket(3))]);
    fleet.step(0, Input::Lost(EnvId(1)));
    assert_eq!(fleet.envs().count(), 0);
}
