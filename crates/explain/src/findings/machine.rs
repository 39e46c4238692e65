//! This machine was too busy: what follows is then not the function's fault.

use super::{Cause, Finding, Look};
use crate::{Context, Part};

/// How the runner's caveats about a busy machine begin.
const SATURATED: &str = "saturated:";

pub(super) fn find(context: &Context) -> Option<Finding> {
    let told = context.caveats.iter().find_map(|c| c.strip_prefix(SATURATED))?;
    let text = format!(
        "Read times with care:{told}. Compare variants with each other, not with AWS, or run again on an idle machine."
    );
    Some(Finding::new(Cause::HostSaturated, None, text))
}

/// From this share of a variant's time on, waiting for a CPU of this machine is worth a sentence.
const WAITED: f64 = 0.10;

/// A variant whose runtime was ready to run and had no CPU although its quota was not used up.
pub(super) fn waited(look: &Look<'_>) -> Vec<Finding> {
    let share = look.variant.share(Part::CpuWait);
    if share < WAITED {
        return Vec::new();
    }
    let text = format!(
        "For {:.0} % of the time the runtime was ready and had no CPU, though its quota was not used up: this machine was busy \
         with other things. Lambda would have been faster by that.",
        share * 100.0
    );
    let slowest = look.variant.invocations.iter().max_by_key(|(_, w)| w.parts[Part::CpuWait]);
    let finding = look
        .finding(Cause::HostSaturated, text)
        .with("cpu_wait_share", share, "ratio")
        .share(share)
        .examples(slowest.map(|(i, _)| &i.request_id));
    vec![finding]
}
