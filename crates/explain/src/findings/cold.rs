//! Cold starts: how many, what they cost.

use super::{Cause, Finding, Look, count};
use crate::Part;
use crate::variant::median;
use danki_record::Start;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let cold: Vec<_> = look.variant.invocations.iter().filter(|(i, _)| i.start == Start::Cold).collect();
    let part = |part| median(cold.iter().map(|(_, w)| w.parts[part] as f64 / 1e6));
    let (Some(init), Some(wait)) = (part(Part::Init), part(Part::EnvWait)) else { return Vec::new() };
    let time: f64 =
        cold.iter().map(|(_, w)| (w.parts[Part::Init] + w.parts[Part::EnvWait]) as f64 / 1e6).sum();
    let text = format!(
        "{} of {} waited for an env to initialise: {init:.1} ms of init at the median, {wait:.1} ms of waiting for the env \
         before it.",
        cold.len(),
        count(look.n(), "invocation"),
    );
    let finding = look
        .finding(Cause::ColdStarts, text)
        .with("cold", cold.len() as f64, "1")
        .with("invocations", look.n() as f64, "1")
        .with("init_median", init, "ms")
        .with("env_wait_median", wait, "ms")
        .share(time / look.total_ms().max(f64::MIN_POSITIVE))
        .examples(cold.iter().map(|(i, _)| &i.request_id));
    vec![finding]
}
