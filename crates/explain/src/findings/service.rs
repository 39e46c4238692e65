//! The service itself takes the time: neither connections nor CPU would help.

use super::{Cause, Finding, Look};
use crate::Part;
use crate::variant::median;
use std::collections::BTreeMap;

/// The service must take at least this share of the variant's time, and so long per call.
const SHARE: f64 = 0.4;
const SLOW_MS: f64 = 20.0;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let share = look.variant.share(Part::ServiceTime);
    if share < SHARE {
        return Vec::new();
    }
    let mut by_service: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for call in look.variant.calls() {
        by_service.entry(call.service.as_str()).or_default().push(call.service_time.len_ns() as f64 / 1e6);
    }
    let slowest = by_service.iter().max_by(|a, b| a.1.iter().sum::<f64>().total_cmp(&b.1.iter().sum()));
    let Some((service, times)) = slowest else { return Vec::new() };
    let Some(one) = median(times.iter().copied()).filter(|ms| *ms >= SLOW_MS) else { return Vec::new() };
    let per_invocation = times.len() as f64 / look.n().max(1) as f64;
    let text = format!(
        "{:.0} % of the time {service} works: {one:.1} ms per request (median of {}), {per_invocation:.1} requests per \
         invocation. Neither memory nor connections change that.",
        share * 100.0,
        times.len(),
    );
    let finding = look
        .finding(Cause::ServiceSlow, text)
        .with("service_share", share, "ratio")
        .with("service_time_median", one, "ms")
        .with("requests_per_invocation", per_invocation, "1")
        .share(share)
        .examples(look.variant.invocations.iter().map(|(i, _)| &i.request_id))
        .remedy(look.saving(
            "Ask for less (keys instead of scans, projection, batch, cache), or side by side.",
            None,
        ));
    vec![finding]
}
