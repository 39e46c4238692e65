//! The life of environments, as Lambda's users know it: logs, warm reuse, freeze, reset, init errors, expiry, concurrency.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]

use danki_lab::HostKeys;
use danki_record::Start;
use danki_testkit::{Lab, Recorded, Reply, Settings, eventually, function, skipped};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

fn lab(name: &str) -> Option<Lab> {
    (!skipped(name)).then(|| Lab::start(name, Settings::default()).unwrap())
}

fn stop(lab: Lab) -> Recorded {
    let recorded = lab.stop().unwrap();
    assert_eq!(recorded.left, Vec::<String>::new());
    assert_eq!(recorded.dropped, 0);
    recorded
}

/// Position of the first line that begins with this.
fn line(log: &[String], begin: &str) -> usize {
    log.iter().position(|l| l.starts_with(begin)).unwrap_or_else(|| panic!("no {begin} in {log:#?}"))
}

/// START, END and REPORT, in order and with every field.
fn check_log(reply: &Reply, memory_mb: u32) {
    let id = &reply.invocation.request_id;
    let start = line(&reply.log, &format!("START RequestId: {id} Version: $LATEST"));
    let end = line(&reply.log, &format!("END RequestId: {id}"));
    let report = line(&reply.log, &format!("REPORT RequestId: {id}\tDuration: "));
    assert!(start < end && end < report, "{:#?}", reply.log);
    let number = |field: &str| reply.reported(field).unwrap().parse::<f64>().unwrap();
    let (duration, billed) = (number("Duration"), number("Billed Duration"));
    assert!(duration > 0.0 && billed >= duration && billed.fract() == 0.0, "{:?}", reply.log);
    assert_eq!(number("Memory Size"), f64::from(memory_mb));
    let used = number("Max Memory Used");
    assert!(used > 0.0 && used < f64::from(memory_mb), "{used} MB");
    let cold = reply.invocation.start == Start::Cold;
    assert_eq!(reply.reported("Init Duration").is_some(), cold, "{:?}", reply.log);
}

#[test]
fn hello_and_echo_on_every_runtime() {
    let Some(lab) = lab("hello") else { return };
    let event = json!({"a": [1, "zwei", null], "b": {"ü": 1.5}});
    for (name, expect) in [
        ("hello-node", json!({"statusCode": 200, "body": "hello"})),
        ("hello-python", json!({"statusCode": 200, "body": "hello"})),
        ("hello-provided", json!({"statusCode": 200, "body": "hello"})),
        ("echo-node", event.clone()),
        ("echo-python", event.clone()),
    ] {
        let mut spec = function(name).unwrap();
        spec.memory = 256.try_into().unwrap();
        let deployed = lab.deploy(spec).unwrap();
        for start in [Start::Cold, Start::Warm, Start::Warm] {
            let reply = deployed.invoke(&event).unwrap();
            assert_eq!((reply.json(), reply.function_error.clone()), (expect.clone(), None), "{name}");
            assert_eq!(reply.invocation.start, start, "{name}");
            check_log(&reply, 256);
        }
    }
    stop(lab);
}

const COUNTER: &str = "
import os
count = 0
def handler(event, context):
    global count
    count += 1
    if event.get('write'):
        open('/tmp/kept', 'w').write(event['write'])
    kept = open('/tmp/kept').read() if os.path.exists('/tmp/kept') else None
    if event.get('exit'):
        os._exit(1)
    return {'count': count, 'kept': kept, 'pid': os.getpid(), 'id': context.aws_request_id}
";

#[test]
fn warm_envs_keep_globals_and_a_reset_keeps_only_tmp() {
    let Some(lab) = lab("reuse") else { return };
    let counter = lab.deploy(lab.write("lambda_function.py", COUNTER).unwrap()).unwrap();
    for count in 1..=3 {
        let reply = counter.invoke(&json!({"write": format!("by {count}")})).unwrap();
        assert_eq!(reply.json()["count"], count);
        assert_eq!(reply.json()["id"], reply.invocation.request_id.0);
    }
    let crashed = counter.invoke(&json!({"exit": true})).unwrap();
    assert_eq!(crashed.json()["errorType"], "Runtime.ExitError");
    let after = counter.invoke(&json!({})).unwrap();
    assert_eq!((&after.json()["count"], &after.json()["kept"]), (&json!(1), &json!("by 3")));
    assert_eq!(after.invocation.start, Start::Suppressed);
    assert_eq!(after.invocation.env, crashed.invocation.env);
    check_log(&after, 128);
    assert!(after.log.iter().all(|line| !line.starts_with("INIT_REPORT")), "only failures are reported");
    assert_eq!(counter.invoke(&json!({})).unwrap().json()["count"], 2);
    stop(lab);
}

const TICKER: &str = "
import os, threading, time
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        open('/tmp/ticks', 'w').write(str(ticks))
        time.sleep(0.001)
threading.Thread(target=tick, daemon=True).start()
def handler(event, context):
    usage = time.process_time()
    before = ticks
    time.sleep(event.get('sleep', 0))
    return {'before': before, 'after': ticks, 'usage': usage}
";

#[test]
fn nothing_runs_between_invocations() {
    let Some(lab) = lab("freeze") else { return };
    let mut spec = lab.write("lambda_function.py", TICKER).unwrap();
    spec.memory = 1_769.try_into().unwrap();
    let ticker = lab.deploy(spec).unwrap();
    let first = ticker.invoke(&json!({"sleep": 0.1})).unwrap().json();
    assert!(first["after"].as_u64() > first["before"].as_u64(), "it ticks while it is invoked: {first}");
    assert!(!eventually(Duration::from_millis(700), || false));
    let second = ticker.invoke(&json!({})).unwrap().json();
    let missed = second["before"].as_u64().unwrap() - first["after"].as_u64().unwrap();
    // 700 ticks had it run on; the way from the sleep to the freeze and from the thaw to the handler is a few.
    assert!(missed < 100, "{missed} ticks in 700 ms of pause");
    stop(lab);

    if skipped("no freezer") {
        return;
    }
    let host = HostKeys { freezer: Some(false), ..HostKeys::default() };
    let lab = Lab::start("no-freezer", Settings { host, ..Settings::default() }).unwrap();
    let mut spec = lab.write("lambda_function.py", TICKER).unwrap();
    spec.memory = 1_769.try_into().unwrap();
    let ticker = lab.deploy(spec).unwrap();
    let first = ticker.invoke(&json!({"sleep": 0.1})).unwrap().json();
    assert!(!eventually(Duration::from_millis(700), || false));
    let second = ticker.invoke(&json!({})).unwrap().json();
    let ticked = second["before"].as_u64().unwrap() - first["after"].as_u64().unwrap();
    assert!(ticked > 100, "{ticked} ticks in 700 ms without a freezer");
    stop(lab);
}

#[test]
fn an_init_error_is_reported_twice_and_answers_the_caller() {
    let Some(lab) = lab("init-error") else { return };
    let cases = [
        (
            "lambda_function.py",
            "import no_such_module\ndef handler(e, c): pass\n",
            "Runtime.ImportModuleError",
        ),
        ("index.js", "throw new RangeError('at load'); exports.handler = 1;\n", "RangeError"),
        ("index.mjs", "export const other = 1;\n", "Runtime.HandlerNotFound"),
    ];
    for (file, code, expect) in cases {
        // The second init has no boost: at 128 MB Node's takes seconds.
        let mut spec = lab.write(file, code).unwrap();
        spec.timeout_ms = 20_000;
        let broken = lab.deploy(spec).unwrap();
        let reply = broken.invoke(&json!({})).unwrap();
        assert_eq!(reply.function_error.as_deref(), Some("Unhandled"));
        assert_eq!(reply.json()["errorType"], expect, "{}", reply.text());
        let reports: Vec<_> = reply.log.iter().filter(|line| line.starts_with("INIT_REPORT ")).collect();
        assert_eq!(reports.len(), 2, "{:#?}", reply.log);
        assert!(reports[0].contains("\tPhase: init\tStatus: error\tError Type: "), "{}", reports[0]);
        assert!(reports[1].contains("\tPhase: invoke\tStatus: error\tError Type: "), "{}", reports[1]);
        let again = broken.invoke(&json!({})).unwrap();
        assert_eq!(again.json()["errorType"], expect);
        assert_eq!(again.reported("Init Duration"), None);
    }
    stop(lab);
}

#[test]
fn an_init_that_takes_too_long_is_repeated_inside_the_invocation() {
    if skipped("init limit") {
        return;
    }
    let settings = Settings { init_limit: Some(Duration::from_millis(400)), ..Settings::default() };
    let lab = Lab::start("init-limit", settings).unwrap();
    // The first process sleeps past the limit; the second one finds the first one's mark.
    let code = "
import os, time
if not os.path.exists('/tmp/second'):
    open('/tmp/second', 'w').close()
    time.sleep(60)
def handler(event, context):
    return 'late'
";
    let slow = lab.deploy(lab.write("lambda_function.py", code).unwrap()).unwrap();
    let reply = slow.invoke(&json!({})).unwrap();
    assert_eq!((reply.json(), reply.function_error.clone()), (json!("late"), None), "{:#?}", reply.log);
    let report = &reply.log[line(&reply.log, "INIT_REPORT ")];
    assert!(report.ends_with("\tPhase: init\tStatus: timeout"), "{report}");
    let ms: f64 = report.split(' ').nth(3).unwrap().parse().unwrap();
    assert!((400.0..2_000.0).contains(&ms), "{report}");
    assert_eq!(reply.reported("Init Duration"), None, "an init that failed has no Init Duration");
    stop(lab);
}

#[test]
fn an_idle_env_expires() {
    if skipped("expiry") {
        return;
    }
    let host = HostKeys { idle_ttl_s: Some(3.0), ..HostKeys::default() };
    let lab = Lab::start("expiry", Settings { host, time_scale: 10.0, ..Settings::default() }).unwrap();
    let hello = lab.deploy(function("hello-python").unwrap()).unwrap();
    hello.invoke(&json!({})).unwrap();
    assert_eq!(hello.envs(), 1);
    assert!(eventually(Duration::from_secs(5), || hello.envs() == 0), "3 s at scale 10 are over");
    assert_eq!(hello.invoke(&json!({})).unwrap().invocation.start, Start::Cold);
    let recorded = stop(lab);
    assert!(format!("{:?}", recorded.events).contains("spindown"));
}

#[test]
fn calls_at_once_get_an_env_each() {
    let Some(lab) = lab("concurrency") else { return };
    let code = "import time\ndef handler(event, context):\n    time.sleep(0.3)\n    return context.log_stream_name\n";
    let mut spec = lab.write("lambda_function.py", code).unwrap();
    spec.timeout_ms = 20_000;
    let busy = lab.deploy(spec).unwrap();
    let replies = busy.invoke_together(8, &json!({})).unwrap();
    let envs: BTreeSet<_> = replies.iter().map(|r| r.invocation.env).collect();
    let streams: BTreeSet<String> = replies.iter().map(Reply::text).collect();
    assert_eq!((envs.len(), streams.len(), busy.envs()), (8, 8, 8));
    assert!(replies.iter().all(|r| r.invocation.start == Start::Cold));
    let again = busy.invoke(&json!({})).unwrap();
    assert!(again.invocation.start == Start::Warm && envs.contains(&again.invocation.env));
    stop(lab);
}

#[test]
fn a_function_error_leaves_the_env_warm() {
    let Some(lab) = lab("function-error") else { return };
    for name in ["chaos-python", "chaos-node"] {
        let chaos = lab.deploy(function(name).unwrap()).unwrap();
        let pid = chaos.invoke(&json!({"action": "fine"})).unwrap().json()["pid"].clone();
        let failed = chaos.invoke(&json!({"action": "raise_error"})).unwrap();
        assert_eq!(failed.function_error.as_deref(), Some("Unhandled"));
        let body = failed.json();
        assert_eq!(body["errorMessage"], "chaos");
        let kind = if name.ends_with("node") { "TypeError" } else { "ValueError" };
        assert_eq!(body["errorType"], kind);
        assert!(body.get("stackTrace").or(body.get("trace")).is_some_and(Value::is_array), "{body}");
        assert_eq!(chaos.invoke(&json!({"action": "fine"})).unwrap().json()["pid"], pid, "the same process");
    }
    stop(lab);
}
