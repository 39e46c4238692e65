//! A sample and its summary.

use crate::Method;
use serde::Serialize;

/// A sample: at least one value, all finite, sorted.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    sorted: Vec<f64>,
}

/// Values that are no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There are none.
    #[error("no values")]
    Empty,
    /// One is NaN or infinite.
    #[error("a value is not finite")]
    NotFinite,
}

impl Sample {
    /// Sorts `values`.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Result<Sample, Error> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        if sorted.is_empty() {
            return Err(Error::Empty);
        }
        if sorted.iter().any(|v| !v.is_finite()) {
            return Err(Error::NotFinite);
        }
        sorted.sort_by(f64::total_cmp);
        Ok(Sample { sorted })
    }

    /// Values, smallest first.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// Number of values, at least 1.
    pub fn n(&self) -> usize {
        self.sorted.len()
    }

    /// Smallest value.
    pub fn min(&self) -> f64 {
        self.sorted[0]
    }

    /// Largest value.
    pub fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    /// Arithmetic mean.
    pub fn mean(&self) -> f64 {
        let n = self.sorted.len() as f64;
        let mean = self.sorted.iter().map(|v| v / n).sum::<f64>();
        mean.clamp(self.min(), self.max())
    }

    /// Standard deviation with n − 1; absent for one value.
    pub fn sd(&self) -> Option<f64> {
        let (mean, n) = (self.mean(), self.sorted.len());
        (n > 1).then(|| (self.sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64).sqrt())
    }

    /// The quantile at probability `p` (0 to 1).
    pub fn quantile(&self, p: f64, method: Method) -> f64 {
        method.of_sorted(&self.sorted, p)
    }

    /// The interpolated median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5, Method::Interpolated)
    }

    /// The usual figures, with the method of their quantiles.
    pub fn summary(&self, method: Method) -> Summary {
        let q = |p| self.quantile(p, method);
        Summary {
            n: self.n(),
            min: self.min(),
            max: self.max(),
            mean: self.mean(),
            sd: self.sd(),
            p50: q(0.50),
            p90: q(0.90),
            p95: q(0.95),
            p99: q(0.99),
            method,
        }
    }
}

/// A sample in a few figures, in the sample's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n − 1; absent for one value.
    pub sd: Option<f64>,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile; look at [`crate::quantile_interval`] before quoting it.
    pub p99: f64,
    /// How the quantiles were computed.
    pub method: Method,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_known_sample() {
        let s = Sample::new([4.0, 2.0, 8.0, 6.0]).expect("finite");
        let summary = s.summary(Method::NearestRank);
        assert_eq!((summary.n, summary.min, summary.max, summary.mean), (4, 2.0, 8.0, 5.0));
        assert_eq!((summary.p50, summary.p90, s.median()), (4.0, 8.0, 5.0));
        assert!((s.sd().expect("four values") - (20.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Sample::new([1.0]).expect("finite").sd(), None);
        assert_eq!(Sample::new([]), Err(Error::Empty));
        assert_eq!(Sample::new([f64::NAN]), Err(Error::NotFinite));
    }

    proptest! {
        #[test]
        fn figures_are_ordered(values in prop::collection::vec(-1e9..1e9_f64, 1..60), ranks: bool) {
            let s = Sample::new(values).expect("finite");
            let u = s.summary(if ranks { Method::NearestRank } else { Method::Interpolated });
            let order = [u.min, u.p50, u.p90, u.p95, u.p99, u.max];
            prop_assert!(order.is_sorted(), "{order:?}");
            prop_assert!(u.min <= u.mean && u.mean <= u.max);
        }
    }
}
