//! Connections that endpoints closed while they idled, and those of init that were dead before anybody used them.

use super::{Cause, Finding, Look, count};
use crate::ConnFacts;
use crate::database::is_to_one;
use crate::variant::median;
use danki_model::{EnvId, RequestId};
use danki_record::{Change, ClosedBy, Invocation, Remedy, Span};
use std::collections::BTreeSet;

/// A connection counts as closed while idle when it had been without a request for this long. Shorter ones are ends of
/// exchanges ("Connection: close").
const IDLE_NS: u64 = 1_000_000_000;
/// A ping comes after this part of the endpoint's idle limit.
const PING_AT: f64 = 0.8;

struct Closed<'a> {
    env: EnvId,
    conn: &'a ConnFacts,
    idle_ns: u64,
    in_init: bool,
    /// No invocation had used it.
    unused: bool,
}

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let envs: BTreeSet<EnvId> = look.variant.invocations.iter().map(|(i, _)| i.env).collect();
    let all = || {
        let known = envs.iter().filter_map(|env| look.facts.of_env(*env).map(|e| (*env, e)));
        known.flat_map(|(env, e)| e.connections.iter().map(move |c| (env, c)))
    };
    let closed: Vec<Closed<'_>> = all().filter_map(|(env, conn)| closed(look, env, conn)).collect();
    let (dead, idle): (Vec<_>, Vec<_>) = closed.into_iter().partition(|c| c.in_init && c.unused);
    let dead = (!dead.is_empty()).then(|| init_connection_dead(look, &dead));
    let idle = (!idle.is_empty()).then(|| closed_while_idle(look, &idle, all().count()));
    dead.into_iter().chain(idle).collect()
}

/// Only closures that a later invocation of the env met: at the end of a run everything is closed.
fn closed<'a>(look: &Look<'_>, env: EnvId, conn: &'a ConnFacts) -> Option<Closed<'a>> {
    let by_endpoint = matches!(conn.connection.closed_by, Some(ClosedBy::Server | ClosedBy::ServerReset));
    // A database ends a connection when it is told goodbye, and what is asked of it is not seen.
    let closed_ns = conn.connection.closed_ns.filter(|_| by_endpoint && !is_to_one(conn))?;
    let last_use = conn.used_until_ns();
    let idle_ns = closed_ns.saturating_sub(last_use);
    if idle_ns < IDLE_NS {
        return None;
    }
    let of_env = || look.variant.invocations.iter().map(|(i, _)| i).filter(move |i| i.env == env);
    let met = of_env().any(|i| i.finished_ns > closed_ns);
    let unused = of_env().all(|i| i.delivered_ns.unwrap_or(i.dispatched_ns) > last_use);
    let inside = |s: &Span| (s.from_ns..s.to_ns).contains(&conn.connection.syn_ns);
    let in_init = look.facts.of_env(env).is_some_and(|e| e.inits.iter().any(inside));
    met.then_some(Closed { env, conn, idle_ns, in_init, unused })
}

fn closed_while_idle(look: &Look<'_>, closed: &[Closed<'_>], total: usize) -> Finding {
    let idle_s = median(closed.iter().map(|c| c.idle_ns as f64 / 1e9)).unwrap_or(0.0);
    let in_init = closed.iter().filter(|c| c.in_init).count();
    let (saves, new, kept) = saving(look, closed.len());
    let text = format!(
        "The endpoint closed {} of {} after {idle_s:.1} s without traffic (median); {in_init} of them had been opened during \
         init, {} by an invocation. After such a gap the next call connects anew{}.",
        closed.len(),
        count(total, "connection"),
        closed.len() - in_init,
        match (new, kept) {
            (Some(new), Some(kept)) => format!(" ({new:.1} ms instead of {kept:.1} at the median)"),
            _ => String::new(),
        }
    );
    look.finding(Cause::ClosedWhileIdle, text)
        .with("closed_while_idle", closed.len() as f64, "1")
        .with("connections", total as f64, "1")
        .with("opened_in_init", in_init as f64, "1")
        .with("idle_at_close_median", idle_s, "s")
        .connections(closed.iter().map(|c| c.conn.connection.conn))
        .examples(closed.iter().filter_map(|c| opener(look, c)))
        .remedy(Remedy {
            change: Some(Change::Ping { every_s: idle_s * PING_AT }),
            ..look.saving(
                "Nothing to fix if such gaps are rare; else keep envs busier (fewer, or a ping below the limit), and expect a new \
                 connection.",
                saves,
            )
        })
}

fn init_connection_dead(look: &Look<'_>, dead: &[Closed<'_>]) -> Finding {
    let idle_s = median(dead.iter().map(|c| c.idle_ns as f64 / 1e9)).unwrap_or(0.0);
    let gap =
        |c: &Closed<'_>| first_use(look, c).map(|i| i.dispatched_ns.saturating_sub(c.conn.connection.syn_ns));
    let gap_s = median(dead.iter().filter_map(gap).map(|ns| ns as f64 / 1e9)).unwrap_or(0.0);
    let (saves, ..) = saving(look, dead.len());
    let text = format!(
        "{} made during init: the endpoint closed them after {idle_s:.1} s without traffic, before the first request came \
         ({gap_s:.1} s after they were opened, median). Warming a connection in init bought nothing here.",
        if dead.len() == 1 {
            "1 connection was".to_owned()
        } else {
            format!("{} connections were", dead.len())
        },
    );
    look.finding(Cause::InitConnectionDead, text)
        .with("dead", dead.len() as f64, "1")
        .with("idle_at_close_median", idle_s, "s")
        .with("first_request_after_median", gap_s, "s")
        .connections(dead.iter().map(|c| c.conn.connection.conn))
        .examples(dead.iter().filter_map(|c| first_use(look, c)).map(|i| &i.request_id))
        .remedy(look.saving(
            "Do not rely on a connection made in init when the first request may come later than the endpoint's idle limit; what helps \
             the first call is work done in init that does not age (client made, modules and CA loaded).",
            saves,
        ))
}

/// What those calls would have saved per invocation, had the connection lived; with both medians.
fn saving(look: &Look<'_>, closures: usize) -> (Option<f64>, Option<f64>, Option<f64>) {
    let of = |new: bool| median(look.variant.calls().filter(|c| c.is_new() == new).map(|c| c.ms()));
    let (new, kept) = (of(true), of(false));
    // Where nothing was kept, it is what came before the request.
    let setup = median(look.variant.calls().filter(|c| c.is_new()).map(|c| c.setup_ms()));
    let one = new.zip(kept).map(|(new, kept)| (new - kept).max(0.0)).or(setup);
    (one.map(|ms| ms * closures as f64 / look.n().max(1) as f64), new, kept)
}

fn opener<'a>(look: &Look<'a>, c: &Closed<'_>) -> Option<&'a RequestId> {
    let open = |i: &&Invocation| {
        i.env == c.env && (i.dispatched_ns..=i.finished_ns).contains(&c.conn.connection.syn_ns)
    };
    look.variant.invocations.iter().map(|(i, _)| i).find(open).map(|i| &i.request_id)
}

fn first_use<'a>(look: &Look<'a>, c: &Closed<'_>) -> Option<&'a Invocation> {
    let after =
        |i: &&Invocation| i.env == c.env && i.finished_ns > c.conn.connection.closed_ns.unwrap_or(u64::MAX);
    look.variant.invocations.iter().map(|(i, _)| i).find(after)
}
