//! Measured against published.

use serde::Serialize;

/// A measured figure beside a published one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Ours.
    pub measured: f64,
    /// Theirs.
    pub published: f64,
}

impl Ratio {
    /// Measured / published; absent where that says nothing (a zero, a negative or a non-finite figure).
    pub fn value(self) -> Option<f64> {
        let usable = |v: f64| v.is_finite() && v > 0.0;
        (usable(self.measured) && usable(self.published)).then(|| self.measured / self.published)
    }

    /// The ratio is within ×/÷ `factor` (1 or more). False when there is no ratio.
    pub fn within_factor(self, factor: f64) -> bool {
        self.value().is_some_and(|r| r <= factor && r >= 1.0 / factor)
    }

    /// Measured deviates from published by at most `share` of it (0.03 is 3 %). False when there is no ratio.
    pub fn within_share(self, share: f64) -> bool {
        self.value().is_some_and(|r| (r - 1.0).abs() <= share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_work_both_ways() {
        let r = |measured, published| Ratio { measured, published };
        assert!(r(2.0, 1.0).within_factor(2.0) && r(0.5, 1.0).within_factor(2.0));
        assert!(!r(2.1, 1.0).within_factor(2.0) && !r(0.4, 1.0).within_factor(2.0));
        assert!(r(1.03, 1.0).within_share(0.0301) && !r(0.96, 1.0).within_share(0.03));
        assert_eq!(r(1.0, 0.0).value(), None);
        assert!(!r(f64::NAN, 1.0).within_factor(2.0));
    }
}
