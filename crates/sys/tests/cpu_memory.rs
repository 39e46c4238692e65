//! Limits and freezer on the real kernel. Bounds are generous: other tests run beside these.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test code, but clippy knows only test functions"
)]

mod support;

use danki_sys::{Controller, ExitStatus, Sandbox, Version, clock};
use support::*;

const SPIN: &str = "while :; do :; done";

fn has(sandbox: &Sandbox, controller: Controller) -> bool {
    let has = sandbox.cgroup().version(controller).is_some();
    if !has {
        println!("skipped: no {controller:?} cgroup");
    }
    has
}

#[test]
fn a_quota_gives_its_share() {
    if !is_root("quota") {
        return;
    }
    let keeper = keeper("quota");
    let mut planned = plan(1);
    planned.cgroup.cpu_quota_us = Some(1_447);
    let sandbox = keeper.create(&planned).unwrap();
    if !has(&sandbox, Controller::Cpu) || !has(&sandbox, Controller::Cpuacct) {
        return;
    }
    sandbox.spawn(&sh(SPIN)).unwrap();
    pause(200);
    let (from, before) = (clock::monotonic_ns(), sandbox.cgroup().cpu());
    pause(3_000);
    let (to, after) = (clock::monotonic_ns(), sandbox.cgroup().cpu());
    let share = (after.usage_ns - before.usage_ns) as f64 / (to - from) as f64;
    println!("share {share:.4}, asked 0.0724; {:?}", after);
    assert!((0.04..0.09).contains(&share), "{share}");
    assert!(after.throttled_ns > before.throttled_ns && after.nr_throttled > before.nr_throttled);
    assert!(after.nr_periods > 100);
    sandbox.cgroup().set_cpu_quota(None, 20_000).unwrap();
    let before = sandbox.cgroup().cpu();
    pause(1_000);
    let free = sandbox.cgroup().cpu().usage_ns - before.usage_ns;
    assert!(free > 150_000_000, "without a quota it gets more: {free} ns in 1 s");
    assert!(sandbox.cgroup().set_cpu_quota(Some(999), 20_000).is_err());
}

/// When the kernel's timers of this kind expire, ns.
fn expiries(timers: &str, handler: &str) -> Vec<u64> {
    let lines: Vec<&str> = timers.lines().collect();
    let expires = lines
        .windows(2)
        .filter(|pair| pair[0].contains(handler))
        .filter_map(|pair| pair[1].trim().strip_prefix("# expires at ")?.split('-').next()?.parse().ok());
    expires.collect()
}

#[test]
fn a_quota_is_refilled_on_a_tick() {
    if !is_root("refill") {
        return;
    }
    let keeper = keeper("refill");
    let envs: Vec<Sandbox> = (1..=6).map(|id| keeper.create(&plan(id)).unwrap()).collect();
    if !has(&envs[0], Controller::Cpu) {
        return;
    }
    // A machine that is too busy says so.
    let wanted: Vec<_> =
        envs.iter().filter(|env| !env.caveats().iter().any(|c| c.contains("tick"))).collect();
    if wanted.is_empty() {
        println!("skipped: {:?}", envs[0].caveats());
        return;
    }
    // Setting a quota starts the timers again.
    envs.iter().for_each(|env| env.cgroup().set_cpu_quota(Some(5_000), 20_000).unwrap());
    let timers = std::fs::read_to_string("/proc/timer_list").unwrap();
    let tick = expiries(&timers, "tick_")[0];
    let refills = expiries(&timers, "sched_cfs_period_timer");
    let after: Vec<i64> =
        refills.iter().map(|at| (at.cast_signed() - tick.cast_signed()).rem_euclid(4_000_000)).collect();
    println!("ns after a tick: {after:?}");
    assert!(after.iter().filter(|ns| **ns < 100_000).count() >= wanted.len(), "{after:?}");
}

#[test]
fn frozen_is_still_and_thawed_goes_on() {
    if !is_root("freezer") {
        return;
    }
    let keeper = keeper("freeze");
    let sandbox = keeper.create(&plan(1)).unwrap();
    if !has(&sandbox, Controller::Freezer) {
        return;
    }
    sandbox.spawn(&sh(SPIN)).unwrap();
    sandbox.spawn(&sh("sleep 1000")).unwrap();
    for _ in 0..20 {
        sandbox.cgroup().freeze().unwrap();
        // Version 2 calls processes frozen that are on their last steps to where they sleep.
        pause(5);
        let before = sandbox.cgroup().cpu().usage_ns;
        pause(20);
        assert_eq!(sandbox.cgroup().cpu().usage_ns, before);
        sandbox.cgroup().thaw().unwrap();
        assert!(eventually(PATIENCE, || sandbox.cgroup().cpu().usage_ns > before));
    }
    sandbox.cgroup().freeze().unwrap();
    sandbox.destroy().unwrap();
}

#[test]
fn too_much_memory_is_counted_as_a_kill() {
    if !is_root("memory") {
        return;
    }
    let keeper = keeper("oom");
    let mut planned = plan(1);
    planned.cgroup.memory_bytes = Some(48 << 20);
    let sandbox = keeper.create(&planned).unwrap();
    if !has(&sandbox, Controller::Memory) {
        return;
    }
    let (status, ..) =
        output(&sandbox, &sh("exec head -c 10000000 /dev/zero | tail -c 10000000 > /dev/null"));
    assert_eq!(status, ExitStatus::Code(0));
    let peak = sandbox.cgroup().memory_peak_bytes();
    assert!((8 << 20..32 << 20).contains(&peak), "{peak}");
    assert_eq!((sandbox.cgroup().oom_kills(), sandbox.cgroup().oom_alarms()), (0, 0));
    let greedy = sh("head -c 500000000 /dev/zero | tail -c 500000000 > /dev/null");
    assert_eq!(output(&sandbox, &greedy).0, ExitStatus::Code(128 + 9));
    assert_eq!(sandbox.cgroup().oom_kills(), 1);
    let announces = sandbox.cgroup().version(Controller::Memory) == Some(Version::V1);
    assert_eq!((sandbox.cgroup().oom_alarms() > 0, sandbox.cgroup().oom_alarms()), (announces, 0));
    assert!(sandbox.cgroup().memory_peak_bytes() > 40 << 20);
}

#[test]
fn processes_are_limited() {
    if !is_root("pids") {
        return;
    }
    let keeper = keeper("pids");
    let mut planned = plan(1);
    planned.cgroup.pids_max = Some(20);
    let sandbox = keeper.create(&planned).unwrap();
    if !has(&sandbox, Controller::Pids) {
        return;
    }
    let (_, _, err) =
        output(&sandbox, &sh("for i in $(seq 50); do sleep 1000 >/dev/null 2>&1 & done; kill 0"));
    assert!(err.contains("fork"), "{err}");
    sandbox.kill_processes(9).unwrap();
}
