//! Findings about connections: opened too often, kept, closed while idle.

use super::{Evidence, Finding, FindingKind, evidence, examples};
use crate::variant::median;
use crate::{Call, ConnFacts, Facts, Variant};
use danki_model::{EnvId, RequestId};
use danki_record::ClosedBy;
use std::collections::{BTreeMap, BTreeSet};

/// From this many calls per invocation on, a connection per call means that the client is made anew for each.
const SEVERAL_CALLS: f64 = 1.5;

/// "Nearly each" and "nearly none".
const NEARLY_EACH: f64 = 0.9;
const NEARLY_NONE: f64 = 0.1;

/// A connection counts as closed while idle when it had been without payload for this long. Shorter ones are ends of
/// exchanges ("Connection: close").
const IDLE_NS: u64 = 1_000_000_000;

/// Calls of one variant to one service.
#[derive(Default)]
struct Traffic<'a> {
    invocations: usize,
    callers: Vec<&'a RequestId>,
    new: Vec<&'a Call>,
    kept: Vec<&'a Call>,
}

pub(super) fn use_of_connections(variant: &Variant, all: &[Variant]) -> Vec<Finding> {
    traffic(variant).into_iter().filter_map(|(service, t)| finding(variant, all, service, &t)).collect()
}

fn traffic(variant: &Variant) -> BTreeMap<&str, Traffic<'_>> {
    let mut by_service: BTreeMap<&str, Traffic<'_>> = BTreeMap::new();
    for (invocation, w) in &variant.invocations {
        let mut seen = BTreeSet::new();
        for call in &w.calls {
            let t = by_service.entry(&call.service).or_default();
            if seen.insert(&call.service) {
                t.invocations += 1;
                t.callers.push(&invocation.request_id);
            }
            if call.is_new() { t.new.push(call) } else { t.kept.push(call) }
        }
    }
    by_service
}

fn finding(variant: &Variant, all: &[Variant], service: &str, t: &Traffic<'_>) -> Option<Finding> {
    let (invocations, new) = (t.invocations as f64, t.new.len() as f64);
    let calls = new + t.kept.len() as f64;
    if calls < 2.0 {
        return None;
    }
    let kind = if calls / invocations >= SEVERAL_CALLS && new / calls >= NEARLY_EACH {
        FindingKind::ClientRecreated
    } else if new / invocations >= NEARLY_EACH {
        FindingKind::ConnectionPerInvocation
    } else if new / calls <= NEARLY_NONE {
        FindingKind::ConnectionsKept
    } else {
        return None;
    };
    let mut numbers = vec![
        evidence("invocations", invocations, "1"),
        evidence("calls", calls, "1"),
        evidence("new_connections", new, "1"),
    ];
    let lead = lead(kind, service, t);
    let cost = cost(variant, all, service, t, &mut numbers);
    Some(Finding {
        kind,
        variant: variant.name.clone(),
        text: format!("{lead}{cost}"),
        evidence: numbers,
        examples: examples(t.callers.iter().copied()),
    })
}

fn lead(kind: FindingKind, service: &str, t: &Traffic<'_>) -> String {
    let (n, new, calls) = (t.invocations, t.new.len(), t.new.len() + t.kept.len());
    match kind {
        FindingKind::ClientRecreated => format!(
            "{new} of {calls} calls to {service} opened a connection of their own ({:.0} per invocation): the client is \
             made anew for each call; make it once, outside the handler.",
            new as f64 / n as f64
        ),
        FindingKind::ConnectionPerInvocation => format!(
            "{n} invocations opened {new} connections to {service} for {calls} calls: nothing is kept from one \
             invocation to the next; keep connections alive, in a client made outside the handler.",
        ),
        _ => format!("{calls} calls to {service} needed {new} new connections: connections are kept."),
    }
}

/// What a new connection costs against a kept one; where the variant has none of one kind, another variant's.
fn cost(
    variant: &Variant,
    all: &[Variant],
    service: &str,
    t: &Traffic<'_>,
    numbers: &mut Vec<Evidence>,
) -> String {
    let Some(new) = median(t.new.iter().map(|c| c.ms())) else { return String::new() };
    let setup = median(t.new.iter().map(|c| c.setup_ms())).unwrap_or(0.0);
    numbers.extend([evidence("new_call_median", new, "ms"), evidence("setup_median", setup, "ms")]);
    let own = median(t.kept.iter().map(|c| c.ms())).map(|ms| (ms, t.kept.len(), variant.name.as_str()));
    let other = || {
        all.iter().find_map(|v| {
            let kept: Vec<f64> =
                v.calls().filter(|c| c.service == service && !c.is_new()).map(Call::ms).collect();
            let n = kept.len();
            median(kept).map(|ms| (ms, n, v.name.as_str()))
        })
    };
    let base = format!(
        " A call on a new connection takes {new:.1} ms (median of {}), {setup:.1} ms of it before the request leaves",
        t.new.len()
    );
    match own.or_else(other) {
        Some((kept, n, whose)) => {
            numbers.push(evidence("kept_call_median", kept, "ms"));
            let from = if whose == variant.name { String::new() } else { format!(", variant {whose}") };
            format!("{base}; on a kept one {kept:.1} ms (median of {n}{from}).")
        }
        None => format!("{base}."),
    }
}

pub(super) fn closed_while_idle(facts: &Facts, variant: &Variant) -> Option<Finding> {
    let envs: BTreeSet<EnvId> = variant.invocations.iter().map(|(i, _)| i.env).collect();
    let connections = || {
        envs.iter()
            .filter_map(|env| facts.of_env(*env).map(|e| (*env, e)))
            .flat_map(|(env, e)| e.connections.iter().map(move |c| (env, c)))
    };
    let closed: Vec<(EnvId, &ConnFacts, u64)> = connections()
        .filter_map(|(env, c)| idle_at_close(variant, env, c).map(|idle| (env, c, idle)))
        .collect();
    let idle_s = median(closed.iter().map(|(_, _, idle)| *idle as f64 / 1e9))?;
    let in_init = closed.iter().filter(|(env, c, _)| opened_in_init(facts, *env, c)).count();
    let total = connections().count();
    let whom = |(env, c, _): &(EnvId, &ConnFacts, u64)| opener(variant, *env, c);
    Some(Finding {
        kind: FindingKind::ClosedWhileIdle,
        variant: variant.name.clone(),
        text: format!(
            "The endpoint closed {} of {total} connections after {idle_s:.1} s without traffic (median); {in_init} of \
             them were opened during init, {} by an invocation. After such a gap the next call connects anew.",
            closed.len(),
            closed.len() - in_init
        ),
        evidence: vec![
            evidence("closed_while_idle", closed.len() as f64, "1"),
            evidence("connections", total as f64, "1"),
            evidence("opened_in_init", in_init as f64, "1"),
            evidence("idle_at_close_median", idle_s, "s"),
        ],
        examples: examples(closed.iter().filter_map(whom)),
    })
}

/// Only closures that a later invocation of the env met: at the end of a run everything is closed.
fn idle_at_close(variant: &Variant, env: EnvId, c: &ConnFacts) -> Option<u64> {
    let by_endpoint = matches!(c.connection.closed_by, Some(ClosedBy::Server | ClosedBy::ServerReset));
    let last_byte = c.connection.last_byte_ns.or(c.connection.established_ns)?;
    let closed_ns = c.connection.closed_ns?;
    let idle = closed_ns.saturating_sub(last_byte);
    let met = || variant.invocations.iter().any(|(i, _)| i.env == env && i.dispatched_ns > closed_ns);
    (by_endpoint && idle >= IDLE_NS && met()).then_some(idle)
}

fn opened_in_init(facts: &Facts, env: EnvId, c: &ConnFacts) -> bool {
    let syn_ns = c.connection.syn_ns;
    let inside = |s: &danki_record::Span| (s.from_ns..s.to_ns).contains(&syn_ns);
    facts.of_env(env).is_some_and(|e| e.inits.iter().any(inside))
}

fn opener<'a>(variant: &'a Variant, env: EnvId, c: &ConnFacts) -> Option<&'a RequestId> {
    let open = |i: &&danki_record::Invocation| {
        i.env == env && (i.dispatched_ns..=i.finished_ns).contains(&c.connection.syn_ns)
    };
    variant.invocations.iter().map(|(i, _)| i).find(open).map(|i| &i.request_id)
}
