//! Values of one minute: how many, their sum and extremes, and their quantiles to within half a per cent.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Each bin is one per cent wider than the one before: 1,400 of them reach from 1 ms to 15 min.
const GROWTH: f64 = 1.01;
/// What is not above zero has a bin of its own.
const ZERO: i16 = i16::MIN;

/// A sum with its extremes and quantiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The smallest; 0 of nothing.
    pub min: f64,
    /// The largest; 0 of nothing.
    pub max: f64,
    bins: BTreeMap<i16, u64>,
}

impl Distribution {
    /// Takes one more value.
    pub fn add(&mut self, value: f64) {
        self.stretch(value, value);
        self.sum += value;
        self.count += 1;
        *self.bins.entry(bin(value)).or_default() += 1;
    }

    /// Mean; 0 of nothing.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// The nearest-rank quantile, `p` from 0 to 1; 0 of nothing.
    pub fn quantile(&self, p: f64) -> f64 {
        let rank = (p * self.count as f64).ceil().max(1.0);
        let mut seen = 0;
        for (bin, count) in &self.bins {
            seen += count;
            if seen as f64 >= rank {
                return middle(*bin).clamp(self.min, self.max);
            }
        }
        self.max
    }

    fn stretch(&mut self, min: f64, max: f64) {
        let first = self.count == 0;
        self.min = if first { min } else { self.min.min(min) };
        self.max = if first { max } else { self.max.max(max) };
    }
}

impl AddAssign<&Distribution> for Distribution {
    fn add_assign(&mut self, other: &Distribution) {
        if other.count == 0 {
            return;
        }
        self.stretch(other.min, other.max);
        self.sum += other.sum;
        self.count += other.count;
        for (bin, count) in &other.bins {
            *self.bins.entry(*bin).or_default() += count;
        }
    }
}

fn bin(value: f64) -> i16 {
    if value > 0.0 { (value.ln() / GROWTH.ln()).floor() as i16 } else { ZERO }
}

fn middle(bin: i16) -> f64 {
    if bin == ZERO { 0.0 } else { GROWTH.powf(f64::from(bin) + 0.5) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quantile_is_within_half_a_per_cent(values in prop::collection::vec(0.001..1e6f64, 1..200), p in 0.0..=1.0f64, cut in 0..200usize) {
            let (mut one, mut other) = (Distribution::default(), Distribution::default());
            for (index, value) in values.iter().enumerate() {
                if index < cut { one.add(*value) } else { other.add(*value) }
            }
            one += &other;
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let rank = ((p * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let (exact, found) = (sorted[rank - 1], one.quantile(p));
            prop_assert!((found / exact - 1.0).abs() < 0.006, "{} for {}", found, exact);
            prop_assert_eq!((one.count as usize, one.min, one.max), (values.len(), sorted[0], sorted[values.len() - 1]));
        }

        #[test]
        fn any_value_has_a_bin(value in any::<f64>()) {
            let mut one = Distribution::default();
            one.add(value);
            one.quantile(0.5);
        }
    }
}
