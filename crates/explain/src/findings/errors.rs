//! Invocations that failed.

use super::{Cause, Finding, Look, count};
use danki_record::Status;
use std::collections::BTreeMap;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let failed: Vec<_> =
        look.variant.invocations.iter().map(|(i, _)| i).filter(|i| i.status != Status::Ok).collect();
    if failed.is_empty() {
        return Vec::new();
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for i in &failed {
        let kind = match &i.status {
            Status::Error { error_type } => error_type.as_str(),
            _ => "timeout",
        };
        *kinds.entry(kind).or_default() += 1;
    }
    let listed: Vec<String> = kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    let text = format!(
        "{} of {} failed ({}); their Durations are in all figures.",
        failed.len(),
        count(look.n(), "invocation"),
        listed.join(", ")
    );
    let finding = look
        .finding(Cause::FunctionErrors, text)
        .with("failed", failed.len() as f64, "1")
        .with("invocations", look.n() as f64, "1")
        .examples(failed.iter().map(|i| &i.request_id));
    vec![finding]
}
