use super::*;

const S: u64 = 1_000_000_000;
const SETTLE: u64 = 84 * S;
const AGE: u64 = 3_600 * S;

/// A PC of `n` that takes what it asks for at `now`; ids from `from` on. Returns what it wanted.
fn satisfy(pc: &mut Provisioning, now_ns: u64, from: u32) -> Vec<Need> {
    let mut all = Vec::new();
    while let Some(need) = pc.need(now_ns) {
        if need == Need::Start {
            pc.started(EnvId(from + all.len() as u32));
        }
        all.push(need);
    }
    all
}

fn ready(n: u32) -> Provisioning {
    let mut pc = Provisioning::new(n, SETTLE, AGE, 0);
    satisfy(&mut pc, 0, 1);
    (1..=n).for_each(|env| pc.initialised(EnvId(env), 0));
    satisfy(&mut pc, 0, 100);
    satisfy(&mut pc, SETTLE, 100);
    assert_eq!(pc.view().status, ProvisionStatus::Ready);
    pc
}

fn counts(pc: &Provisioning) -> (u32, u32, u32, &'static str) {
    let view = pc.view();
    (view.requested, view.allocated, view.available, view.status.as_str())
}

#[test]
fn nothing_serves_before_all_are_there_and_settled() {
    let mut pc = Provisioning::new(2, SETTLE, AGE, 0);
    assert_eq!(satisfy(&mut pc, 0, 1), [Need::Start, Need::Start]);
    pc.initialised(EnvId(1), 2 * S);
    assert_eq!(satisfy(&mut pc, 300 * S, 9), []);
    assert_eq!(counts(&pc), (2, 1, 0, "IN_PROGRESS"));
    pc.initialised(EnvId(2), 300 * S);
    assert_eq!(satisfy(&mut pc, 300 * S, 9), []);
    assert_eq!(pc.wake_ns(), Some(300 * S + SETTLE));
    assert_eq!(satisfy(&mut pc, 299 * S + SETTLE, 9), []);
    assert_eq!(counts(&pc), (2, 2, 0, "IN_PROGRESS"));
    assert_eq!(satisfy(&mut pc, 300 * S + SETTLE, 9), [Need::Usable(EnvId(1)), Need::Usable(EnvId(2))]);
    assert_eq!(counts(&pc), (2, 2, 2, "READY"));
}

#[test]
fn environments_begin_at_a_bounded_rate() {
    let mut pc = Provisioning::new(250, SETTLE, AGE, 0);
    assert_eq!(satisfy(&mut pc, 0, 1).len(), 100);
    assert_eq!(pc.wake_ns(), Some(S / 100));
    assert_eq!(satisfy(&mut pc, S, 101).len(), 100);
    assert_eq!(satisfy(&mut pc, 2 * S, 201).len(), 50);
}

#[test]
fn a_failed_init_fails_the_allocation_and_a_new_request_tries_again() {
    let mut pc = Provisioning::new(2, SETTLE, AGE, 0);
    satisfy(&mut pc, 0, 1);
    pc.initialised(EnvId(1), S);
    pc.init_failed(EnvId(2), StatusReason::InitFailure, S);
    assert_eq!(satisfy(&mut pc, S, 9), [Need::Surplus(EnvId(1))]);
    assert_eq!(counts(&pc), (2, 0, 0, "FAILED"));
    assert_eq!(pc.view().reason.map(StatusReason::as_str), Some("FUNCTION_ERROR_INIT_FAILURE"));
    assert_eq!(pc.wake_ns(), None);
    pc.request(2);
    assert_eq!(satisfy(&mut pc, 2 * S, 9), [Need::Start, Need::Start]);
    assert_eq!(pc.view().reason, None);
}

#[test]
fn more_keeps_what_serves_and_less_lets_the_oldest_go() {
    let mut pc = ready(2);
    pc.request(3);
    assert_eq!(counts(&pc), (3, 2, 2, "IN_PROGRESS"));
    assert_eq!(satisfy(&mut pc, 200 * S, 7), [Need::Start]);
    pc.initialised(EnvId(7), 201 * S);
    satisfy(&mut pc, 201 * S, 9);
    assert_eq!(satisfy(&mut pc, 201 * S + SETTLE, 9), [Need::Usable(EnvId(7))]);
    pc.request(1);
    assert_eq!(satisfy(&mut pc, 400 * S, 9), [Need::Surplus(EnvId(1)), Need::Surplus(EnvId(2))]);
    assert_eq!(counts(&pc), (1, 1, 1, "READY"));
}

#[test]
fn an_old_one_goes_when_its_successor_is_ready() {
    let mut pc = ready(1);
    assert_eq!(pc.wake_ns(), Some(AGE));
    assert_eq!(satisfy(&mut pc, AGE, 2), [Need::Start]);
    assert_eq!(counts(&pc), (1, 1, 1, "READY"));
    pc.initialised(EnvId(2), AGE + S);
    assert_eq!(satisfy(&mut pc, AGE + S, 9), [Need::Usable(EnvId(2)), Need::Surplus(EnvId(1))]);
    assert_eq!(counts(&pc), (1, 1, 1, "READY"));
}

#[test]
fn a_successor_that_cannot_be_made_is_not_tried_without_end() {
    let mut pc = ready(1);
    assert_eq!(satisfy(&mut pc, AGE, 2), [Need::Start]);
    pc.init_failed(EnvId(2), StatusReason::InitTimeout, AGE);
    assert_eq!(satisfy(&mut pc, AGE + S, 3), []);
    assert_eq!(pc.wake_ns(), Some(AGE + SETTLE));
    assert_eq!(counts(&pc), (1, 1, 1, "READY"));
    assert_eq!(satisfy(&mut pc, AGE + SETTLE, 3), [Need::Start]);
}

#[test]
fn what_is_lost_is_made_anew_and_serves_at_once() {
    let mut pc = ready(2);
    pc.gone(EnvId(1));
    assert_eq!(counts(&pc), (2, 1, 1, "READY"));
    assert_eq!(satisfy(&mut pc, 200 * S, 8), [Need::Start]);
    pc.initialised(EnvId(8), 201 * S);
    assert_eq!(satisfy(&mut pc, 201 * S, 9), [Need::Usable(EnvId(8))]);
}
