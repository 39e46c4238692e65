//! The first call of an env does CPU work that later ones do not: set-up put off until it is needed.

use super::{Cause, Finding, Look};
use crate::variant::median;
use danki_record::{Confidence, Invocation, Status};
use std::collections::BTreeMap;

/// CPU that the first call must use more than later ones, ms, and by which factor. The first TLS connection of a process loads
/// the trusted roots, which takes 30 to 65 ms here whatever the function does (`explain-corpus`, healthy-kept-*).
const EXTRA_MS: f64 = 80.0;
const FACTOR: f64 = 3.0;
/// Later calls needed on an env.
const LATER: usize = 2;

/// An env's first call against its later ones.
struct First<'a> {
    invocation: &'a Invocation,
    cpu_ms: f64,
    later_cpu_ms: f64,
    longer_ms: f64,
}

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut by_env: BTreeMap<_, Vec<&Invocation>> = BTreeMap::new();
    let fine = look.variant.invocations.iter().map(|(i, _)| i).filter(|i| i.status == Status::Ok);
    fine.for_each(|i| by_env.entry(i.env).or_default().push(i));
    let mut firsts = Vec::new();
    for of_env in by_env.values().filter(|all| all.len() > LATER) {
        let cpu = |i: &&Invocation| i.cpu_us as f64 / 1e3;
        let (Some(later), Some(later_ms)) =
            (median(of_env[1..].iter().map(cpu)), median(of_env[1..].iter().map(|i| i.duration_ms)))
        else {
            continue;
        };
        let invocation = of_env[0];
        let longer_ms = invocation.duration_ms - later_ms;
        firsts.push(First { invocation, cpu_ms: cpu(&invocation), later_cpu_ms: later, longer_ms });
    }
    let of = |f: fn(&First<'_>) -> f64| median(firsts.iter().map(f));
    let (Some(first), Some(later), Some(longer)) =
        (of(|f| f.cpu_ms), of(|f| f.later_cpu_ms), of(|f| f.longer_ms))
    else {
        return Vec::new();
    };
    if first < later + EXTRA_MS || first < later * FACTOR {
        return Vec::new();
    }
    let text = format!(
        "An env's first call uses {first:.0} ms of CPU and later ones {later:.1} ms (medians over {} envs): set-up that is put \
         off until the first request, under the quota instead of in init. It makes that call {longer:.0} ms longer.",
        firsts.len()
    );
    let finding = look
        .finding(Cause::LazyFirstCall, text)
        .with("first_cpu_median", first, "ms")
        .with("later_cpu_median", later, "ms")
        .with("longer", longer, "ms")
        .with("envs", firsts.len() as f64, "1")
        .confidence(Confidence::Medium)
        .examples(firsts.iter().map(|f| &f.invocation.request_id))
        .remedy(look.saving(
            format!(
                "Do it in init, at a whole vCPU: about {longer:.0} ms less for the first caller of each env."
            ),
            Some(longer * firsts.len() as f64 / look.n().max(1) as f64),
        ));
    vec![finding]
}
