//! A secret or parameter that is fetched again in each invocation. An env's first invocation must fetch and says nothing; so of envs that had
//! one invocation each, nothing is said.

use super::{Cause, Finding, Look, count};
use crate::variant::median;
use std::collections::{BTreeMap, BTreeSet};

/// Services that hold secrets and parameters.
const STORES: [&str; 2] = ["secretsmanager", "ssm"];
/// Invocations needed, and the share of them that must fetch.
const ENOUGH: usize = 3;
const NEARLY_EACH: f64 = 0.9;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut served = BTreeSet::new();
    let later: BTreeSet<_> = look
        .variant
        .invocations
        .iter()
        .filter(|(i, _)| !served.insert(i.env))
        .map(|(i, _)| &i.request_id)
        .collect();
    let mut fetches: BTreeMap<&str, (BTreeSet<_>, Vec<f64>)> = BTreeMap::new();
    for (id, call) in look.calls().filter(|(_, call)| STORES.contains(&call.service.as_str())) {
        let (ids, ms) = fetches.entry(call.service.as_str()).or_default();
        ids.insert(id);
        ms.push(call.ms());
    }
    let again = |ids: &BTreeSet<_>| ids.intersection(&later).count() as f64;
    let each = |(ids, _): &(BTreeSet<_>, Vec<f64>)| again(ids) >= NEARLY_EACH * later.len() as f64;
    let found = fetches.into_iter().filter(|(_, of)| later.len() >= ENOUGH && each(of));
    found.filter_map(|(service, (ids, ms))| {
        let one = median(ms.iter().copied())?;
        let saving = ms.iter().sum::<f64>() / look.n() as f64;
        let text = format!(
            "{} of {} fetch from {service}, {one:.1} ms each time (median): the value is not kept from one invocation to the next.",
            ids.len(),
            count(look.n(), "invocation"),
        );
        let finding = look
            .finding(Cause::SecretPerInvocation, text)
            .with("fetches", ms.len() as f64, "1")
            .with("fetch_median", one, "ms")
            .share(ms.iter().sum::<f64>() / look.total_ms().max(f64::MIN_POSITIVE))
            .examples(ids.iter().copied())
            .remedy(look.saving("Keep it in a variable outside of the handler with a time to live, or use the secrets extension.", Some(saving)));
        Some(finding)
    })
    .collect()
}
