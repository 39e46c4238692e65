//! A connection that the endpoint had closed while the env was frozen, written to nevertheless, reset, and the call made
//! again. The clean way is a reconnect before writing; `idle` tells of those.

use super::{Cause, Finding, Look, count};
use crate::ConnFacts;
use crate::variant::median;
use danki_record::{ClosedBy, Invocation};
use std::collections::BTreeSet;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let envs: BTreeSet<_> = look.variant.invocations.iter().map(|(i, _)| i.env).collect();
    let connections = envs.iter().filter_map(|env| look.facts.of_env(*env)).flat_map(|e| &e.connections);
    let mut met: Vec<(&ConnFacts, &Invocation, bool)> = Vec::new();
    for c in connections {
        let Some(written_ns) = written_after_close(c) else { continue };
        let during = |i: &&Invocation| {
            i.env == c.connection.env && (i.dispatched_ns..=i.finished_ns).contains(&written_ns)
        };
        let Some(invocation) = look.variant.invocations.iter().map(|(i, _)| i).find(during) else { continue };
        let again = look.facts.of_env(invocation.env).is_some_and(|e| {
            let after = written_ns..=invocation.finished_ns;
            e.connections
                .iter()
                .any(|n| n.connection.server == c.connection.server && after.contains(&n.connection.syn_ns))
        });
        met.push((c, invocation, again));
    }
    if met.is_empty() {
        return Vec::new();
    }
    let idle = |c: &ConnFacts| c.connection.idle.last().map_or(0.0, |p| p.len_ns() as f64 / 1e9);
    let idle_s = median(met.iter().map(|(c, ..)| idle(c))).unwrap_or(0.0);
    let again = met.iter().filter(|(.., again)| *again).count();
    let text = format!(
        "{} used a connection after {idle_s:.1} s of silence (median) although the endpoint had closed it meanwhile: the \
         request was answered by a reset, and {again} opened a new connection and sent it again. A client that does not \
         retry would have failed.",
        count(met.len(), "invocation"),
    );
    let finding = look
        .finding(Cause::StaleSocketReset, text)
        .with("stale_uses", met.len() as f64, "1")
        .with("retried", again as f64, "1")
        .with("idle_median", idle_s, "s")
        .connections(met.iter().map(|(c, ..)| c.connection.conn))
        .examples(met.iter().map(|(_, i, _)| &i.request_id))
        .remedy(look.saving(
            "Let the client's own idle limit be shorter than the endpoint's, so that it drops the socket first; retry on reset.",
            None,
        ));
    vec![finding]
}

/// When the env sent payload on a connection that the endpoint had ended before.
fn written_after_close(c: &ConnFacts) -> Option<u64> {
    let closed_ns = c.connection.closed_ns?;
    if c.connection.closed_by != Some(ClosedBy::Server) {
        return None;
    }
    // After close_notify and FIN nothing comes from the endpoint: later payload is the env's.
    let resumed =
        c.connection.idle.last().filter(|pause| pause.to_ns > closed_ns && pause.from_ns <= closed_ns);
    resumed.map(|pause| pause.to_ns)
}
