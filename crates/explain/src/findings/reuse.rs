//! Are connections used again? For each call that opened one although its env had connected to the same endpoint before:
//! what became of the earlier connection says why.
//!
//! Only what could have been kept is judged: an env's first connection to an endpoint is never held against anyone, and
//! nothing is said about "from one invocation to the next" unless an env had a next one.

use super::{Cause, Finding, Look, count};
use crate::variant::median;
use crate::{Call, ConnFacts, EnvFacts};
use danki_model::RequestId;
use danki_record::{Change, ClosedBy, Confidence, Invocation, Remedy};
use std::collections::BTreeMap;

/// A connection that ends this soon after its last answer was used up, not idle.
const USED_UP_NS: u64 = 1_000_000_000;
/// "Most" of the calls that could have used an earlier connection, and how many they must be.
const MOST: f64 = 0.5;
const ENOUGH: usize = 2;
/// Connections are kept when nearly all calls that could use an earlier one do.
const NEARLY_ALL: f64 = 0.9;

/// Why a call opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The endpoint ended the earlier one at once: it was asked to (`Connection: close`).
    KeepAliveOff,
    /// The client ended the earlier one right after use.
    ThrownAway,
    /// The earlier one is still open and idle: another client holds it.
    LeftOpen,
    /// The client ended it after it had idled.
    DroppedByClient,
    /// The endpoint ended it after it had idled, it was busy, or its request was given up: no client could have used it.
    Unavoidable,
}

/// A call that could have used an earlier connection.
struct Repeat<'a> {
    id: &'a RequestId,
    call: &'a Call,
    /// None: it was kept.
    why: Option<Why>,
    /// The earlier connection is of the same invocation.
    within: bool,
}

#[derive(Default)]
struct Traffic<'a> {
    calls: Vec<&'a Call>,
    repeats: Vec<Repeat<'a>>,
}

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut by_service: BTreeMap<&str, Traffic<'_>> = BTreeMap::new();
    for (i, w) in &look.variant.invocations {
        let Some(env) = look.facts.of_env(i.env) else { continue };
        for call in &w.calls {
            let traffic = by_service.entry(&call.service).or_default();
            traffic.calls.push(call);
            traffic.repeats.extend(repeat(i, call, env));
        }
    }
    by_service.iter().flat_map(|(service, traffic)| judge(look, service, traffic)).collect()
}

fn repeat<'a>(i: &'a Invocation, call: &'a Call, env: &EnvFacts) -> Option<Repeat<'a>> {
    let own = env.connections.iter().find(|c| c.connection.conn == call.conn)?;
    let since = |c: &ConnFacts| c.connection.syn_ns >= i.dispatched_ns;
    if !call.is_new() {
        let within = since(own) && own.connection.syn_ns < call.span.from_ns;
        return Some(Repeat { id: &i.request_id, call, why: None, within });
    }
    let opened_ns = own.connection.syn_ns;
    let earlier = env.connections.iter().filter(|c| {
        c.connection.server == own.connection.server
            && c.connection.syn_ns < opened_ns
            && !c.requests.is_empty()
    });
    let (mut last, mut why) = (None, None);
    for c in earlier {
        let reason = reason(c, opened_ns);
        // An idle open one explains it whatever became of the others; else the one used last does.
        if reason == Why::LeftOpen || why != Some(Why::LeftOpen) {
            (last, why) = (Some(c), Some(reason));
        }
    }
    Some(Repeat { id: &i.request_id, call, why, within: since(last?) })
}

fn reason(c: &ConnFacts, opened_ns: u64) -> Why {
    let busy = |r: &danki_record::Request| {
        let done = r.service_time.to_ns.saturating_add(2 * c.one_way_ns());
        (r.received.from_ns.saturating_sub(c.one_way_ns())..=done).contains(&opened_ns)
    };
    let ended = c.connection.closed_ns.filter(|ns| *ns <= opened_ns);
    match (ended, c.connection.closed_by) {
        (Some(ns), Some(by)) => {
            let used_until = c.used_until_ns();
            let at_once = ns.saturating_sub(used_until) < USED_UP_NS;
            match by {
                // Given up before the answer: `timeouts` tells of that.
                ClosedBy::Client | ClosedBy::ClientReset if ns < used_until => Why::Unavoidable,
                ClosedBy::Server | ClosedBy::ServerReset if at_once => Why::KeepAliveOff,
                ClosedBy::Server | ClosedBy::ServerReset => Why::Unavoidable,
                ClosedBy::Client | ClosedBy::ClientReset if at_once => Why::ThrownAway,
                ClosedBy::Client | ClosedBy::ClientReset => Why::DroppedByClient,
            }
        }
        _ if c.requests.iter().any(busy) => Why::Unavoidable,
        _ => Why::LeftOpen,
    }
}

fn judge(look: &Look<'_>, service: &str, t: &Traffic<'_>) -> Vec<Finding> {
    // Node does not end the connections of a client that nobody holds any more: what it ends at once, it was not to keep.
    let node = look.setting().is_some_and(|s| s.runtime.starts_with("nodejs"));
    let ended = |r: &&Repeat<'_>| node && r.why == Some(Why::ThrownAway);
    let thrown = |r: &&Repeat<'_>| matches!(r.why, Some(Why::ThrownAway | Why::LeftOpen));
    let of = |keep: &dyn Fn(&&Repeat<'_>) -> bool| t.repeats.iter().filter(keep).collect::<Vec<_>>();
    let (within, across) = (of(&|r| r.within), of(&|r| !r.within));
    let off = of(&|r| r.why == Some(Why::KeepAliveOff) || ended(r));
    let recreated = of(&|r| r.within && thrown(r) && !ended(r));
    let per_invocation = of(&|r| !r.within && thrown(r) && !ended(r));
    let dropped = of(&|r| r.why == Some(Why::DroppedByClient));
    let most =
        |some: &[&Repeat<'_>], all: usize| some.len() >= ENOUGH && some.len() as f64 >= MOST * all as f64;
    if most(&off, t.repeats.len()) {
        return vec![opened(look, service, t, Cause::KeepAliveOff, &off)];
    }
    if most(&recreated, within.len()) {
        return vec![opened(look, service, t, Cause::ClientRecreated, &recreated)];
    }
    if most(&per_invocation, across.len()) {
        return vec![opened(look, service, t, Cause::ClientPerInvocation, &per_invocation)];
    }
    if most(&dropped, across.len()) {
        return vec![opened(look, service, t, Cause::DroppedByClient, &dropped)];
    }
    kept(look, service, t).into_iter().collect()
}

fn kept(look: &Look<'_>, service: &str, t: &Traffic<'_>) -> Option<Finding> {
    let used = t.repeats.iter().filter(|r| r.why.is_none()).count();
    if used < ENOUGH || (used as f64) < NEARLY_ALL * t.repeats.len() as f64 {
        return None;
    }
    let new = t.calls.len() - used;
    let text = format!(
        "{} to {service} needed {}: connections are kept.",
        count(t.calls.len(), "call"),
        count(new, "new connection")
    );
    let finding = look.finding(Cause::ConnectionsKept, text);
    Some(finding.with("calls", t.calls.len() as f64, "1").with("new_connections", new as f64, "1"))
}

fn opened(look: &Look<'_>, service: &str, t: &Traffic<'_>, cause: Cause, whose: &[&Repeat<'_>]) -> Finding {
    let (n, calls) = (whose.len(), t.calls.len());
    let new: Vec<f64> = t.calls.iter().filter(|c| c.is_new()).map(|c| c.ms()).collect();
    let new_ms = median(new.iter().copied()).unwrap_or(0.0);
    let setup_ms = median(whose.iter().map(|r| r.call.setup_ms())).unwrap_or(0.0);
    let (kept, base) = kept_ms(look, service, t);
    let saves = (new_ms - kept.unwrap_or(new_ms - setup_ms)).max(0.0) * n as f64 / look.n().max(1) as f64;
    let unsure = match confidence(cause, whose) {
        Confidence::High => "",
        _ => " (or does not keep connections: it ended them itself)",
    };
    let lead =
        lead(cause, service, n, calls).replace("the client is made", &format!("the client{unsure} is made"));
    let versus = kept.map(|ms| format!("; on a kept one {ms:.1} ms (median of {base})")).unwrap_or_default();
    let text = format!(
        "{lead} A call on a new connection takes {new_ms:.1} ms (median of {}), {setup_ms:.1} ms of it before the request \
         leaves{versus}.",
        new.len()
    );
    let spent: f64 = whose.iter().map(|r| r.call.setup_ms()).sum();
    let mut finding = look
        .finding(cause, text)
        .with("calls", calls as f64, "1")
        .with("opened_although_met_before", n as f64, "1")
        .with("new_connections", new.len() as f64, "1")
        .with("new_call_median", new_ms, "ms")
        .with("setup_median", setup_ms, "ms")
        .share(spent / look.total_ms().max(f64::MIN_POSITIVE))
        .confidence(confidence(cause, whose))
        .connections(whose.iter().map(|r| r.call.conn))
        .examples(whose.iter().map(|r| r.id))
        .remedy(remedy(look, cause, saves));
    if let Some(ms) = kept {
        finding = finding.with("kept_call_median", ms, "ms");
    }
    finding
}

fn lead(cause: Cause, service: &str, n: usize, calls: usize) -> String {
    let some = format!("{n} of {} to {service}", count(calls, "call"));
    match cause {
        Cause::KeepAliveOff => {
            format!(
                "{some} opened a connection because the one before had been ended at once: keep-alive is off."
            )
        }
        Cause::ClientRecreated => {
            format!(
                "{some} opened a connection of their own within an invocation: the client is made anew for each call."
            )
        }
        Cause::ClientPerInvocation => format!(
            "{some} opened a connection although their env had one before: nothing is kept from one invocation to the next, \
             the client is made in the handler."
        ),
        _ => format!(
            "{some} opened a connection because the client itself had dropped the idle one: its own idle limit."
        ),
    }
}

fn remedy(look: &Look<'_>, cause: Cause, saves: f64) -> Remedy {
    let node = look.setting().is_some_and(|s| s.runtime.starts_with("nodejs"));
    match cause {
        Cause::KeepAliveOff => {
            let mut remedy = look.saving(
                "Switch keep-alive on (Node: an agent with keepAlive; AWS SDK v2: AWS_NODEJS_CONNECTION_REUSE_ENABLED=1).",
                Some(saves),
            );
            remedy.change = node.then_some(Change::KeepAlive);
            remedy
        }
        Cause::DroppedByClient => {
            look.saving("Raise the client's idle limit above the usual gap between requests.", Some(saves))
        }
        _ => look.saving("Make the client once, outside of the handler.", Some(saves)),
    }
}

/// A connection that is closed by the client right after use can also be a client without keep-alive.
fn confidence(cause: Cause, whose: &[&Repeat<'_>]) -> Confidence {
    let open = whose.iter().filter(|r| r.why == Some(Why::LeftOpen)).count();
    match cause {
        Cause::KeepAliveOff => Confidence::High,
        _ if open * 2 > whose.len() => Confidence::High,
        _ => Confidence::Medium,
    }
}

/// Median of calls on kept connections: this variant's, else another one's of the same memory size.
fn kept_ms(look: &Look<'_>, service: &str, t: &Traffic<'_>) -> (Option<f64>, String) {
    let own: Vec<f64> = t.calls.iter().filter(|c| !c.is_new()).map(|c| c.ms()).collect();
    if let Some(ms) = median(own.iter().copied()) {
        return (Some(ms), own.len().to_string());
    }
    let memory = |name: &str| look.context.of(name).map(|s| s.memory);
    let others = look.all.iter().filter(|v| v.name != look.variant.name);
    for other in others.filter(|v| memory(&v.name) == memory(&look.variant.name)) {
        let kept: Vec<f64> =
            other.calls().filter(|c| c.service == service && !c.is_new()).map(Call::ms).collect();
        if let Some(ms) = median(kept.iter().copied()) {
            return (Some(ms), format!("{}, variant {}", kept.len(), other.name));
        }
    }
    (None, String::new())
}
