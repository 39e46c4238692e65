//! Refused with 429: the function's or the account's concurrency was used up.

use super::{Cause, Finding, Look, count};
use std::collections::BTreeMap;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let refused: Vec<_> = look.facts.refused.iter().filter(|r| r.variant == look.variant.name).collect();
    if refused.is_empty() {
        return Vec::new();
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    refused.iter().for_each(|r| *reasons.entry(r.reason.as_str()).or_default() += 1);
    let listed: Vec<String> = reasons.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
    let asked = refused.len() + look.n();
    let text = format!(
        "{} of {} were refused with 429 ({}): more at once than concurrency allows. They have no Duration and are in no quantile.",
        refused.len(),
        count(asked, "invocation"),
        listed.join(", "),
    );
    let finding = look
        .finding(Cause::ConcurrencyThrottled, text)
        .with("refused", refused.len() as f64, "1")
        .with("asked", asked as f64, "1")
        .remedy(look.saving(
            "Raise the reserved concurrency or the account's limit, or make invocations shorter; callers must retry with back-off.",
            None,
        ));
    vec![finding]
}
