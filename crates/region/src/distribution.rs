//! How long something takes, as a distribution that a person can write down.

use rand::Rng;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// The standard normal's 99th percentile.
const Z99: f64 = 2.326_347_874;

/// A redraw happens at most this often; then the bound itself is taken.
const REDRAWS: u32 = 32;

/// A duration's distribution. Written as `{ median_ms = 3, p99_ms = 8 }` (log-normal, optionally `max_ms`, drawn again
/// beyond it), `{ constant_ms = 2 }` or `{ min_ms = 1, max_ms = 4 }` (uniform).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Distribution {
    /// Always the same.
    Constant {
        /// In ms.
        ms: f64,
    },
    /// Long-tailed, as service times are.
    LogNormal {
        /// Median in ms.
        median_ms: f64,
        /// 99th percentile in ms (before the bound).
        p99_ms: f64,
        /// Never above, in ms.
        max_ms: Option<f64>,
    },
    /// Flat.
    Uniform {
        /// From, in ms.
        min_ms: f64,
        /// To, in ms.
        max_ms: f64,
    },
}

/// A distribution that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a time is one of {{ constant_ms }}, {{ median_ms, p99_ms, max_ms (optional) }}, {{ min_ms, max_ms }}, \
     with 0 <= all <= 600000 and min <= max, 0 < median <= p99, median <= max"
)]
pub struct DistributionInvalid;

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    constant_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ms: Option<f64>,
}

impl TryFrom<Written> for Distribution {
    type Error = DistributionInvalid;

    fn try_from(w: Written) -> Result<Self, DistributionInvalid> {
        let given = [w.constant_ms, w.median_ms, w.p99_ms, w.min_ms, w.max_ms];
        if given.into_iter().flatten().any(|ms| !(0.0..=600_000.0).contains(&ms)) {
            return Err(DistributionInvalid);
        }
        match (w.constant_ms, w.median_ms, w.p99_ms, w.min_ms, w.max_ms) {
            (Some(ms), None, None, None, None) => Ok(Distribution::Constant { ms }),
            (None, Some(median_ms), Some(p99_ms), None, max_ms)
                if median_ms > 0.0 && median_ms <= p99_ms && max_ms.is_none_or(|max| max >= median_ms) =>
            {
                Ok(Distribution::LogNormal { median_ms, p99_ms, max_ms })
            }
            (None, None, None, Some(min_ms), Some(max_ms)) if min_ms <= max_ms => {
                Ok(Distribution::Uniform { min_ms, max_ms })
            }
            _ => Err(DistributionInvalid),
        }
    }
}

impl From<Distribution> for Written {
    fn from(d: Distribution) -> Written {
        match d {
            Distribution::Constant { ms } => Written { constant_ms: Some(ms), ..Written::default() },
            Distribution::LogNormal { median_ms, p99_ms, max_ms } => {
                Written { median_ms: Some(median_ms), p99_ms: Some(p99_ms), max_ms, ..Written::default() }
            }
            Distribution::Uniform { min_ms, max_ms } => {
                Written { min_ms: Some(min_ms), max_ms: Some(max_ms), ..Written::default() }
            }
        }
    }
}

impl Distribution {
    /// The bound that no draw exceeds, in ms; infinite if there is none.
    pub fn max_ms(self) -> f64 {
        match self {
            Distribution::Constant { ms } => ms,
            Distribution::LogNormal { max_ms, .. } => max_ms.unwrap_or(f64::INFINITY),
            Distribution::Uniform { max_ms, .. } => max_ms,
        }
    }

    /// One draw, in ms.
    pub fn draw_ms(self, rng: &mut impl Rng) -> f64 {
        match self {
            Distribution::Constant { ms } => ms,
            Distribution::Uniform { min_ms, max_ms } => rng.random_range(min_ms..=max_ms),
            Distribution::LogNormal { median_ms, p99_ms, max_ms } => {
                let sigma = (p99_ms / median_ms).ln() / Z99;
                let max_ms = max_ms.unwrap_or(f64::INFINITY);
                (0..REDRAWS)
                    .map(|_| median_ms * (sigma * standard_normal(rng)).exp())
                    .find(|ms| *ms <= max_ms)
                    .unwrap_or(max_ms)
            }
        }
    }
}

/// Box–Muller, one of the pair.
fn standard_normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    #[test]
    fn written_and_read() {
        let check = |text: &str, expect: Option<Distribution>| {
            let read = toml::from_str::<Distribution>(text).ok();
            assert_eq!(read, expect, "{text}");
        };
        check("constant_ms = 2", Some(Distribution::Constant { ms: 2.0 }));
        check(
            "median_ms = 3\np99_ms = 8",
            Some(Distribution::LogNormal { median_ms: 3.0, p99_ms: 8.0, max_ms: None }),
        );
        check("min_ms = 1\nmax_ms = 4", Some(Distribution::Uniform { min_ms: 1.0, max_ms: 4.0 }));
        for bad in [
            "",
            "median_ms = 3",
            "median_ms = 0\np99_ms = 1",
            "median_ms = 9\np99_ms = 8",
            "min_ms = 2\nmax_ms = 1",
            "constant_ms = -1",
            "constant_ms = nan",
            "constant_ms = inf",
            "constant_ms = 1\nmax_ms = 2",
            "mean_ms = 3",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn draws_have_the_quantiles_asked_for_and_repeat_with_the_seed() {
        let d = Distribution::LogNormal { median_ms: 3.0, p99_ms: 8.0, max_ms: None };
        let draw = |seed| {
            let mut rng = SmallRng::seed_from_u64(seed);
            (0..20_001).map(|_| d.draw_ms(&mut rng)).collect::<Vec<f64>>()
        };
        assert_eq!(draw(7), draw(7));
        let mut sorted = draw(7);
        sorted.sort_by(f64::total_cmp);
        let (median, p99) = (sorted[10_000], sorted[19_800]);
        assert!((2.9..3.1).contains(&median), "median {median}");
        assert!((7.5..8.5).contains(&p99), "p99 {p99}");
    }

    #[test]
    fn the_bound_holds() {
        let mut rng = SmallRng::seed_from_u64(1);
        let d = Distribution::LogNormal { median_ms: 3.0, p99_ms: 8.0, max_ms: Some(3.5) };
        assert!((0..1_000).map(|_| d.draw_ms(&mut rng)).all(|ms| ms <= 3.5));
    }
}
