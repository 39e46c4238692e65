//! Findings about starting and about CPU.

use super::{Finding, FindingKind, evidence, examples};
use crate::variant::median;
use crate::{Part, Variant};
use danki_record::Start;
use danki_stats::{LATTICE_MS, lattice_residual};

/// From this share of a variant's time on, throttling is worth a sentence.
const THROTTLED_SHARE: f64 = 0.05;

/// Durations are said to lie on the lattice when their median distance to it is below this, ms. Durations spread
/// evenly would be 5 ms away, AWS's own at 128 MB are 0.26 (published table T1).
const ON_LATTICE_MS: f64 = 2.0;

/// Durations needed before anything is said about their lattice.
const ENOUGH_DURATIONS: usize = 5;

pub(super) fn cold_starts(variant: &Variant) -> Option<Finding> {
    let all = variant.invocations.len();
    let cold: Vec<_> = variant.invocations.iter().filter(|(i, _)| i.start != Start::Warm).collect();
    let extra = |part| cold.iter().map(move |(_, w)| w.parts[part] as f64 / 1e6);
    let (init, wait) = (median(extra(Part::Init))?, median(extra(Part::EnvWait))?);
    let suppressed = cold.iter().filter(|(i, _)| i.start == Start::Suppressed).count();
    let again = match suppressed {
        0 => String::new(),
        n => format!(" ({n} of them initialised again after a failure)"),
    };
    Some(Finding {
        kind: FindingKind::ColdStarts,
        variant: variant.name.clone(),
        text: format!(
            "{} of {all} invocations waited for an env to initialise{again}: {init:.1} ms of init at the median, \
             {wait:.1} ms of waiting for the env before it.",
            cold.len()
        ),
        evidence: vec![
            evidence("cold", cold.len() as f64, "1"),
            evidence("invocations", all as f64, "1"),
            evidence("init_median", init, "ms"),
            evidence("env_wait_median", wait, "ms"),
        ],
        examples: examples(cold.iter().map(|(i, _)| &i.request_id)),
    })
}

pub(super) fn throttled(variant: &Variant) -> Option<Finding> {
    let share = variant.share(Part::CpuThrottled);
    if share < THROTTLED_SHARE {
        return None;
    }
    let held: Vec<_> = variant.invocations.iter().filter(|(_, w)| w.parts[Part::CpuThrottled] > 0).collect();
    let residual = lattice_residual(held.iter().map(|(i, _)| i.duration_ms), LATTICE_MS).ok()?;
    let mut text = format!(
        "The CPU quota held the function back for {:.0} % of its time ({} of {} invocations; {:.0} % was CPU in use): \
         more memory buys more CPU.",
        share * 100.0,
        held.len(),
        variant.invocations.len(),
        variant.share(Part::CpuOn) * 100.0,
    );
    if held.len() >= ENOUGH_DURATIONS && residual < ON_LATTICE_MS {
        text.push_str(&format!(
            " Durations lie on the {LATTICE_MS:.0} ms lattice of quota periods (median distance {residual:.2} ms)."
        ));
    }
    Some(Finding {
        kind: FindingKind::Throttled,
        variant: variant.name.clone(),
        text,
        evidence: vec![
            evidence("throttled_share", share, "ratio"),
            evidence("throttled_invocations", held.len() as f64, "1"),
            evidence("lattice_residual_median", residual, "ms"),
        ],
        examples: examples(held.iter().map(|(i, _)| &i.request_id)),
    })
}
