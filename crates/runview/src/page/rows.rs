//! Facts → columns.

use super::data::{Calls, Connections, Cost, EnvLife, Invocations};
use danki_explain::{Call, ConnFacts, Facts, Variant, Waterfall};
use danki_model::billing::{Architecture, cost_usd, gb_seconds};
use danki_model::{InitializationType, MemoryMb};
use danki_record::{ClosedBy, EnvWhat, Event, Invocation, Span, Start, Status, Summary};
use std::collections::{BTreeMap, BTreeSet};

/// Invocations whose segments and calls are in the page; of longer runs the slowest of each variant and every n-th other one are.
pub const DETAILS: usize = 12_000;
/// The slowest of each variant that are always in.
const SLOWEST: usize = 200;

pub(super) type Explained<'a> = (&'a Invocation, &'a Waterfall);

/// All invocations by dispatch.
pub(super) fn in_order(variants: &[Variant]) -> Vec<Explained<'_>> {
    let mut all: Vec<_> = variants.iter().flat_map(|v| v.invocations.iter().map(|(i, w)| (i, w))).collect();
    all.sort_by_key(|(i, _)| (i.dispatched_ns, i.env));
    all
}

fn us(ns: u64, zero: u64) -> i64 {
    (i128::from(ns) - i128::from(zero)).div_euclid(1_000).try_into().unwrap_or(i64::MAX)
}

fn len(from_ns: u64, to_ns: u64) -> i64 {
    us(to_ns.max(from_ns), from_ns)
}

/// Positions of names, in order of first use.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn position(&mut self, name: String) -> i64 {
        let at = self.0.iter().position(|n| *n == name).unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        });
        index(at)
    }
}

fn index(at: usize) -> i64 {
    i64::try_from(at).expect("a position in memory")
}

fn variant_index(names: &[&str], name: &str) -> i64 {
    names.iter().position(|n| *n == name).map_or(-1, index)
}

pub(super) fn invocations(all: &[Explained<'_>], names: &[&str], zero: u64) -> Invocations {
    let mut rows = Invocations::default();
    let mut failures = Names::default();
    let detailed = detailed(all);
    let mut before = 0;
    for (row, (i, w)) in all.iter().enumerate() {
        let dispatched = us(i.dispatched_ns, zero);
        rows.id.push(i.request_id.0.clone());
        rows.variant.push(variant_index(names, &i.variant));
        rows.env.push(i64::from(i.env.0));
        rows.start.push(match i.start {
            Start::Cold => 0,
            Start::Warm => 1,
            Start::Suppressed => 2,
        });
        rows.failure.push(match &i.status {
            Status::Ok => -1,
            Status::Error { error_type } => failures.position(error_type.clone()),
            Status::Timeout => failures.position("timeout".to_owned()),
        });
        rows.dispatched_delta.push(dispatched - before);
        before = dispatched;
        rows.span.push(len(i.dispatched_ns, i.responded_ns));
        rows.after.push(len(i.responded_ns, i.finished_ns));
        rows.duration.push((i.duration_ms * 1e3).round() as i64);
        rows.init.push(i.init_ms.map_or(-1, |ms| (ms * 1e3).round() as i64));
        rows.cpu.push(i64::try_from(i.cpu_us).unwrap_or(i64::MAX));
        rows.throttled.push(i64::try_from(i.throttled_us).unwrap_or(i64::MAX));
        rows.memory.push(i64::from(i.max_memory_used_mb));
        rows.segments.push(if detailed.contains(&row) { segments(w) } else { Vec::new() });
    }
    rows.failures = failures.0;
    rows
}

/// Rows whose details are in the page.
fn detailed(all: &[Explained<'_>]) -> BTreeSet<usize> {
    if all.len() <= DETAILS {
        return (0..all.len()).collect();
    }
    let mut by_variant: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    all.iter().enumerate().for_each(|(row, (i, _))| by_variant.entry(&i.variant).or_default().push(row));
    let mut chosen: BTreeSet<usize> = (0..all.len()).step_by(all.len().div_ceil(DETAILS / 2)).collect();
    for rows in by_variant.values_mut() {
        rows.sort_by_key(|row| std::cmp::Reverse(all[*row].1.total()));
        chosen.extend(rows.iter().take(SLOWEST));
    }
    chosen
}

/// Ends are rounded, not lengths: so rounding does not add up, and the parts still fill the span.
fn segments(w: &Waterfall) -> Vec<i64> {
    let from = w.span.from_ns;
    let piece =
        |s: &danki_explain::Segment| [s.part as i64, us(s.span.to_ns, from) - us(s.span.from_ns, from)];
    w.segments.iter().map(piece).filter(|[_, length]| *length > 0).flatten().collect()
}

pub(super) fn calls(all: &[Explained<'_>]) -> Calls {
    let mut rows = Calls::default();
    let mut names = Names::default();
    let detailed = detailed(all);
    for (row, (i, w)) in all.iter().enumerate().filter(|(row, _)| detailed.contains(row)) {
        for c in &w.calls {
            rows.invocation.push(index(row));
            rows.name.push(names.position(format!("{} {}", c.service, c.operation)));
            push_call(&mut rows, c, i.dispatched_ns);
        }
    }
    rows.names = names.0;
    rows
}

fn push_call(rows: &mut Calls, c: &Call, dispatched_ns: u64) {
    let from = c.span.from_ns;
    let length = |s: Option<Span>| s.map_or(-1, |s| len(s.from_ns, s.to_ns));
    rows.status.push(i64::from(c.status));
    rows.conn.push(i64::try_from(c.conn.0).unwrap_or(-1));
    rows.from.push(us(from, dispatched_ns));
    rows.sent.push(len(from, c.sent_ns));
    rows.read.push(len(from, c.service_time.from_ns));
    rows.answered.push(len(from, c.service_time.to_ns));
    rows.done.push(len(from, c.span.to_ns));
    rows.dns.push(length(c.setup.and_then(|s| s.dns)));
    rows.tcp.push(length(c.setup.and_then(|s| s.tcp)));
    rows.tls.push(length(c.setup.and_then(|s| s.tls)));
    rows.idle.push(c.idle_before_ns.map_or(-1, |ns| len(0, ns)));
}

pub(super) fn envs(events: &[Event], facts: &Facts, names: &[&str], zero: u64) -> Vec<EnvLife> {
    let mut lives: BTreeMap<u32, EnvLife> = BTreeMap::new();
    for event in events {
        let Event::Env(e) = event else { continue };
        let life = lives.entry(e.env.0).or_insert_with(|| EnvLife {
            env: e.env.0,
            variant: variant_index(names, &e.variant),
            initialization: InitializationType::OnDemand.as_str().to_owned(),
            created: us(e.at_ns, zero),
            inits: Vec::new(),
            ended: -1,
        });
        match &e.what {
            EnvWhat::Creating { initialization } => life.initialization = initialization.as_str().to_owned(),
            EnvWhat::Ended { .. } => life.ended = us(e.at_ns, zero),
            _ => {}
        }
    }
    for (id, env) in &facts.envs {
        if let Some(life) = lives.get_mut(&id.0) {
            life.inits = env.inits.iter().flat_map(|s| [us(s.from_ns, zero), us(s.to_ns, zero)]).collect();
        }
    }
    lives.into_values().collect()
}

pub(super) fn connections(facts: &Facts, zero: u64) -> Connections {
    let mut all: Vec<&ConnFacts> = facts.envs.values().flat_map(|e| &e.connections).collect();
    all.sort_by_key(|c| c.connection.syn_ns);
    let mut rows = Connections::default();
    let mut servers = Names::default();
    let mut before = 0;
    for facts in all {
        let c = &facts.connection;
        let syn = us(c.syn_ns, zero);
        let since = |ns: Option<u64>| ns.map_or(-1, |ns| len(c.syn_ns, ns));
        let asked = facts.requests.iter().find_map(|r| r.tls.as_ref()?.server_name.clone());
        rows.conn.push(i64::try_from(c.conn.0).unwrap_or(-1));
        rows.env.push(i64::from(c.env.0));
        rows.port.push(i64::from(c.client.port()));
        rows.server.push(servers.position(asked.unwrap_or_else(|| c.server.to_string())));
        rows.syn_delta.push(syn - before);
        before = syn;
        rows.established.push(since(c.established_ns));
        rows.last_byte.push(since(c.last_byte_ns));
        rows.closed.push(since(c.closed_ns));
        rows.closed_by.push(match c.closed_by {
            None => 0,
            Some(ClosedBy::Client) => 1,
            Some(ClosedBy::Server) => 2,
            Some(ClosedBy::ClientReset) => 3,
            Some(ClosedBy::ServerReset) => 4,
        });
        rows.up.push(i64::try_from(c.bytes_up).unwrap_or(i64::MAX));
        rows.down.push(i64::try_from(c.bytes_down).unwrap_or(i64::MAX));
        rows.requests.push(index(facts.requests.len()));
    }
    rows.servers = servers.0;
    rows
}

pub(super) fn costs(variants: &[Variant], summary: &Summary) -> Vec<Cost> {
    let prices = Architecture::X86.prices();
    let cost = |v: &Variant| {
        let of = summary.variants.iter().find(|s| s.name == v.name)?;
        let memory = MemoryMb::try_from(of.memory_mb).ok()?;
        let n = v.invocations.len().max(1) as f64;
        let sum =
            |f: &dyn Fn(&Invocation) -> f64| v.invocations.iter().map(|(i, _)| f(i)).sum::<f64>() / n * 1e6;
        Some(Cost {
            variant: v.name.clone(),
            usd_per_million: sum(&|i| cost_usd(i.billed_ms, memory, 512, Architecture::X86)),
            requests_usd: prices.request * 1e6,
            gb_seconds: sum(&|i| gb_seconds(i.billed_ms, memory)),
            source: prices.source.to_owned(),
        })
    };
    variants.iter().filter_map(cost).collect()
}
