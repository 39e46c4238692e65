//! Confidence intervals of quantiles that assume nothing about the distribution.
//!
//! The number of values below the true quantile is binomial, so two order statistics enclose it with a known
//! probability; each tail gets half of what is left. Below a certain n even the extremes are not enough (95 %: 72
//! values for p95, 368 for p99): then there is no interval, and the figure should not be quoted bare. Source: textbook
//! order statistics, `observe.md` §7. The values must be independent: pool envs or repetitions before leaning on it.

use crate::Sample;
use serde::Serialize;

/// Where the true quantile lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "interval", rename_all = "snake_case")]
pub enum Interval {
    /// Between two values of the sample.
    Known {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
        /// Probability that the interval holds the quantile; at least what was asked for.
        coverage: f64,
    },
    /// n is too small for any interval with this confidence.
    TooSmall {
        /// Values at hand.
        n: usize,
        /// Values needed.
        needs: usize,
    },
}

/// The two-sided interval of the quantile at `p`, e.g. `quantile_interval(&s, 0.95, 0.95)`. Both lie strictly between 0
/// and 1.
pub fn quantile_interval(sample: &Sample, p: f64, confidence: f64) -> Interval {
    let n = sample.n();
    let tail = (1.0 - confidence) / 2.0;
    let (mut below_low, mut low, mut up_to) = (0.0, 0_usize, 0.0);
    for (k, mass) in binomial(n, p).enumerate() {
        up_to += mass;
        if up_to <= tail {
            (low, below_low) = (k + 1, up_to);
        }
        // The interval [X(low), X(k + 1)] misses the quantile with probability `below_low` + (1 − `up_to`).
        if up_to >= 1.0 - tail && k < n {
            if low == 0 {
                break;
            }
            let values = sample.sorted();
            return Interval::Known {
                low: values[low - 1],
                high: values[k],
                coverage: (up_to - below_low).min(1.0),
            };
        }
    }
    Interval::TooSmall { n, needs: smallest_n(p, confidence) }
}

/// Fewest values from which the quantile at `p` has a two-sided interval at all.
pub fn smallest_n(p: f64, confidence: f64) -> usize {
    let tail = (1.0 - confidence) / 2.0;
    let rarer = p.max(1.0 - p);
    (tail.ln() / rarer.ln()).ceil() as usize
}

/// Probabilities of 0, 1, … n successes; in logarithms, as the first ones underflow for large n.
fn binomial(n: usize, p: f64) -> impl Iterator<Item = f64> {
    let odds = (p / (1.0 - p)).ln();
    let mut log_mass = n as f64 * (1.0 - p).ln();
    (0..=n).map(move |k| {
        let mass = log_mass.exp();
        log_mass += odds + ((n - k) as f64).ln() - (k as f64 + 1.0).ln();
        mass
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(n: usize) -> Sample {
        Sample::new((1..=n).map(|v| v as f64)).expect("finite")
    }

    #[test]
    fn published_minimum_sizes() {
        // observe.md §7
        for (p, needs) in [(0.95, 72), (0.99, 368), (0.999, 3_688), (0.5, 6)] {
            assert_eq!(smallest_n(p, 0.95), needs);
            assert_eq!(
                quantile_interval(&first(needs - 1), p, 0.95),
                Interval::TooSmall { n: needs - 1, needs }
            );
            assert!(matches!(quantile_interval(&first(needs), p, 0.95), Interval::Known { .. }), "{p}");
        }
    }

    #[test]
    fn ranks_of_a_median() {
        // Textbook: for n = 100, ranks 40 and 61 hold the median with 96.5 %.
        let Interval::Known { low, high, coverage } = quantile_interval(&first(100), 0.5, 0.95) else {
            panic!("large enough");
        };
        assert_eq!((low, high), (40.0, 61.0));
        assert!((coverage - 0.9648).abs() < 1e-4, "{coverage}");
    }

    proptest! {
        #[test]
        fn coverage_is_kept_and_the_estimate_lies_inside(n in 6_usize..3_000, p in 0.02..0.98_f64) {
            if let Interval::Known { low, high, coverage } = quantile_interval(&first(n), p, 0.95) {
                let estimate = first(n).quantile(p, crate::Method::NearestRank);
                prop_assert!(coverage >= 0.95 - 1e-9);
                prop_assert!(low <= estimate && estimate <= high, "{low} {estimate} {high}");
            } else {
                prop_assert!(n < smallest_n(p, 0.95) + 1);
            }
        }
    }
}
