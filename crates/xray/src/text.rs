//! A trace as a tree for the terminal: when, how long, what.

use crate::document::{Entity, Outcome};
use crate::trace::Trace;
use std::fmt::Write as _;

/// Deeper than any real tree; a circle of parents ends here.
const MAX_DEPTH: usize = 40;

/// One line per entity, in order of time below its parent. Times in ms from the trace's begin.
pub fn render(trace: &Trace) -> String {
    let zero_ns = trace.span().from_ns;
    let mut out = String::new();
    let requests: Vec<&str> = trace.requests.iter().map(|id| id.0.as_str()).collect();
    let kept = if trace.sampled { "sampled" } else { "not sampled" };
    let _fine = writeln!(out, "trace {}  {kept}  request {}", trace.id, requests.join(", "));
    let _fine = writeln!(out, "{:>10} {:>10}", "at ms", "took ms");
    let is_root = |e: &&Entity| !trace.entities.iter().any(|p| Some(&p.id) == e.parent.as_ref());
    let mut roots: Vec<&Entity> = trace.entities.iter().filter(is_root).collect();
    roots.sort_by_key(|e| e.start_ns);
    for root in roots {
        branch(trace, root, zero_ns, 0, &mut out);
    }
    out
}

fn branch(trace: &Trace, entity: &Entity, zero_ns: u64, depth: usize, out: &mut String) {
    let at_ms = entity.start_ns.saturating_sub(zero_ns) as f64 / 1e6;
    let took = entity.len_ns().map_or("…".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6));
    let what = match (entity.origin.as_deref(), entity.namespace.as_deref()) {
        (Some(origin), _) => format!("  {origin}"),
        (None, Some("danki")) => "  on the wire".to_owned(),
        (None, Some(namespace)) => format!("  {namespace}"),
        (None, None) => String::new(),
    };
    let how = match entity.outcome {
        Outcome::Ok => "",
        Outcome::Error => "  ERROR",
        Outcome::Throttle => "  THROTTLED",
        Outcome::Fault => "  FAULT",
    };
    let name: String = entity.name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let _fine =
        writeln!(out, "{at_ms:>10.3} {took:>10}  {:indent$}{name}{what}{how}", "", indent = depth * 2);
    if depth >= MAX_DEPTH {
        return;
    }
    let mut inside: Vec<&Entity> = trace
        .entities
        .iter()
        .filter(|e| e.parent.as_ref() == Some(&entity.id) && e.id != entity.id)
        .collect();
    inside.sort_by_key(|e| e.start_ns);
    inside.into_iter().for_each(|e| branch(trace, e, zero_ns, depth + 1, out));
}
