//! TLS handshakes that start from nothing although the env had a session with this endpoint before.

use super::{Cause, Finding, Look};
use crate::ConnFacts;
use crate::variant::median;
use std::collections::{BTreeMap, BTreeSet};

/// Repeated handshakes needed before anything is said.
const ENOUGH: usize = 3;
const NEARLY_NONE: f64 = 0.1;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let envs: BTreeSet<_> = look.variant.invocations.iter().map(|(i, _)| i.env).collect();
    let (mut repeated, mut resumed, mut ms) = (Vec::new(), 0_usize, Vec::new());
    for env in envs.iter().filter_map(|env| look.facts.of_env(*env)) {
        let mut met: BTreeMap<&str, usize> = BTreeMap::new();
        for c in &env.connections {
            let Some((name, was_resumed)) = session(c) else { continue };
            let before = met.entry(name).or_default();
            if *before > 0 {
                repeated.push(c.connection.conn);
                resumed += usize::from(was_resumed);
                ms.extend(crate::calls::tls_span(c).map(|s| s.len_ns() as f64 / 1e6));
            }
            *before += 1;
        }
    }
    if repeated.len() < ENOUGH || resumed as f64 > NEARLY_NONE * repeated.len() as f64 {
        return Vec::new();
    }
    let one = median(ms).unwrap_or(0.0);
    let text = format!(
        "{resumed} of {} handshakes with an endpoint met before resumed a session; the others were made in full, {one:.1} ms \
         each (median). Connections that are kept need neither.",
        repeated.len(),
    );
    let finding = look
        .finding(Cause::TlsNotResumed, text)
        .with("repeated_handshakes", repeated.len() as f64, "1")
        .with("resumed", resumed as f64, "1")
        .with("handshake_median", one, "ms")
        .share(look.variant.share(crate::Part::Tls))
        .connections(repeated);
    vec![finding]
}

fn session(c: &ConnFacts) -> Option<(&str, bool)> {
    let tls = c.requests.first()?.tls.as_ref()?;
    Some((tls.server_name.as_deref()?, tls.resumed))
}
