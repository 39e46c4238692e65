//! DNS asked about every call although no connection is opened for it. Questions for a new connection are part of its set-up.

use super::{Cause, Finding, Look};
use crate::Part;
use crate::variant::median;
use std::collections::BTreeSet;

/// Calls needed before anything is said.
const ENOUGH_CALLS: usize = 5;
const NEARLY_EACH: f64 = 0.9;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let calls: usize = look.variant.calls().count();
    let mut asked = 0_usize;
    let mut ms = Vec::new();
    let mut examples = Vec::new();
    for (i, _) in &look.variant.invocations {
        let Some(env) = look.facts.of_env(i.env) else { continue };
        let inside = |ns: u64| (i.dispatched_ns..=i.finished_ns).contains(&ns);
        let mut names = BTreeSet::new();
        for q in env.dns.iter().filter(|q| inside(q.span.from_ns)) {
            // A and AAAA side by side are one question, asked within the first one's answer.
            if names.insert((&q.name, &q.qtype)) || q.qtype == "A" {
                ms.push(q.span.len_ns() as f64 / 1e6);
            }
            asked += usize::from(q.qtype == "A");
        }
        if asked > 0 {
            examples.push(&i.request_id);
        }
    }
    let opened = look.variant.calls().filter(|c| c.is_new()).count();
    let beside = asked.saturating_sub(opened);
    if calls < ENOUGH_CALLS
        || (beside as f64) < NEARLY_EACH * (calls - opened) as f64
        || beside < ENOUGH_CALLS
    {
        return Vec::new();
    }
    let each = median(ms).unwrap_or(0.0);
    let per_invocation = asked as f64 / look.n().max(1) as f64;
    let text = format!(
        "{asked} DNS questions for {calls} calls, only {opened} of which opened a connection; {each:.2} ms each (median): \
         the name is looked up again for nothing."
    );
    let saving = each * per_invocation;
    let finding =
        look.finding(Cause::DnsPerCall, text)
            .with("dns_questions", asked as f64, "1")
            .with("calls", calls as f64, "1")
            .with("dns_median", each, "ms")
            .share(look.variant.share(Part::Dns))
            .examples(examples)
            .remedy(look.saving(
                "Look the name up only when a connection is opened, or cache the answer.",
                Some(saving),
            ));
    vec![finding]
}
