//! How long traces took, as a picture of characters: what S1's author looked at in X-Ray's console.

use std::fmt::Write as _;

/// Bars of the picture.
const BINS: usize = 20;
/// Characters of the longest bar.
const WIDTH: usize = 50;

/// A histogram of response times in ms on a logarithmic scale, a line per bin; empty without times.
pub fn distribution(response_ns: &[u64]) -> String {
    let positive = || response_ns.iter().map(|ns| (*ns).max(1_000) as f64 / 1e6);
    let (low, high) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
    if response_ns.is_empty() {
        return String::new();
    }
    // All the same: one bin.
    let bins = if high > low * 1.001 { BINS } else { 1 };
    let step = (high / low).ln().max(1e-9) / bins as f64;
    let mut counts = vec![0_usize; bins];
    for ms in positive() {
        let at = ((ms / low).ln() / step) as usize;
        counts[at.min(bins - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let mut out = format!("{:>10} {:>10} {:>8}\n", "from ms", "to ms", "traces");
    for (n, count) in counts.iter().enumerate() {
        let edge = |n: usize| low * (step * n as f64).exp();
        let bar = "█".repeat((count * WIDTH).div_ceil(most));
        // Writing to a string cannot fail.
        let _fine = writeln!(out, "{:>10.2} {:>10.2} {count:>8} {bar}", edge(n), edge(n + 1));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trace_is_in_one_bin() {
        let check = |times: &[u64], lines: usize| {
            let text = distribution(times);
            let counted: usize = text
                .lines()
                .skip(1)
                .filter_map(|line| line.split_whitespace().nth(2)?.parse::<usize>().ok())
                .sum();
            assert_eq!((counted, text.lines().count()), (times.len(), lines), "{text}");
        };
        check(&[], 0);
        check(&[5_000_000], 2);
        check(&[5_000_000; 7], 2);
        check(&[0, 1, 1_000_000, 40_000_000, 900_000_000, u64::MAX], BINS + 1);
    }
}
