//! Calls to an extension on localhost that take whole quota periods: client and extension share the env's CPU.
//!
//! Such calls never reach the link. What is known of them is what the function's own X-Ray SDK tells.

use super::{Cause, Finding, Look};
use crate::variant::median;
use danki_stats::{LATTICE_MS, lattice_residual};

/// Calls needed, and how long their median must be: nearly a period.
const ENOUGH: usize = 20;
const LONG_MS: f64 = 15.0;
/// Median distance to the lattice of periods. Spread evenly it would be 5 ms; S4's hits at 128 MB are about 0.3 away.
const ON_LATTICE_MS: f64 = 3.0;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let name = Some(look.variant.name.as_str());
    let envs = look.facts.envs.values().filter(|env| env.variant.as_deref() == name);
    let took: Vec<f64> = envs.flat_map(|env| env.local_calls_ms.iter().copied()).collect();
    let Some(one) = median(took.iter().copied()).filter(|ms| *ms >= LONG_MS && took.len() >= ENOUGH) else {
        return Vec::new();
    };
    let on_lattice = lattice_residual(took.iter().copied(), LATTICE_MS).is_ok_and(|ms| ms < ON_LATTICE_MS);
    if !on_lattice {
        return Vec::new();
    }
    let (periods, per_invocation) = ((one / LATTICE_MS).round(), took.len() as f64 / look.n().max(1) as f64);
    let text = format!(
        "A call to localhost takes {one:.1} ms (median of {}, {per_invocation:.0} per invocation): {periods:.0} whole quota \
         periods of {LATTICE_MS:.0} ms. Caller and extension share the CPU of this memory size, which runs out within each call.",
        took.len(),
    );
    let finding = look
        .finding(Cause::ExtensionHitPeriods, text)
        .with("calls", took.len() as f64, "1")
        .with("call_median", one, "ms")
        .with("periods_per_call", periods, "1")
        .share(took.iter().sum::<f64>() / look.total_ms().max(f64::MIN_POSITIVE))
        .examples(look.variant.invocations.iter().map(|(i, _)| &i.request_id))
        .remedy(look.saving(
            "Keep the value in a variable of the function for a while, or ask for all values at once; more memory shortens each call \
             to the CPU that it needs.",
            None,
        ));
    vec![finding]
}
