//! What an invocation costs: `lambda-platform.md` §9.

use crate::MemoryMb;

/// Processor architecture that is billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64
    X86,
    /// arm64 (Graviton)
    Arm,
}

/// Prices in USD, first tier, without the free tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// One request.
    pub request: f64,
    /// One GB-second of duration; GB = 1,024 MB.
    pub gb_second: f64,
    /// One GB-second of `/tmp` above 512 MB.
    pub ephemeral_gb_second: f64,
    /// Where and when they hold.
    pub source: &'static str,
}

/// `/tmp` that is free, in MB.
const EPHEMERAL_FREE_MB: u32 = 512;

const SOURCE: &str =
    "us-east-1, first tier; AWS price list and pricing page as read in 2026-01, init billed since 2025-08-01";

impl Architecture {
    /// The price table.
    pub fn prices(self) -> Prices {
        let gb_second = match self {
            Architecture::X86 => 0.000_016_666_7,
            Architecture::Arm => 0.000_013_333_4,
        };
        Prices { request: 0.20 / 1e6, gb_second, ephemeral_gb_second: 0.000_000_030_9, source: SOURCE }
    }
}

/// Billed duration in ms: the sum of duration and init, rounded up, at least 1.
///
/// The sum is rounded, not its terms (checked against recorded REPORT lines). Both are taken to the µs, so that a
/// binary fraction does not push 10,938.00 over.
pub fn billed_ms(duration_ms: f64, init_ms: Option<f64>) -> u64 {
    let sum_us = ((duration_ms + init_ms.unwrap_or(0.0)).max(0.0) * 1_000.0).round() as u64;
    sum_us.div_ceil(1_000).max(1)
}

/// GB-seconds of a billed duration.
pub fn gb_seconds(billed_ms: u64, memory: MemoryMb) -> f64 {
    f64::from(memory.mb()) / 1_024.0 * billed_ms as f64 / 1_000.0
}

/// Cost of one invocation in USD: request, duration, and `/tmp` above 512 MB.
pub fn cost_usd(billed_ms: u64, memory: MemoryMb, ephemeral_mb: u32, architecture: Architecture) -> f64 {
    let prices = architecture.prices();
    let ephemeral_gb = f64::from(ephemeral_mb.saturating_sub(EPHEMERAL_FREE_MB)) / 1_024.0;
    prices.request
        + prices.gb_second * gb_seconds(billed_ms, memory)
        + prices.ephemeral_gb_second * ephemeral_gb * billed_ms as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mb(n: u32) -> MemoryMb {
        MemoryMb::try_from(n).expect("in range")
    }

    #[test]
    fn billed_durations_are_as_recorded() {
        for (duration, init, billed) in [
            (3.10, Some(542.01), 546),
            (1_655.10, Some(322.04), 1_978),
            (1_233.96, Some(463.512), 1_698),
            (10_000.00, Some(938.0), 10_938),
            (1_220.41, None, 1_221),
            (0.0, None, 1),
            (0.7 + 0.1 + 0.2, None, 1),
        ] {
            assert_eq!(billed_ms(duration, init), billed, "{duration} {init:?}");
        }
    }

    #[test]
    fn a_million_short_invocations() {
        let one = cost_usd(1, mb(128), 512, Architecture::X86);
        assert!((one - 0.2e-6 - 2.083e-9).abs() < 1e-12, "{one}");
        assert!(
            cost_usd(1_000, mb(1_024), 512, Architecture::Arm)
                < cost_usd(1_000, mb(1_024), 512, Architecture::X86)
        );
        let disk = cost_usd(1_000, mb(128), 1_536, Architecture::X86)
            - cost_usd(1_000, mb(128), 512, Architecture::X86);
        assert!((disk - 3.09e-8).abs() < 1e-12, "{disk}");
    }

    proptest! {
        #[test]
        fn billed_is_never_less_and_at_most_one_more(duration in 0.0..900_000.0_f64, init in 0.0..10_000.0_f64) {
            let billed = billed_ms(duration, Some(init)) as f64;
            prop_assert!(billed >= duration + init - 0.001 && billed < duration + init + 1.001);
        }
    }
}
