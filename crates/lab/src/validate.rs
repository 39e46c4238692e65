//! Is the CPU model Lambda's? Checks of a `throttle-lattice` run against what was measured on AWS (T1).
//!
//! The loop's payload is tuned, by the function itself, so that an iteration costs the CPU it cost on AWS. Then the share
//! of CPU, the mean iteration and the histogram of wall times all follow from the quota and its period alone.
//!
//! Source of all figures: pwrdrvr/lambda-throttling @e5ec41e, run 2025-03-01 (MIT); `published-tables.md` T1.

#[cfg(test)]
mod phase;

use crate::results::Results;
use danki_model::MemoryMb;
use danki_record::Expectation;
use danki_stats::{Histogram, LATTICE_MS, Ratio};
use serde::Deserialize;

/// What AWS did at one memory size.
struct Published {
    memory_mb: u32,
    /// Share of CPU got.
    share: f64,
    /// Mean wall time of an iteration, ms.
    mean_ms: f64,
    /// Iterations by wall time, rounded to multiples of 20 ms.
    histogram: &'static [(i64, u64)],
}

const T1: [Published; 4] = [
    Published {
        memory_mb: 128,
        share: 0.0723,
        mean_ms: 57.48,
        histogram: &[(0, 2), (1, 5), (2, 22), (3, 35), (4, 17), (5, 5)],
    },
    Published {
        memory_mb: 256,
        share: 0.1325,
        mean_ms: 27.19,
        histogram: &[(0, 3), (1, 116), (2, 61), (3, 4)],
    },
    Published { memory_mb: 512, share: 0.2899, mean_ms: 13.49, histogram: &[(0, 128), (1, 235), (2, 7)] },
    Published { memory_mb: 1_024, share: 0.5805, mean_ms: 6.54, histogram: &[(0, 515), (1, 249)] },
];

/// Issue 2, T1: share against memory/1,769.
const SHARE_OFF: f64 = 0.03;
/// Issue 2, T1: mean iteration against AWS's.
const MEAN_OFF: f64 = 0.10;
/// Issue 2, T1: total-variation distance of the histograms.
const DISTANCE_MAX: f64 = 0.2;
const SOURCE: &str = "T1: pwrdrvr/lambda-throttling 2025-03-01";

/// What `functions/throttle-lattice` returns.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Burn {
    elapsed_ms: f64,
    wall_us: Vec<f64>,
    cpu_us: Vec<f64>,
}

/// Runs of one memory size, pooled.
#[derive(Debug, Default)]
struct Pool {
    runs: usize,
    elapsed_ms: f64,
    cpu_ms: f64,
    walls_ms: Vec<f64>,
}

/// What danki assumes about Lambda: `docs/validity.md`.
pub fn assumptions() -> String {
    danki_model::assumptions::validity()
}

/// The checks of a `throttle-lattice` run; empty if it has no variant of a published memory size.
pub fn lattice_checks(results: &Results) -> Vec<Expectation> {
    let of_size = |published: &Published| {
        let variant = results.summary.variants.iter().find(|v| v.memory_mb == published.memory_mb)?;
        let payloads = results.returned.iter().filter(|r| r.variant == variant.name).map(|r| &r.payload);
        let burns: Vec<Burn> = payloads.filter_map(|p| serde_json::from_value(p.clone()).ok()).collect();
        Some(checks(published, &pool(burns)))
    };
    T1.iter().filter_map(of_size).flatten().collect()
}

fn pool(burns: Vec<Burn>) -> Pool {
    let mut pool = Pool::default();
    for burn in burns {
        pool.runs += 1;
        pool.elapsed_ms += burn.elapsed_ms;
        pool.cpu_ms += burn.cpu_us.iter().sum::<f64>() / 1e3;
        pool.walls_ms.extend(burn.wall_us.iter().map(|us| us / 1e3));
    }
    pool
}

fn checks(published: &Published, pool: &Pool) -> [Expectation; 3] {
    let mb = published.memory_mb;
    let theory = MemoryMb::try_from(mb).map_or(0.0, MemoryMb::vcpus);
    let n = pool.walls_ms.len();
    let some = n > 0 && pool.elapsed_ms > 0.0;
    let share = some.then(|| pool.cpu_ms / pool.elapsed_ms);
    let mean = some.then(|| pool.walls_ms.iter().sum::<f64>() / n as f64);
    let here = Histogram::of(LATTICE_MS, pool.walls_ms.iter().copied());
    let aws = Histogram::from_counts(LATTICE_MS, published.histogram.iter().copied());
    let distance = here.distance(&aws);
    let close = |measured: Option<f64>, published: f64, off: f64| {
        measured.is_some_and(|measured| Ratio { measured, published }.within_share(off))
    };
    let pooled = format!("{n} iterations of {} runs", pool.runs);
    let deviation = |measured: Option<f64>, aws: f64| match measured {
        Some(measured) => format!("{:+.1} % from AWS; {pooled}", (measured / aws - 1.0) * 100.0),
        None => "nothing was measured".to_owned(),
    };
    let check =
        |name: &str, published: Option<f64>, measured: Option<f64>, within, allowed: String, reason| {
            Expectation {
                name: format!("{name} at {mb} MB"),
                metric: String::new(),
                published,
                measured,
                ratio: published.zip(measured).map(|(published, measured)| measured / published),
                within,
                allowed,
                source: SOURCE.to_owned(),
                reason,
            }
        };
    let percent = |share: f64| format!("± {:.0} %", share * 100.0);
    let of_theory = format!("{} of memory/1,769 = {theory:.4}", percent(SHARE_OFF));
    let shape = format!("here {} AWS {}; {pooled}", shares(&here), shares(&aws));
    [
        check(
            "CPU share",
            Some(published.share),
            share,
            close(share, theory, SHARE_OFF),
            of_theory,
            deviation(share, published.share),
        ),
        check(
            "mean iteration, ms,",
            Some(published.mean_ms),
            mean,
            close(mean, published.mean_ms, MEAN_OFF),
            percent(MEAN_OFF),
            deviation(mean, published.mean_ms),
        ),
        check(
            "distance of the 20 ms histograms",
            None,
            distance,
            distance.is_some_and(|d| d <= DISTANCE_MAX),
            format!("≤ {DISTANCE_MAX}"),
            shape,
        ),
    ]
}

/// `0:.02 20:.06 40:.26`: shares by bin, ms.
fn shares(histogram: &Histogram) -> String {
    let n = histogram.n().max(1) as f64;
    let bins = histogram.bins().map(|(centre, count)| format!("{centre:.0}:{:.2}", count as f64 / n));
    bins.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that did exactly what AWS did at 512 MB, and one that knows no quota.
    #[test]
    fn awss_own_histogram_passes_and_a_machine_without_quota_does_not() {
        let t1 = &T1[2];
        let walls = |bins: &[(i64, u64)]| -> Vec<f64> {
            bins.iter()
                .flat_map(|(bin, n)| std::iter::repeat_n((*bin as f64 * 20.0).max(4.0), *n as usize))
                .collect()
        };
        let verdicts = |walls_ms: Vec<f64>, share: f64| {
            let elapsed_ms: f64 = walls_ms.iter().sum();
            let pool = Pool { runs: 1, elapsed_ms, cpu_ms: elapsed_ms * share, walls_ms };
            checks(t1, &pool).map(|check| check.within)
        };
        assert_eq!(
            verdicts(walls(t1.histogram), 0.2894),
            [true, false, true],
            "4 ms is not the mean of the lowest bin"
        );
        assert_eq!(verdicts(vec![4.0; 300], 1.0), [false, false, false]);
        assert_eq!(checks(t1, &Pool::default()).map(|check| check.within), [false; 3]);
    }
}
