//! DNS asked about every call: nothing keeps the answer.

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
    if calls < ENOUGH_CALLS || (asked as f64) < NEARLY_EACH * calls as f64 {
        return Vec::new();
    }
    let each = median(ms).unwrap_or(0.0);
    let per_invocation = asked as f64 / look.n().max(1) as f64;
    let text = format!(
        "{asked} DNS questions for {calls} calls, {each:.2} ms each (median): nothing keeps the answer from one call to \
         the next."
    );
    let saving = each * per_invocation;
    let finding = look
        .finding(Cause::DnsPerCall, text)
        .with("dns_questions", asked as f64, "1")
        .with("calls", calls as f64, "1")
        .with("dns_median", each, "ms")
        .share(look.variant.share(Part::Dns))
        .examples(examples)
        .remedy(look.saving(
            "Keep the connection (no name is asked for then), or cache the lookup in the client.",
            Some(saving),
        ));
    vec![finding]
}
