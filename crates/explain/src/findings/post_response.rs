//! The env works on after its response: the caller has its answer, but the env is neither free nor unpaid for.

use super::{Cause, Finding, Look};
use crate::cpu::{buckets, throttled};
use crate::variant::median;
use danki_record::{Confidence, CpuSeries, Invocation, Status};

/// Work after the response that is worth a sentence, ms at the median. A runtime asks for the next event within about 1 ms.
const LONG_MS: f64 = 10.0;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let fine = || look.variant.invocations.iter().map(|(i, _)| i).filter(|i| i.status == Status::Ok);
    let Some(own) = median(fine().map(|i| own_ms(look, i))) else { return Vec::new() };
    let Some(whole) = median(fine().map(after_ms)) else { return Vec::new() };
    if own < LONG_MS {
        return Vec::new();
    }
    let text = format!(
        "Envs go on for {whole:.0} ms after their response (median): an extension or background work. The caller does not \
         wait for it, but it is billed, and the next request needs another env until then."
    );
    let finding = look
        .finding(Cause::PostResponseWork, text)
        .with("after_response_median", whole, "ms")
        .with("after_response_unthrottled_median", own, "ms")
        .confidence(Confidence::High)
        .examples(fine().map(|i| &i.request_id))
        .remedy(look.saving(
            "Send telemetry less often (batch over invocations), or in fewer extensions.",
            Some(whole),
        ));
    vec![finding]
}

fn after_ms(i: &Invocation) -> f64 {
    i.finished_ns.saturating_sub(i.responded_ns) as f64 / 1e6
}

/// Time after the response without that in which the quota held it back: a runtime that is throttled on its way to the next
/// event does no work.
fn own_ms(look: &Look<'_>, i: &Invocation) -> f64 {
    let near = |s: &&CpuSeries| match (s.samples.first(), s.samples.last()) {
        (Some(first), Some(last)) => first.at_ns < i.finished_ns && last.at_ns > i.responded_ns,
        _ => false,
    };
    let held: u64 = look
        .facts
        .of_env(i.env)
        .into_iter()
        .flat_map(|env| env.cpu.iter().filter(near))
        .flat_map(|s| throttled(&buckets(s)))
        .map(|t| t.to_ns.min(i.finished_ns).saturating_sub(t.from_ns.max(i.responded_ns)))
        .sum();
    (after_ms(i) - held as f64 / 1e6).max(0.0)
}
