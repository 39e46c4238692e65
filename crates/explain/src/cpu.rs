//! CPU counters → how much CPU time lies in which stretch, and when the quota held the env back.
//!
//! Counters are cumulative and sampled about every millisecond; between two samples ("bucket") only the amount is
//! known. The kernel books a throttle when it ends, per CPU: a jump Δ at a sample means that somewhere before it the
//! env was denied CPU for Δ of CPU-wait, at most as long as no process of it ran. So Δ is laid back from the sample's
//! bucket, leaving room for the CPU time of that bucket (which came after the throttle), over at most Δ and at most
//! back to where the CPU last advanced (the CPU time of *that* bucket came before the throttle).
//!
//! CPU time is booked late too: the kernel adds a running process's time at the scheduler's tick (4 ms at HZ=250) or when the
//! process stops running. What a bucket has no room for was used up to [`TICK_NS`] before it.

use crate::spans::span;
use danki_record::{CpuSample, CpuSeries, Span};

/// The stretch between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) span: Span,
    /// CPU time used in it, ns; several CPUs may use more than its length.
    pub(crate) used_ns: u64,
    /// Throttled time booked in it, ns, summed over CPUs.
    pub(crate) booked_ns: u64,
}

impl Bucket {
    /// CPU time as wall time: the time during which at least one process ran is at most this.
    pub(crate) fn on_ns(&self) -> u64 {
        self.used_ns.min(self.span.len_ns())
    }
}

/// Buckets of a series; samples are in order of time.
pub(crate) fn buckets(series: &CpuSeries) -> Vec<Bucket> {
    let bucket = |pair: &[CpuSample]| Bucket {
        span: span(pair[0].at_ns, pair[1].at_ns),
        used_ns: pair[1].usage_ns.saturating_sub(pair[0].usage_ns),
        booked_ns: pair[1].throttled_ns.saturating_sub(pair[0].throttled_ns),
    };
    series.samples.windows(2).map(bucket).filter(|b| b.span.len_ns() > 0).collect()
}

/// How late CPU time may be booked: the longest tick of a common kernel (HZ=100); ours and Lambda's are shorter.
pub(crate) const TICK_NS: u64 = 10_000_000;

/// When the env was throttled, in order of booking; spans may overlap (two CPUs booked one after the other).
pub(crate) fn throttled(buckets: &[Bucket]) -> Vec<Span> {
    let mut found = Vec::new();
    // Earliest instant at which a throttle that is booked next can have begun.
    let mut since = buckets.first().map_or(0, |b| b.span.from_ns);
    for b in buckets {
        let end = b.span.to_ns - b.on_ns();
        if b.booked_ns > 0 && end > since {
            found.push(span(end.saturating_sub(b.booked_ns).max(since), end));
        }
        if b.used_ns > 0 {
            since = if b.booked_ns > 0 { b.span.to_ns } else { b.span.from_ns + b.on_ns() };
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples as (at, usage, throttled).
    fn check(samples: &[(u64, u64, u64)], expect: &[(u64, u64)]) {
        let sample =
            |&(at_ns, usage_ns, throttled_ns): &(u64, u64, u64)| CpuSample { at_ns, usage_ns, throttled_ns };
        let series = CpuSeries { env: danki_model::EnvId(1), samples: samples.iter().map(sample).collect() };
        let spans: Vec<_> = throttled(&buckets(&series)).iter().map(|s| (s.from_ns, s.to_ns)).collect();
        assert_eq!(spans, expect);
    }

    #[test]
    fn a_jump_is_laid_back_to_where_the_cpu_last_advanced() {
        // Ran 4 of the first 10, stood still, was unthrottled with 3 of the last 10 left to run.
        check(&[(0, 0, 0), (10, 4, 0), (20, 4, 0), (30, 7, 23)], &[(4, 27)]);
        // Two CPUs book twice as much: bounded by the standstill.
        check(&[(0, 0, 0), (10, 4, 0), (20, 4, 0), (30, 7, 46)], &[(4, 27)]);
        // A shorter throttle: the env waited for something else first.
        check(&[(0, 0, 0), (10, 4, 0), (20, 4, 0), (30, 7, 5)], &[(22, 27)]);
        // Throttled twice in a row: the second begins after the CPU time between.
        check(&[(0, 0, 0), (10, 4, 0), (20, 6, 12), (30, 6, 12), (40, 8, 30)], &[(6, 18), (20, 38)]);
        // Only the ends were sampled.
        check(&[(0, 0, 0), (100, 30, 60)], &[(10, 70)]);
        // Busy throughout on one CPU while another was throttled: no time left in which nothing ran.
        check(&[(0, 0, 0), (10, 10, 0), (20, 20, 8)], &[]);
        check(&[(0, 5, 5)], &[]);
        check(&[], &[]);
    }
}
