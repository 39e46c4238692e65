//! All traces of a run at a glance: what was called how often, and how long it took; then the traces, one line each.

use crate::document::Entity;
use crate::trace::Trace;
use danki_stats::{Method, Sample};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Traces that are listed one by one.
const LISTED: usize = 20;

/// One subsegment's name in one function's traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The function: the name of Lambda's own segment.
    pub function: String,
    /// What was called, or one of Lambda's own stretches.
    pub name: String,
    /// How long each took, ms, in order of time.
    pub took_ms: Vec<f64>,
}

/// Durations by function and name. A call inside one of the same name (`requests` on top of `http.client`) is that call, not another.
pub fn durations(traces: &[&Trace]) -> Vec<Named> {
    let mut by_name: BTreeMap<(String, String), Vec<(u64, f64)>> = BTreeMap::new();
    for trace in traces {
        let is_service = |e: &&Entity| e.origin.as_deref() == Some("AWS::Lambda");
        let function = trace.entities.iter().find(is_service).map_or("", |e| e.name.as_str());
        for entity in trace.entities.iter().filter(|e| e.origin.is_none()) {
            let parent = trace.entities.iter().find(|p| Some(&p.id) == entity.parent.as_ref());
            if parent.is_some_and(|parent| parent.name == entity.name) {
                continue;
            }
            let wire = entity.namespace.as_deref() == Some("danki");
            let name = if wire { format!("{} (wire)", entity.name) } else { entity.name.clone() };
            if let Some(ns) = entity.len_ns() {
                let named = by_name.entry((function.to_owned(), name)).or_default();
                named.push((entity.start_ns, ns as f64 / 1e6));
            }
        }
    }
    let in_order = |mut took: Vec<(u64, f64)>| {
        took.sort_by_key(|(start_ns, _)| *start_ns);
        took.into_iter().map(|(_, ms)| ms).collect()
    };
    let named = by_name.into_iter();
    named.map(|((function, name), took)| Named { function, name, took_ms: in_order(took) }).collect()
}

/// Both tables as text.
pub fn summary_table(traces: &[&Trace]) -> String {
    let mut out = String::new();
    let kept = traces.iter().filter(|trace| trace.sampled).count();
    let _fine =
        writeln!(out, "{} traces, {kept} sampled; times in ms, quantiles by nearest rank\n", traces.len());
    let head = ["n", "min", "max", "mean", "median", "p90"].map(|head| format!("{head:>9}")).concat();
    let _fine = writeln!(out, "{:<18}{:<42}{head}", "function", "subsegment");
    for named in durations(traces) {
        let Ok(sample) = Sample::new(named.took_ms) else { continue };
        let s = sample.summary(Method::NearestRank);
        let figures = [s.min, s.max, s.mean, s.p50, s.p90].map(|ms| format!("{ms:>9.3}")).concat();
        let _fine =
            writeln!(out, "{:<18}{:<42}{:>9}{figures}", cut(&named.function, 17), cut(&named.name, 41), s.n);
    }
    let _fine = writeln!(out, "\n{:<37}{:<38}{:>9}{:>10}", "trace", "request", "entities", "took");
    for trace in traces.iter().take(LISTED) {
        let request = trace.requests.first().map_or("", |id| id.0.as_str());
        let took_ms = trace.span().len_ns() as f64 / 1e6;
        let _fine = writeln!(out, "{:<37}{request:<38}{:>9}{took_ms:>10.1}", trace.id, trace.entities.len());
    }
    if traces.len() > LISTED {
        let _fine = writeln!(out, "… and {} more", traces.len() - LISTED);
    }
    out
}

fn cut(text: &str, most: usize) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(most).collect()
}
