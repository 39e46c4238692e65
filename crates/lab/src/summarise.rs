//! Events → the run's numbers. Pure: the same events give the same summary.

use crate::capture::ByClient;
use crate::experiment::Experiment;
use crate::results::Row;
use bytes::Bytes;
use danki_explain::{Context, EnvFacts, Facts, Part, Setting, Variant as Explained, by_variant, findings};
use danki_model::{EnvId, InitializationType, RequestId};
use danki_record::{
    Calibration, CaptureCounts, ClosedBy, ConnectionCounts, Event, Finding, Quantiles, SCHEMA, Start, Status,
    Summary, VariantSummary,
};
use danki_stats::{Interval, Method, Sample, quantile_interval};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

mod rows;

/// What an invocation returned.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Returned {
    /// The variant's name.
    pub variant: String,
    /// The invocation.
    pub request_id: RequestId,
    /// The function or the platform said that it failed.
    pub function_error: Option<String>,
    /// The response, if it was JSON and not too long; else null.
    pub payload: Value,
    /// The response as it was, if [`crate::Setup::keep_raw`] asked for it.
    #[serde(skip)]
    pub raw: Option<Bytes>,
}

/// Everything that a summary is made of.
pub struct Ingredients<'a> {
    /// What was run.
    pub experiment: &'a Experiment,
    /// What was recorded.
    pub events: &'a [Event],
    /// What the functions returned.
    pub returned: &'a [Returned],
    /// Handshakes in the capture; none if it could not be read.
    pub capture: ByClient,
    /// Speed of this machine.
    pub calibration: Calibration,
    /// The link's own figures.
    pub link: Value,
    /// What the runner has to say.
    pub caveats: Vec<String>,
    /// The run ended by itself.
    pub complete: bool,
}

/// A run's numbers, a row per invocation, and the waterfall of each.
pub struct Digest {
    /// `summary.json`.
    pub summary: Summary,
    /// By dispatch.
    pub rows: Vec<Row>,
    /// By variant.
    pub explained: Vec<Explained>,
}

/// Cooks.
pub fn summarise(from: Ingredients<'_>) -> Digest {
    let facts = Facts::gather(from.events);
    let explained = by_variant(&facts);
    let variant_of = variants_of_envs(from.events, &facts);
    let numbers = |variant: &crate::Variant| {
        let of_name = explained.iter().find(|e| e.name == variant.name);
        let returned = from.returned.iter().filter(|r| r.variant == variant.name);
        let of_variant = |env: &EnvId| variant_of.get(env).is_some_and(|v| *v == variant.name);
        let envs: Vec<&EnvFacts> =
            facts.envs.iter().filter(|(env, _)| of_variant(env)).map(|(_, f)| f).collect();
        let mut summary = VariantSummary {
            name: variant.name.clone(),
            memory_mb: variant.function.memory.mb(),
            connections: connections(&envs),
            capture: captured(&envs, &from.capture),
            returned: returned_numbers(returned),
            ..of_invocations(of_name)
        };
        summary.throttles = facts.refused.iter().filter(|r| r.variant == variant.name).count() as u64;
        let n = summary.invocations.max(1) as f64;
        summary.connections_per_invocation = summary.connections.opened as f64 / n;
        summary.handshakes_per_invocation = summary.connections.tls_handshakes as f64 / n;
        summary
    };
    let variants: Vec<VariantSummary> = from.experiment.variants.iter().map(numbers).collect();
    let as_json: Vec<Value> = variants.iter().map(|v| serde_json::to_value(v).unwrap_or_default()).collect();
    let recorded = from.events.iter().filter_map(|event| match event {
        Event::Caveat { text } => Some(text.clone()),
        _ => None,
    });
    let mut told = BTreeSet::new();
    let caveats: Vec<String> =
        from.caveats.into_iter().chain(recorded).filter(|text| told.insert(text.clone())).collect();
    let context = context(from.experiment, &caveats);
    let summary = Summary {
        schema: SCHEMA,
        name: from.experiment.name.clone(),
        complete: from.complete,
        seed: from.experiment.seed,
        time_scale: from.experiment.time_scale,
        repetitions: from.experiment.repetitions,
        variants,
        expect: from.experiment.expect.iter().map(|e| e.judge(&as_json)).collect(),
        findings: findings(&facts, &explained, &context).into_iter().map(Finding::from).collect(),
        calibration: from.calibration,
        link: from.link,
        caveats,
    };
    Digest { summary, rows: rows::rows(&explained, &facts), explained }
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

fn variants_of_envs<'a>(events: &'a [Event], facts: &'a Facts) -> HashMap<EnvId, &'a str> {
    let told = events.iter().filter_map(|event| match event {
        Event::Env(e) => Some((e.env, e.variant.as_str())),
        _ => None,
    });
    facts.invocations.iter().map(|i| (i.env, i.variant.as_str())).chain(told).collect()
}

/// What the invocations of a variant say; the rest is left empty.
fn of_invocations(explained: Option<&Explained>) -> VariantSummary {
    let all = explained.map_or(&[][..], |e| &e.invocations);
    let over = |f: &dyn Fn(&danki_record::Invocation) -> f64| quantiles(all.iter().map(|(i, _)| f(i)));
    let count =
        |f: &dyn Fn(&danki_record::Invocation) -> bool| all.iter().filter(|(i, _)| f(i)).count() as u64;
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
        returned: BTreeMap::new(),
        connections: ConnectionCounts::default(),
        capture: CaptureCounts::default(),
        connections_per_invocation: 0.0,
        handshakes_per_invocation: 0.0,
        throttled_ratio: share(all.iter().map(|(_, w)| ms(w.parts[Part::CpuThrottled])).sum()).min(1.0),
        cpu_share: share(all.iter().map(|(i, _)| i.cpu_us as f64 / 1e3).sum()),
        unattributed_ratio: explained.map_or(0.0, Explained::unattributed),
        waterfall_ms: waterfall.into(),
    }
}

/// Calls by service, and by whether they opened a connection.
fn by_connection(explained: Option<&Explained>) -> BTreeMap<String, Quantiles> {
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
fn by_start<'a>(
    invocations: impl Iterator<Item = &'a danki_record::Invocation>,
) -> BTreeMap<String, Quantiles> {
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

/// Handshakes in the capture that came from the addresses of these envs.
fn captured(envs: &[&EnvFacts], capture: &ByClient) -> CaptureCounts {
    let clients = envs.iter().flat_map(|env| &env.connections).map(|c| c.connection.client.ip());
    let addresses: BTreeSet<IpAddr> = clients.collect();
    let counts = addresses.iter().filter_map(|address| capture.get(address));
    counts.fold(CaptureCounts::default(), |sum, c| CaptureCounts {
        tcp_handshakes: sum.tcp_handshakes + c.tcp_handshakes,
        tls_handshakes: sum.tls_handshakes + c.tls_handshakes,
    })
}

/// Numbers at the top level of JSON objects; those of a list are pooled.
fn returned_numbers<'a>(returned: impl Iterator<Item = &'a Returned>) -> BTreeMap<String, Quantiles> {
    let mut fields: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let good = returned.filter(|r| r.function_error.is_none());
    for (key, value) in good.filter_map(|r| r.payload.as_object()).flatten() {
        let numbers = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let numbers: Vec<f64> = numbers.iter().filter_map(Value::as_f64).collect();
        if !numbers.is_empty() {
            fields.entry(key.clone()).or_default().extend(numbers);
        }
    }
    fields.into_iter().map(|(field, values)| (field, quantiles(values))).collect()
}

/// What findings need to know beside the facts.
fn context(experiment: &Experiment, caveats: &[String]) -> Context {
    let setting = |v: &crate::Variant| Setting {
        name: v.name.clone(),
        memory: v.function.memory,
        environment: v.function.environment.clone(),
        runtime: v.function.runtime.to_string(),
    };
    let settings = experiment.variants.iter().map(setting).collect();
    Context { settings, caveats: caveats.to_vec(), seed: experiment.seed }
}

#[cfg(test)]
mod tests;
