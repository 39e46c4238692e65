//! Chrome's trace event format, which Perfetto and chrome://tracing open: a process per variant, a thread per env with its
//! invocations and their parts, a thread per connection with its calls.

use crate::read::Run;
use danki_explain::{Facts, Variant, by_variant};
use serde_json::{Value, json};

/// Threads of connections are numbered from here, above all envs.
const CONNECTIONS: u64 = 1_000_000;

/// The whole trace.
pub fn perfetto(run: &Run) -> Value {
    let facts = Facts::gather(&run.events);
    let zero = run.manifest.started_ns;
    let mut events = Vec::new();
    for (at, variant) in by_variant(&facts).iter().enumerate() {
        let pid = at + 1;
        events.push(name("process_name", pid, 0, &variant.name));
        of_variant(variant, pid, zero, &mut events);
    }
    json!({"displayTimeUnit": "ms", "traceEvents": events, "otherData": {"run": run.manifest.name, "danki": run.manifest.danki}})
}

fn of_variant(variant: &Variant, pid: usize, zero: u64, events: &mut Vec<Value>) {
    let mut named = std::collections::BTreeSet::new();
    let mut thread = |tid: u64, text: String, events: &mut Vec<Value>| {
        if named.insert(tid) {
            events.push(name("thread_name", pid, tid, &text));
        }
    };
    for (i, w) in &variant.invocations {
        let tid = u64::from(i.env.0);
        thread(tid, i.env.to_string(), events);
        let facts = json!({"duration_ms": i.duration_ms, "request_id": i.request_id, "start": i.start, "cpu_us": i.cpu_us});
        events.push(complete(
            "invocation",
            &i.request_id.0,
            (pid, tid),
            (w.span.from_ns, w.span.to_ns, zero),
            facts,
        ));
        for s in &w.segments {
            let times = (s.span.from_ns, s.span.to_ns, zero);
            events.push(complete("part", s.part.name(), (pid, tid), times, json!({})));
        }
        for c in &w.calls {
            let tid = CONNECTIONS + c.conn.0;
            thread(tid, format!("{} of {}, port {}", c.conn, i.env, c.client.port()), events);
            let facts = json!({"status": c.status, "new_connection": c.is_new(), "request_id": i.request_id});
            let title = format!("{} {}", c.service, c.operation);
            events.push(complete("call", &title, (pid, tid), (c.span.from_ns, c.span.to_ns, zero), facts));
        }
    }
}

fn name(what: &str, pid: usize, tid: u64, text: &str) -> Value {
    json!({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": text}})
}

/// Times in µs with fractions: the format's unit.
fn complete(
    category: &str,
    name: &str,
    (pid, tid): (usize, u64),
    (from, to, zero): (u64, u64, u64),
    args: Value,
) -> Value {
    let us = |ns: u64| ns as f64 / 1e3;
    json!({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
           "ts": us(from.saturating_sub(zero)), "dur": us(to.saturating_sub(from)), "args": args})
}
