//! Waits for a CPU: the runtime's first thread was ready to run and did not run.
//!
//! Sampled about every ms and booked when the wait *ends*, so a wait found in a bucket began there or before it. A thread that its quota holds
//! back is ready too: what is throttled already is not counted again. What is left is the machine's own delay: waking a CPU that
//! slept, or other work on it. What the hypervisor took of a CPU is counted apart, and beside being throttled.

use crate::spans::span;
use danki_record::{CpuWaitCounted, CpuWaitSeries, Span};

/// Somewhere in `window` the thread waited for `waited_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) window: Span,
    pub(crate) waited_ns: u64,
    /// Being throttled is part of it.
    pub(crate) with_throttled: bool,
}

/// The waits of a series; samples are in order of time.
pub(crate) fn waits(series: &CpuWaitSeries) -> Vec<Wait> {
    let with_throttled = series.counted == CpuWaitCounted::Ready;
    let pairs = series.samples.windows(2);
    let waits = pairs.filter_map(|pair| {
        let waited_ns = pair[1].waited_ns.saturating_sub(pair[0].waited_ns);
        let earliest = pair[1].at_ns.saturating_sub(waited_ns).min(pair[0].at_ns);
        (waited_ns > 0).then(|| Wait { window: span(earliest, pair[1].at_ns), waited_ns, with_throttled })
    });
    waits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use danki_record::CpuWaitSample;

    fn check(samples: &[(u64, u64)], expect: &[(u64, u64, u64)]) {
        let samples = samples.iter().map(|&(at_ns, waited_ns)| CpuWaitSample { at_ns, waited_ns }).collect();
        let found =
            waits(&CpuWaitSeries { env: danki_model::EnvId(1), counted: CpuWaitCounted::Ready, samples });
        let found: Vec<_> = found.iter().map(|w| (w.window.from_ns, w.window.to_ns, w.waited_ns)).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn a_wait_lies_in_its_bucket_or_reaches_before_it() {
        check(&[(100, 5), (110, 5), (120, 8)], &[(110, 120, 3)]);
        check(&[(100, 5), (110, 5), (120, 45)], &[(80, 120, 40)]);
        check(&[(100, 5), (110, 0)], &[]);
        check(&[], &[]);
    }
}
