//! A variant in numbers: what every reader of a run is given, and what a running `danki up` shows.

use crate::{EnvFacts, Part, Variant};
use danki_model::InitializationType;
use danki_record::{
    CaptureCounts, ClosedBy, ConnectionCounts, Invocation, Quantiles, Start, Status, VariantSummary,
};
use danki_stats::{Interval, Method, Sample, quantile_interval};
use std::collections::{BTreeMap, BTreeSet};

/// The numbers that facts give: of a variant's invocations, if it had any, and of its envs' connections. What a function returned, what a
/// capture shows and who was throttled is the caller's to add.
pub fn summarise(
    name: &str,
    memory_mb: u32,
    explained: Option<&Variant>,
    envs: &[&EnvFacts],
) -> VariantSummary {
    let mut summary = VariantSummary {
        name: name.to_owned(),
        memory_mb,
        connections: connections(envs),
        ..of_invocations(explained)
    };
    let n = summary.invocations.max(1) as f64;
    summary.connections_per_invocation = summary.connections.opened as f64 / n;
    summary.handshakes_per_invocation = summary.connections.tls_handshakes as f64 / n;
    summary
}

/// The name of a part as a key of `waterfall_ms`.
pub fn part_key(part: Part) -> String {
    part.name().replace(' ', "_")
}

/// The summary of a sample, quantiles by nearest rank: each is a value that occurred.
pub fn quantiles(values: impl IntoIterator<Item = f64>) -> Quantiles {
    let method = Method::NearestRank.to_string();
    let Ok(sample) = Sample::new(values.into_iter().filter(|v| v.is_finite())) else {
        let none = None;
        return Quantiles {
            n: 0,
            min: none,
            p50: none,
            p90: none,
            p95: none,
            p99: none,
            max: none,
            mean: none,
            method,
            p50_interval: None,
        };
    };
    let s = sample.summary(Method::NearestRank);
    let p50_interval = match quantile_interval(&sample, 0.5, 0.95) {
        Interval::Known { low, high, .. } => Some([low, high]),
        Interval::TooSmall { .. } => None,
    };
    Quantiles {
        n: s.n as u64,
        min: Some(s.min),
        p50: Some(s.p50),
        p90: Some(s.p90),
        p95: Some(s.p95),
        p99: Some(s.p99),
        max: Some(s.max),
        mean: Some(s.mean),
        method,
        p50_interval,
    }
}

/// What the invocations of a variant say; the rest is left empty.
fn of_invocations(explained: Option<&Variant>) -> VariantSummary {
    let all = explained.map_or(&[][..], |e| &e.invocations);
    let over = |f: &dyn Fn(&Invocation) -> f64| quantiles(all.iter().map(|(i, _)| f(i)));
    let count = |f: &dyn Fn(&Invocation) -> bool| all.iter().filter(|(i, _)| f(i)).count() as u64;
    let ms = |ns: u64| ns as f64 / 1e6;
    let durations_ms: f64 = all.iter().map(|(i, _)| i.duration_ms).sum();
    let share = |part_ms: f64| if durations_ms > 0.0 { part_ms / durations_ms } else { 0.0 };
    let waterfall =
        Part::ALL.map(|part| (part_key(part), quantiles(all.iter().map(|(_, w)| ms(w.parts[part])))));
    VariantSummary {
        name: String::new(),
        memory_mb: 0,
        invocations: all.len() as u64,
        errors: count(&|i| i.status != Status::Ok),
        timeouts: count(&|i| i.status == Status::Timeout),
        cold_starts: count(&|i| i.start != Start::Warm),
        duration_ms: over(&|i| i.duration_ms),
        warm_duration_ms: quantiles(
            all.iter().filter(|(i, _)| i.start == Start::Warm).map(|(i, _)| i.duration_ms),
        ),
        client_ms: over(&|i| ms(i.responded_ns.saturating_sub(i.dispatched_ns))),
        late_ms: over(&|i| ms(i.dispatched_ns.saturating_sub(i.intended_ns))),
        init_ms: all.iter().filter_map(|(i, _)| i.init_ms).collect(),
        calls: by_connection(explained),
        durations: by_start(all.iter().map(|(i, _)| i)),
        throttles: 0,
        requests: None,
        database: None,
        returned: BTreeMap::new(),
        connections: ConnectionCounts::default(),
        capture: CaptureCounts::default(),
        connections_per_invocation: 0.0,
        handshakes_per_invocation: 0.0,
        throttled_ratio: share(all.iter().map(|(_, w)| ms(w.parts[Part::CpuThrottled])).sum()).min(1.0),
        cpu_share: share(all.iter().map(|(i, _)| i.cpu_us as f64 / 1e3).sum()),
        unattributed_ratio: explained.map_or(0.0, Variant::unattributed),
        waterfall_ms: waterfall.into(),
    }
}

/// Calls by service, and by whether they opened a connection.
fn by_connection(explained: Option<&Variant>) -> BTreeMap<String, Quantiles> {
    let mut split: BTreeMap<&str, [Vec<f64>; 2]> = BTreeMap::new();
    for call in explained.iter().flat_map(|e| e.calls()) {
        split.entry(&call.service).or_default()[usize::from(call.is_new())].push(call.ms());
    }
    let mut calls = BTreeMap::new();
    for (service, [kept, new]) in split {
        calls.insert(service.to_owned(), quantiles(kept.iter().chain(&new).copied()));
        if !kept.is_empty() && !new.is_empty() {
            calls.insert(format!("{service}_kept"), quantiles(kept));
            calls.insert(format!("{service}_new"), quantiles(new));
        }
    }
    calls
}

/// Durations by how the invocation found its env.
fn by_start<'a>(invocations: impl Iterator<Item = &'a Invocation>) -> BTreeMap<String, Quantiles> {
    let mut seen = BTreeSet::new();
    let mut split: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for i in invocations {
        let first = seen.insert(i.env);
        let start = match (i.initialization, i.start) {
            (InitializationType::ProvisionedConcurrency, _) if first => "provisioned_first",
            (InitializationType::ProvisionedConcurrency, _) => "provisioned_later",
            (InitializationType::OnDemand, Start::Warm) => "warm",
            (InitializationType::OnDemand, _) => "cold",
        };
        split.entry(start).or_default().push(i.duration_ms);
    }
    split.into_iter().map(|(start, ms)| (start.to_owned(), quantiles(ms))).collect()
}

fn connections(envs: &[&EnvFacts]) -> ConnectionCounts {
    let mut counts = ConnectionCounts::default();
    for facts in envs.iter().flat_map(|env| &env.connections) {
        counts.opened += 1;
        counts.tls_handshakes += u64::from(facts.connection.client_hello_ns.is_some());
        counts.reused += facts.requests.iter().filter(|r| r.ordinal > 1).count() as u64;
        counts.tls_resumed +=
            facts.requests.iter().filter(|r| r.tls.as_ref().is_some_and(|tls| tls.resumed)).count() as u64;
        let reset = matches!(facts.connection.closed_by, Some(ClosedBy::ClientReset | ClosedBy::ServerReset));
        counts.reset += u64::from(reset);
    }
    counts
}
