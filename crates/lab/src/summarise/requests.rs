//! Requests as a load generator counts them.

use super::Returned;
use crate::experiment::Experiment;
use danki_explain::Variant as Explained;
use danki_load::Load;
use danki_record::RequestCounts;
use danki_stats::{Method, Sample};

/// Percentages that `ab` prints.
const PERCENT: [u32; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/// Of a load whose requests come side by side; a sequence's rate says nothing.
pub fn requests<'a>(
    experiment: &Experiment,
    variant: Option<&Explained>,
    returned: impl Iterator<Item = &'a Returned>,
) -> Option<RequestCounts> {
    if !matches!(experiment.load, Load::Closed { .. } | Load::Open { .. }) {
        return None;
    }
    let spans = variant?.invocations.iter().map(|(i, _)| (i.dispatched_ns, i.responded_ns));
    let spans: Vec<(u64, u64)> = spans.collect();
    let times = spans.iter().map(|(from_ns, to_ns)| to_ns.saturating_sub(*from_ns) as f64 / 1e6);
    let sample = Sample::new(times).ok()?;
    let percent = |percent: &u32| {
        (percent.to_string(), sample.quantile(f64::from(*percent) / 100.0, Method::NearestRank))
    };
    let not_2xx = |r: &&Returned| {
        r.function_error.is_none() && r.status_code.is_some_and(|code| !(200..300).contains(&code))
    };
    Some(RequestCounts {
        per_s: spans.len() as f64 / (busy_ns(spans) as f64 / 1e9).max(1e-9),
        non_2xx: returned.filter(not_2xx).count() as u64,
        percent_ms: PERCENT.iter().map(percent).collect(),
    })
}

/// Time in which at least one is under way: variants take turns, and the others' turns are not this one's time.
fn busy_ns(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut busy_ns, mut until_ns) = (0, 0);
    for (from_ns, to_ns) in spans {
        busy_ns += to_ns.saturating_sub(from_ns.max(until_ns));
        until_ns = until_ns.max(to_ns);
    }
    busy_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_not_time() {
        assert_eq!(busy_ns(vec![(50, 60), (0, 10), (5, 20), (6, 7)]), 30);
        assert_eq!(busy_ns(Vec::new()), 0);
    }
}
