//! Memory nearly used up.

use super::{Cause, Finding, Look};

/// Above this share of the memory size the next larger input ends in an out-of-memory error.
const NEARLY: f64 = 0.9;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let Some(setting) = look.setting() else { return Vec::new() };
    let mb = setting.memory.mb();
    let Some((most, _)) = look.variant.invocations.iter().max_by_key(|(i, _)| i.max_memory_used_mb) else {
        return Vec::new();
    };
    if f64::from(most.max_memory_used_mb) < NEARLY * f64::from(mb) {
        return Vec::new();
    }
    let text = format!(
        "{} of {mb} MB of memory were used: a somewhat larger input would end in an out-of-memory error.",
        most.max_memory_used_mb
    );
    let finding = look
        .finding(Cause::MemoryNearLimit, text)
        .with("max_memory_used", f64::from(most.max_memory_used_mb), "MB")
        .with("memory", f64::from(mb), "MB")
        .examples([&most.request_id])
        .remedy(look.saving("A larger memory size.", None));
    vec![finding]
}
