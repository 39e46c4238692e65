//! The throttle lattice: wall times of CPU-bound work under a quota are near whole periods.
//!
//! A small median distance to the nearest multiple is by itself a diagnosis. Random values would be a quarter of the
//! period away (5 ms).

use crate::{Error, Sample};

/// Length of a CPU bandwidth period in ms (pwrdrvr/lambda-throttling, 2025-03).
pub const LATTICE_MS: f64 = 20.0;

/// Median distance of the values to the nearest multiple of `period`, 0 to `period` / 2.
pub fn lattice_residual(values: impl IntoIterator<Item = f64>, period: f64) -> Result<f64, Error> {
    let distances = values.into_iter().map(|v| (v - (v / period).round() * period).abs());
    Sample::new(distances).map(|s| s.median())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn aws_values_lie_on_the_lattice() {
        // First values of T1 at 128 MB.
        let aws = [80.5, 80.1, 40.7, 79.2, 60.0, 80.0, 60.4, 40.5];
        assert!((lattice_residual(aws, LATTICE_MS).expect("values") - 0.45).abs() < 1e-9);
        assert_eq!(lattice_residual([], LATTICE_MS), Err(Error::Empty));
    }

    proptest! {
        #[test]
        fn a_residual_is_at_most_half_a_period(values in prop::collection::vec(0.0..1e4_f64, 1..40)) {
            let residual = lattice_residual(values, LATTICE_MS).expect("values");
            prop_assert!((0.0..=LATTICE_MS / 2.0 + 1e-9).contains(&residual));
        }
    }
}
