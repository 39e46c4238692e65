//! Everything a function can do wrong: each ends in the documented error, the next invocation works, nothing is left behind.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]

use danki_model::FunctionSpec;
use danki_record::{Event, Start};
use danki_testkit::{Function, Lab, Reply, Settings, eventually, function, skipped};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::time::Duration;

fn lab(name: &str) -> Option<Lab> {
    (!skipped(name)).then(|| Lab::start(name, Settings::default()).unwrap())
}

fn stop(lab: Lab) {
    assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
}

fn chaos(name: &str, memory_mb: u32, timeout_ms: u64) -> FunctionSpec {
    let mut spec = function(name).unwrap();
    (spec.memory, spec.timeout_ms) = (memory_mb.try_into().unwrap(), timeout_ms);
    spec
}

/// What the platform says when it ends an invocation.
fn payload(reply: &Reply, kind: &str, message: &str) -> String {
    let id = &reply.invocation.request_id;
    format!(r#"{{"errorType":"{kind}","errorMessage":"RequestId: {id} Error: {message}"}}"#)
}

/// The answer is the platform's, the log says so, and the next invocation works.
fn check(f: &Function<'_>, event: Value, kind: &str, message: &str) -> Reply {
    let reply = f.invoke(&event).unwrap();
    assert_eq!(reply.text(), payload(&reply, kind, message), "{event}");
    assert_eq!(reply.function_error.as_deref(), Some("Unhandled"), "{event}");
    let report = reply.log.last().unwrap();
    let status = match kind {
        "Sandbox.Timedout" => "\tStatus: timeout".to_owned(),
        kind => format!("\tStatus: error\tError Type: {kind}"),
    };
    assert!(report.starts_with("REPORT ") && report.ends_with(&status), "{event}: {report}");
    works(f, Start::Suppressed);
    reply
}

fn works(f: &Function<'_>, start: Start) {
    let next = f.invoke(&json!({"action": "fine"})).unwrap();
    assert!(next.function_error.is_none() && next.json()["pid"].is_u64(), "{}", next.text());
    assert_eq!(next.invocation.start, start);
}

#[test]
fn ends_of_the_process() {
    let Some(lab) = lab("ends") else { return };
    let python = lab.deploy(chaos("chaos-python", 512, 10_000)).unwrap();
    let node = lab.deploy(chaos("chaos-node", 512, 10_000)).unwrap();
    let exited = |how: &str| format!("Runtime exited with error: {how}");
    for f in [&python, &node] {
        for (action, message) in [
            ("exit_zero", "Runtime exited without providing a reason".to_owned()),
            ("exit_one", exited("exit status 1")),
            ("kill_self", exited("signal: killed")),
            ("segfault", exited("signal: segmentation fault")),
        ] {
            check(f, json!({ "action": action }), "Runtime.ExitError", &message);
        }
    }
    // A handler that waits for what never comes while nothing else goes on: the runtime notices, no process ends.
    let empty = node.invoke(&json!({"action": "empty_loop"})).unwrap();
    assert_eq!(empty.json()["errorType"], "Runtime.NodeJsExit");
    works(&node, Start::Warm);
    stop(lab);
}

#[test]
fn node_errors_that_nobody_catches() {
    let Some(lab) = lab("uncaught") else { return };
    let node = lab.deploy(chaos("chaos-node", 512, 10_000)).unwrap();
    for action in ["throw_later", "reject_later"] {
        let reply = node.invoke(&json!({ "action": action })).unwrap();
        assert_eq!(reply.function_error.as_deref(), Some("Unhandled"), "{action}: {}", reply.text());
        assert!(!reply.json()["errorType"].is_null(), "{action}: {}", reply.text());
        works(&node, Start::Suppressed);
    }
    stop(lab);
}

#[test]
fn killed_from_outside() {
    let Some(lab) = lab("kill-9") else { return };
    for (name, runtime) in [("chaos-python", "bootstrap.py"), ("chaos-node", "bootstrap.mjs")] {
        let f = lab.deploy(chaos(name, 512, 10_000)).unwrap();
        works(&f, Start::Cold);
        let pending = f.begin(&json!({"action": "never_return"})).unwrap();
        assert!(eventually(Duration::from_secs(5), || !lab.processes(runtime).is_empty()));
        kill(&lab, runtime);
        let reply = pending.wait().unwrap();
        let killed = "Runtime exited with error: signal: killed";
        assert_eq!(reply.text(), payload(&reply, "Runtime.ExitError", killed));
        works(&f, Start::Suppressed);
        // While nobody looks: frozen, between two invocations.
        kill(&lab, runtime);
        check(&f, json!({"action": "fine"}), "Runtime.ExitError", killed);
        f.retire().unwrap();
    }
    stop(lab);
}

fn kill(lab: &Lab, text: &str) {
    for process in lab.processes(text) {
        kill_process(Pid::from_raw(process.pid).unwrap(), Signal::KILL).unwrap();
    }
}

#[test]
fn never_returning_and_ignoring_sigterm() {
    let Some(lab) = lab("timeout") else { return };
    for name in ["chaos-python", "chaos-node"] {
        let f = lab.deploy(chaos(name, 1_769, 1_000)).unwrap();
        works(&f, Start::Cold);
        for action in ["never_return", "ignore_sigterm", "spin"] {
            let reply = check(
                &f,
                json!({ "action": action }),
                "Sandbox.Timedout",
                "Task timed out after 1.00 seconds",
            );
            let id = &reply.invocation.request_id;
            assert_eq!(reply.reported("Duration").as_deref(), Some("1000.00"));
            assert_eq!(reply.reported("Billed Duration").as_deref(), Some("1000"));
            let said =
                |line: &String| line.ends_with(&format!("Z {id} Task timed out after 1.00 seconds\n\n"));
            let said_it = reply.log.iter().any(|line| said(&format!("{}\n\n", line.trim_end())));
            assert!(said_it, "{:#?}", reply.log);
        }
    }
    stop(lab);
}

#[test]
fn a_fork_bomb_is_bounded() {
    let Some(lab) = lab("fork") else { return };
    let f = lab.deploy(chaos("chaos-python", 1_769, 20_000)).unwrap();
    let forked = f.invoke(&json!({"action": "fork"})).unwrap();
    assert_eq!(forked.function_error, None, "{}", forked.text());
    let (started, refused) = (forked.json()["started"].as_u64().unwrap(), forked.json()["refused"].clone());
    assert!(
        (600..1_024).contains(&started) && refused == "Resource temporarily unavailable",
        "{}",
        forked.text()
    );
    // They live on beside the runtime, as on Lambda, frozen with it.
    works(&f, Start::Warm);
    let other = lab.deploy(chaos("chaos-python", 512, 20_000)).unwrap();
    works(&other, Start::Cold);
    // A reset takes them all.
    check(&f, json!({"action": "exit_one"}), "Runtime.ExitError", "Runtime exited with error: exit status 1");
    let again = f.invoke(&json!({"action": "fork", "processes": 100})).unwrap();
    assert_eq!(again.json()["started"], 100);
    stop(lab);
}

#[test]
fn more_memory_than_there_is() {
    let Some(lab) = lab("oom") else { return };
    for name in ["chaos-python", "chaos-node"] {
        let f = lab.deploy(chaos(name, 256, 20_000)).unwrap();
        for _ in 0..2 {
            let killed = "Runtime exited with error: signal: killed";
            let reply = check(&f, json!({"action": "allocate"}), "Runtime.OutOfMemory", killed);
            assert_eq!(reply.reported("Max Memory Used").as_deref(), Some("256"));
        }
    }
    stop(lab);
}

#[test]
fn a_response_that_is_too_large() {
    let Some(lab) = lab("too-large") else { return };
    for name in ["chaos-python", "chaos-node"] {
        let f = lab.deploy(chaos(name, 1_769, 20_000)).unwrap();
        let reply = f.invoke(&json!({"action": "too_large"})).unwrap();
        assert_eq!(
            reply.text(),
            r#"{"errorMessage":"Response payload size exceeded maximum allowed payload size (6291556 bytes).","errorType":"Function.ResponseSizeTooLarge"}"#
        );
        assert_eq!(reply.function_error.as_deref(), Some("Unhandled"));
        works(&f, Start::Warm);
        let most = f.invoke(&json!({"action": "too_large", "bytes": 6 * 1024 * 1024 + 100})).unwrap();
        assert_eq!((most.payload.len(), most.function_error), (6 * 1024 * 1024 + 100, None));
    }
    stop(lab);
}

#[test]
fn a_flood_of_output() {
    let Some(lab) = lab("flood") else { return };
    for name in ["chaos-python", "chaos-node"] {
        let f = lab.deploy(chaos(name, 1_769, 30_000)).unwrap();
        let reply = f.invoke(&json!({"action": "flood_stdout", "mb": 100})).unwrap();
        assert_eq!((reply.json(), reply.function_error), (json!({"mb": 100}), None), "{name}");
        let more = reply.log.iter().find(|line| line.starts_with("[danki] ")).cloned().unwrap_or_default();
        assert_eq!(more, "[danki] 92400 more lines (94525200 bytes) were not recorded", "{name}");
        assert!(reply.log.last().unwrap().starts_with("REPORT "), "{:?}", reply.log.last());
        works(&f, Start::Warm);
    }
    let lines = lab.events().iter().filter(|event| matches!(event, Event::Log(_))).count();
    assert!(lines < 21_000, "{lines} lines were recorded");
    stop(lab);
}

#[test]
fn a_full_tmp_lasts_until_the_env_ends() {
    let Some(lab) = lab("full-tmp") else { return };
    let f = lab.deploy(chaos("chaos-python", 256, 25_000)).unwrap();
    let filled = f.invoke(&json!({"action": "fill_tmp"})).unwrap();
    assert_eq!(filled.json()["refused"], "No space left on device", "{}", filled.text());
    works(&f, Start::Warm);
    check(&f, json!({"action": "exit_one"}), "Runtime.ExitError", "Runtime exited with error: exit status 1");
    let kept = f.invoke(&json!({"action": "fine"})).unwrap();
    assert_eq!(kept.json()["tmp"], json!(["filled"]));
    f.retire().unwrap();
    let fresh = lab.deploy(chaos("chaos-python", 256, 25_000)).unwrap();
    assert_eq!(fresh.invoke(&json!({"action": "fine"})).unwrap().json()["tmp"], json!([]));
    stop(lab);
}

#[test]
fn a_lab_ends_in_the_middle_of_everything() {
    let Some(lab) = lab("middle") else { return };
    let f = lab.deploy(chaos("chaos-python", 512, 900_000)).unwrap();
    works(&f, Start::Cold);
    let pending = f.begin(&json!({"action": "spin"})).unwrap();
    drop((pending, f));
    let keeper = lab.keeper().pid();
    let processes = danki_testkit::descendants(keeper);
    drop(lab);
    assert!(processes.len() >= 3, "keeper, region, env: {processes:?}");
    assert!(eventually(Duration::from_secs(3), || processes.iter().all(|p| !p.lives())));
}
