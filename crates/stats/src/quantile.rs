//! Two ways to compute a quantile. They differ visibly in small samples, so every figure names its method.

use serde::Serialize;
use std::fmt;

/// How a quantile is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The value at rank ⌈p·n⌉: always a value of the sample.
    NearestRank,
    /// Linear between the values around (n − 1)·p: type 7 of Hyndman and Fan (1996), the default of R and NumPy.
    Interpolated,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::NearestRank => "nearest rank",
            Method::Interpolated => "interpolated (type 7)",
        })
    }
}

impl Method {
    /// `sorted` must not be empty; `p` outside 0 to 1 is taken as the nearer end.
    pub(crate) fn of_sorted(self, sorted: &[f64], p: f64) -> f64 {
        let last = sorted.len() - 1;
        let p = p.clamp(0.0, 1.0);
        match self {
            Method::NearestRank => {
                // 0.07 · 100 is 7.000000000000001: do not let a rounding error raise the rank.
                let rank = (p * sorted.len() as f64 - 1e-9).ceil() as usize;
                sorted[rank.saturating_sub(1).min(last)]
            }
            Method::Interpolated => {
                let position = p * last as f64;
                let below = (position.floor() as usize).min(last);
                let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
                let value = low + (high - low) * (position - below as f64);
                value.clamp(low, high)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_methods_on_small_samples() {
        let check = |values: &[f64], p: f64, rank: f64, interpolated: f64| {
            assert_eq!(Method::NearestRank.of_sorted(values, p), rank, "rank {p}");
            assert!(
                (Method::Interpolated.of_sorted(values, p) - interpolated).abs() < 1e-9,
                "interpolated {p}"
            );
        };
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        check(&hundred, 0.07, 7.0, 7.93);
        check(&hundred, 0.5, 50.0, 50.5);
        check(&hundred, 0.99, 99.0, 99.01);
        check(&hundred, 1.0, 100.0, 100.0);
        check(&hundred, 0.0, 1.0, 1.0);
        check(&[1.0, 2.0, 4.0], 0.5, 2.0, 2.0);
        check(&[1.0, 2.0, 4.0], 0.75, 4.0, 3.0);
        check(&[7.0], 0.99, 7.0, 7.0);
    }

    proptest! {
        #[test]
        fn nearest_rank_leaves_at_least_p_at_or_below(n in 1_usize..200, percent in 1_u32..=100) {
            let sorted: Vec<f64> = (0..n).map(|v| v as f64).collect();
            let q = Method::NearestRank.of_sorted(&sorted, f64::from(percent) / 100.0);
            let at_or_below = sorted.iter().filter(|v| **v <= q).count() as u64;
            prop_assert!(at_or_below * 100 >= u64::from(percent) * n as u64);
            prop_assert!((at_or_below - 1) * 100 < u64::from(percent) * n as u64);
        }
    }
}
