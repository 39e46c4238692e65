//! Histograms with one bin width, and how far two of them are apart.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Counts of values rounded to the nearest multiple of a width: bin `k` is centred on `k · width`.
///
/// With a width of 20 ms this is the histogram of published table T1, where `<10` is bin 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histogram {
    width: f64,
    counts: BTreeMap<i64, u64>,
}

impl Histogram {
    /// An empty histogram; `width` must be positive.
    pub fn new(width: f64) -> Histogram {
        assert!(width > 0.0, "a bin has a positive width, not {width}");
        Histogram { width, counts: BTreeMap::new() }
    }

    /// Rounds each value to its bin; halves go up.
    pub fn of(width: f64, values: impl IntoIterator<Item = f64>) -> Histogram {
        let mut h = Histogram::new(width);
        for value in values {
            h.add((value / width + 0.5).floor() as i64, 1);
        }
        h
    }

    /// A histogram from published counts per bin.
    pub fn from_counts(width: f64, counts: impl IntoIterator<Item = (i64, u64)>) -> Histogram {
        let mut h = Histogram::new(width);
        for (bin, count) in counts {
            h.add(bin, count);
        }
        h
    }

    fn add(&mut self, bin: i64, count: u64) {
        *self.counts.entry(bin).or_default() += count;
    }

    /// Bin width.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// Non-empty bins in order: centre and count.
    pub fn bins(&self) -> impl Iterator<Item = (f64, u64)> {
        self.counts
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(bin, count)| (*bin as f64 * self.width, *count))
    }

    /// Number of values.
    pub fn n(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Share of values in bin `k`; 0 for an empty histogram.
    pub fn share(&self, bin: i64) -> f64 {
        match self.n() {
            0 => 0.0,
            n => *self.counts.get(&bin).unwrap_or(&0) as f64 / n as f64,
        }
    }

    /// Total-variation distance: the share of one that would have to move to make the other. 0 is equal, 1 disjoint.
    /// Absent if one is empty or the widths differ.
    pub fn distance(&self, other: &Histogram) -> Option<f64> {
        if self.width != other.width || self.n() == 0 || other.n() == 0 {
            return None;
        }
        let bins: BTreeSet<i64> = self.counts.keys().chain(other.counts.keys()).copied().collect();
        let sum: f64 = bins.into_iter().map(|bin| (self.share(bin) - other.share(bin)).abs()).sum();
        Some((sum / 2.0).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_go_to_the_nearest_bin() {
        let h = Histogram::of(20.0, [0.1, 9.99, 10.0, 29.9, 30.0, 40.0]);
        assert_eq!(h.bins().collect::<Vec<_>>(), [(0.0, 2), (20.0, 2), (40.0, 2)]);
    }

    #[test]
    fn published_t1_at_256_mb_against_the_prototype() {
        let aws = Histogram::from_counts(20.0, [(0, 3), (1, 116), (2, 61), (3, 4)]);
        let far = Histogram::from_counts(20.0, [(5, 1)]);
        assert_eq!(aws.n(), 184);
        assert_eq!((aws.distance(&aws), aws.distance(&far)), (Some(0.0), Some(1.0)));
        assert_eq!(aws.distance(&Histogram::new(20.0)), None);
        assert_eq!(aws.distance(&Histogram::from_counts(10.0, [(1, 1)])), None);
    }

    proptest! {
        #[test]
        fn a_distance_is_symmetric_within_0_and_1_and_obeys_the_triangle(
            a in prop::collection::vec(0.0..200.0_f64, 1..40),
            b in prop::collection::vec(0.0..200.0_f64, 1..40),
            c in prop::collection::vec(0.0..200.0_f64, 1..40),
        ) {
            let [a, b, c] = [a, b, c].map(|values| Histogram::of(20.0, values));
            let d = |x: &Histogram, y: &Histogram| x.distance(y).expect("same width, not empty");
            prop_assert!((0.0..=1.0).contains(&d(&a, &b)));
            prop_assert!((d(&a, &b) - d(&b, &a)).abs() < 1e-12);
            prop_assert!(d(&a, &c) <= d(&a, &b) + d(&b, &c) + 1e-12);
        }
    }
}
