//! Endpoints answered with faults, and clients tried again.

use super::{Cause, Finding, Look, count};
use std::collections::BTreeMap;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut by_service: BTreeMap<&str, Faulty<'_>> = BTreeMap::new();
    for (invocation, w) in &look.variant.invocations {
        for (at, call) in w.calls.iter().enumerate() {
            let of = by_service.entry(call.service.as_str()).or_default();
            of.calls += 1;
            if call.fault.is_some() || call.status >= 500 {
                of.faults += 1;
                of.examples.push(&invocation.request_id);
                let next = w.calls[at + 1..]
                    .iter()
                    .find(|c| c.service == call.service && c.operation == call.operation);
                if let Some(next) = next {
                    of.retried += 1;
                    of.lost_ms += next.span.from_ns.saturating_sub(call.span.from_ns) as f64 / 1e6;
                }
            }
        }
    }
    let faulty = by_service.into_iter().filter(|(_, of)| of.faults > 0);
    faulty.map(|(service, of)| finding(look, service, &of)).collect()
}

#[derive(Default)]
struct Faulty<'a> {
    calls: usize,
    faults: usize,
    retried: usize,
    /// From a faulty call's begin to its successor's.
    lost_ms: f64,
    examples: Vec<&'a danki_model::RequestId>,
}

fn finding(look: &Look<'_>, service: &str, of: &Faulty<'_>) -> Finding {
    let per_invocation = of.lost_ms / look.n().max(1) as f64;
    let text = format!(
        "{service} answered {} of {} with a fault; {} made again, which took {:.1} ms in all, back-off included.",
        of.faults,
        count(of.calls, "call"),
        if of.retried == 1 { "1 was".to_owned() } else { format!("{} were", of.retried) },
        of.lost_ms
    );
    look.finding(Cause::RetriesAfterFault, text)
        .with("faults", of.faults as f64, "1")
        .with("calls", of.calls as f64, "1")
        .with("retried", of.retried as f64, "1")
        .with("lost", of.lost_ms, "ms")
        .share(of.lost_ms / look.total_ms().max(f64::MIN_POSITIVE))
        .examples(of.examples.iter().copied())
        .remedy(look.saving(
            "Ask the service less at once (capacity, batching), and look at the client's retry mode.",
            Some(per_invocation),
        ))
}
