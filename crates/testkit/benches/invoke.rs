//! What danki itself adds: to a cold start, from the decision to create an env to the runtime's `exec`; to a warm invocation, from
//! dispatch to answer, for a function that returns its event. `cargo bench -p danki-testkit` (root). At 1,769 MB, one full vCPU, nothing is throttled; what is left is thaw, delivery, the
//! runtime's own few lines, and the answer's way back.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark: it prints, and a failure is its end"
)]

use danki_model::MemoryMb;
use danki_record::{EnvWhat, Event};
use danki_stats::{Method, Sample};
use danki_testkit::{Lab, Settings};
use serde_json::json;

const ROUNDS: usize = 2_000;
const WARM_UP: usize = 100;
const COLD: usize = 200;

fn main() {
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
