//! What danki itself adds: to a cold start, from the decision to create an env to the runtime's `exec`; to a warm invocation, from
//! dispatch to answer, for a function that returns its event. At 1,769 MB, one full vCPU, nothing is throttled; what is left is thaw,
//! delivery, the runtime's own few lines, and the answer's way back. Then two things that must hold and take long: a hundred envs with a
//! thousand warm invocations each, and the time that an env has to end. `cargo bench -p danki-testkit` (root).
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark: it prints, and a failure is its end"
)]

#[path = "native/echo.rs"]
mod echo;

use danki_model::{EnvId, FunctionSpec, MemoryMb};
use danki_record::{EnvWhat, Event};
use danki_stats::{Method, Sample};
use danki_testkit::{Lab, Settings, repository};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

const ROUNDS: usize = 2_000;
const WARM_UP: usize = 100;
const COLD: usize = 200;
const ENVS: usize = 100;
const EACH: usize = 1_000;
const ENDS: usize = 11;
/// How far from AWS's budgets an env may end.
const BUDGET_MS: f64 = 20.0;

fn main() {
    if echo::is_runtime() {
        return echo::serve();
    }
    println!(
        "decision to exec of the runtime, a whole env (sandbox, 512 MB /tmp, network card, resolver, Runtime API), ms"
    );
    println!("{:<22} {:>7} {:>7} {:>7} {:>7}", "", "p50", "p90", "p99", "max");
    row("hello-provided, cold", creations());
    println!("warm echo, dispatch to answer, ms; {ROUNDS} invocations each, variants in turn");
    println!("load of the machine: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    println!("{:<22} {:>7} {:>7} {:>7} {:>7}", "", "p50", "p90", "p99", "max");
    for function in ["echo-node", "echo-python"] {
        let frozen = lab(true);
        let free = lab(false);
        let (with, without) = (spans(&frozen, function), spans(&free, function));
        let (mut on, mut off) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS / 100 {
            on.extend(with(100));
            off.extend(without(100));
        }
        row(&format!("{function}, freezer"), on);
        row(&format!("{function}, no freezer"), off);
        drop((with, without));
        frozen.stop().unwrap();
        free.stop().unwrap();
    }
    a_hundred_envs();
    budgets();
}

/// None is lost, none is served twice, and no env has two at a time.
fn a_hundred_envs() {
    let dir = tempfile::tempdir().unwrap();
    echo::deploy(dir.path());
    let lab = lab(true);
    let mut spec = danki_testkit::function_in(dir.path()).unwrap();
    spec.memory = MemoryMb::try_from(1_769).unwrap();
    let function = lab.deploy(spec).unwrap();
    let (mut ids, mut by_env) = (BTreeSet::new(), BTreeMap::<EnvId, Vec<(u64, u64)>>::new());
    let began_ns = danki_sys::clock::monotonic_ns();
    for round in 0..EACH {
        let event = json!({ "round": round });
        for reply in function.invoke_together(ENVS, &event).unwrap() {
            assert_eq!((reply.json(), &reply.function_error), (event.clone(), &None));
            let i = reply.invocation;
            by_env.entry(i.env).or_default().push((i.delivered_ns.unwrap(), i.finished_ns));
            assert!(ids.insert(i.request_id), "served twice");
        }
    }
    let seconds = (danki_sys::clock::monotonic_ns() - began_ns) as f64 / 1e9;
    assert_eq!((ids.len(), function.envs(), by_env.len()), (ENVS * EACH, ENVS, ENVS));
    for spans in by_env.values_mut() {
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "two at a time");
    }
    println!(
        "{ENVS} envs, {EACH} invocations each, none lost, none twice, no env busy with two: {seconds:.1} s"
    );
    lab.stop().unwrap();
}

const STUBBORN: &str = "
import signal
signal.signal(signal.SIGTERM, lambda *_: print('function: stays', flush=True))
def handler(event, context):
    return 'ok'
";

/// Nobody ends by himself: the runtime has 300 ms, it and its extension 2,000 ms together.
fn budgets() {
    let (mut shares, mut wholes) = (Vec::new(), Vec::new());
    for _ in 0..ENDS {
        let lab = lab(true);
        let mut spec: FunctionSpec = lab.write("lambda_function.py", STUBBORN).unwrap();
        spec.memory = MemoryMb::try_from(1_769).unwrap();
        spec.layers = vec![repository().join("functions/ext-python")];
        spec.environment = BTreeMap::from([("EXT_SHUTDOWN_MS".to_owned(), "10000".to_owned())]);
        let function = lab.deploy(spec).unwrap();
        function.invoke(&json!({})).unwrap();
        function.retire().unwrap();
        let events = lab.stop().unwrap().events;
        let said = |begin: &str| {
            events.iter().find_map(|event| match event {
                Event::Log(line) if line.line.starts_with(begin) => Some(line.at_ns),
                _ => None,
            })
        };
        let ended = events.iter().find_map(|event| match event {
            Event::Env(env) if matches!(env.what, EnvWhat::Ended { .. }) => Some(env.at_ns),
            _ => None,
        });
        let asked_ns = said("function: stays").unwrap();
        let ms = |at_ns: u64| (at_ns - asked_ns) as f64 / 1e6;
        shares.push(ms(said("sample-python: SHUTDOWN").unwrap()));
        wholes.push(ms(ended.unwrap()));
    }
    println!(
        "an env that does not end by itself, from SIGTERM on, ms; {ENDS} envs, budgets within {BUDGET_MS} at the median"
    );
    for (name, spans, budget_ms) in
        [("its runtime is killed", shares, 300.0), ("all are killed", wholes, 2_000.0)]
    {
        let median = Sample::new(spans.clone()).unwrap().summary(Method::NearestRank).p50;
        row(name, spans);
        assert!((median - budget_ms).abs() <= BUDGET_MS, "{name}: {median:.1} of {budget_ms} ms");
    }
}

/// One env after the other; each is ended before the next is made.
fn creations() -> Vec<f64> {
    let lab = lab(true);
    let function = lab.deploy(danki_testkit::function("hello-provided").unwrap()).unwrap();
    for _ in 0..COLD {
        function.invoke(&json!({})).unwrap();
        function.expire().unwrap();
    }
    let mut decided = std::collections::HashMap::new();
    let mut spans = Vec::new();
    for event in lab.stop().unwrap().events {
        let Event::Env(event) = event else { continue };
        match event.what {
            EnvWhat::Creating { .. } => _ = decided.insert(event.env, event.at_ns),
            EnvWhat::Started => spans.push((event.at_ns - decided[&event.env]) as f64 / 1e6),
            _ => {}
        }
    }
    spans
}

fn lab(freezer: bool) -> Lab {
    let mut settings = Settings::default();
    settings.host.freezer = Some(freezer);
    Lab::start("bench", settings).unwrap()
}

/// Invokes so many times, one after the other, and returns each span in ms.
fn spans<'a>(lab: &'a Lab, name: &str) -> impl Fn(usize) -> Vec<f64> + use<'a> {
    let mut spec = danki_testkit::function(name).unwrap();
    spec.memory = MemoryMb::try_from(1_769).unwrap();
    let function = lab.deploy(spec).unwrap();
    let invoke = move || {
        let invocation = function.invoke(&json!({"hello": "world"})).unwrap().invocation;
        (invocation.responded_ns - invocation.dispatched_ns) as f64 / 1e6
    };
    (0..WARM_UP).for_each(|_| _ = invoke());
    move |n| (0..n).map(|_| invoke()).collect()
}

fn row(name: &str, spans: Vec<f64>) {
    let s = Sample::new(spans).unwrap().summary(Method::NearestRank);
    println!("{name:<22} {:>7.3} {:>7.3} {:>7.3} {:>7.3}", s.p50, s.p90, s.p99, s.max);
}
