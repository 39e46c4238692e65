//! Is B slower than A? A bootstrap over envs, and a word.
//!
//! Invocations of one env are alike (its place on the 20 ms lattice, its caches), so they are no independent samples: whole
//! envs are drawn first, then invocations within each. The interval is the percentile one of ln(B / A), widened for few
//! envs by t/z · √(k / (k − 1)), the small-sample correction of Hesterberg (2015, "What teachers should know about the
//! bootstrap", §4.1). With one env per side envs cannot be drawn: then invocations alone are, and [`Comparison::over`] says so.

use crate::Method;
use serde::Serialize;

/// What is compared and how sure the answer must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// Which quantile, 0 to 1.
    pub quantile: f64,
    /// Probability that the interval holds the true ratio, e.g. 0.99.
    pub confidence: f64,
    /// Differences below this share are called none, even if they are certain.
    pub least_effect: f64,
    /// How often samples are drawn.
    pub resamples: u32,
    /// Seed of the draws.
    pub seed: u64,
}

/// The answer in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B is faster than A.
    Faster,
    /// B is slower than A.
    Slower,
    /// The interval holds "equal" and is narrow, or the difference is below the least effect.
    NoDifference,
    /// The interval holds "equal" and is too wide to say that.
    NotEnoughData,
}

/// What the interval is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Envs, and invocations within them.
    Envs,
    /// Invocations only: a side has a single env, whose own luck is in the figure.
    Invocations,
}

/// B against A.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The quantile of A's values.
    pub a: f64,
    /// The quantile of B's values.
    pub b: f64,
    /// b / a.
    pub ratio: f64,
    /// Interval of the ratio.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// In a word.
    pub verdict: Verdict,
    /// What was drawn.
    pub over: Over,
}

/// An interval wider than ×/÷ this does not show that there is no difference.
const WIDE: f64 = 1.25;
/// Fewer values on a side show nothing.
const FEWEST: usize = 5;

impl Verdict {
    /// As in tables.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no difference",
            Verdict::NotEnoughData => "not enough data",
        }
    }
}

/// Compares positive values, one list per env and side; none if a side has no positive values.
pub fn compare(a: &[Vec<f64>], b: &[Vec<f64>], question: &Question) -> Option<Comparison> {
    let (a, b) = (usable(a), usable(b));
    let (whole_a, whole_b) = (quantile(&mut a.concat(), question)?, quantile(&mut b.concat(), question)?);
    let ratio = whole_b / whole_a;
    let fewest_envs = a.len().min(b.len());
    let over = if fewest_envs > 1 { Over::Envs } else { Over::Invocations };
    let mut rng = SplitMix(question.seed);
    let mut drawn: Vec<f64> = (0..question.resamples.max(1))
        .filter_map(|_| {
            let of_a = quantile(&mut draw(&a, over, &mut rng), question)?;
            let of_b = quantile(&mut draw(&b, over, &mut rng), question)?;
            Some((of_b / of_a).ln())
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    let tail = (1.0 - question.confidence) / 2.0;
    let at = |p: f64| Method::Interpolated.of_sorted(&drawn, p);
    let widen = if over == Over::Envs { widening(fewest_envs, tail) } else { 1.0 };
    let middle = ratio.ln();
    let low = (middle - (middle - at(tail)).max(0.0) * widen).exp();
    let high = (middle + (at(1.0 - tail) - middle).max(0.0) * widen).exp();
    let enough = a.concat().len().min(b.concat().len()) >= FEWEST;
    let verdict = verdict(ratio, low, high, question.least_effect, enough);
    Some(Comparison { a: whole_a, b: whole_b, ratio, low, high, verdict, over })
}

fn verdict(ratio: f64, low: f64, high: f64, least: f64, enough: bool) -> Verdict {
    let matters = ratio > 1.0 + least || ratio < 1.0 / (1.0 + least);
    match (enough, low > 1.0, high < 1.0) {
        (false, ..) => Verdict::NotEnoughData,
        (true, true, _) if matters => Verdict::Slower,
        (true, _, true) if matters => Verdict::Faster,
        _ if high / low > WIDE * WIDE => Verdict::NotEnoughData,
        _ => Verdict::NoDifference,
    }
}

fn usable(envs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let positive = |env: &Vec<f64>| env.iter().copied().filter(|v| v.is_finite() && *v > 0.0).collect();
    envs.iter().map(positive).filter(|env: &Vec<f64>| !env.is_empty()).collect()
}

fn quantile(values: &mut [f64], question: &Question) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    Some(Method::Interpolated.of_sorted(values, question.quantile))
}

fn draw(envs: &[Vec<f64>], over: Over, rng: &mut SplitMix) -> Vec<f64> {
    let mut drawn = Vec::new();
    for at in 0..envs.len() {
        let env = if over == Over::Envs { &envs[rng.below(envs.len())] } else { &envs[at] };
        drawn.extend((0..env.len()).map(|_| env[rng.below(env.len())]));
    }
    drawn
}

/// t/z · √(k/(k−1)) for k envs; t by the expansion of Abramowitz and Stegun 26.7.5, good to a few per cent from 3 degrees of
/// freedom on, exact for 1 and 2.
fn widening(k: usize, tail: f64) -> f64 {
    let df = (k - 1) as f64;
    let z = normal_quantile(1.0 - tail);
    let t = match k {
        2 => (std::f64::consts::PI * (0.5 - tail)).tan(),
        3 => {
            let p = 1.0 - 2.0 * tail;
            p * (2.0 / (1.0 - p * p)).sqrt()
        }
        _ => {
            let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
            z + (z3 + z) / (4.0 * df)
                + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * df.powi(2))
                + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * df.powi(3))
        }
    };
    t / z * (k as f64 / df).sqrt()
}

/// Upper quantile of the normal distribution, absolute error below 4.5e-4 (Abramowitz and Stegun 26.2.23).
fn normal_quantile(p: f64) -> f64 {
    let t = (-2.0 * (1.0 - p).ln()).sqrt();
    t - (2.515_517 + 0.802_853 * t + 0.010_328 * t * t)
        / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t * t * t)
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, seeded, good enough for drawing with replacement.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not 0; the bias of the remainder is below n / 2⁶⁴.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUESTION: Question =
        Question { quantile: 0.5, confidence: 0.99, least_effect: 0.01, resamples: 400, seed: 1 };

    /// Envs of values around `level`, each env with its own offset, each value with its own.
    fn sample(seed: u64, envs: usize, n: usize, level: f64) -> Vec<Vec<f64>> {
        let mut rng = SplitMix(seed);
        let mut around = |width: f64| 1.0 + width * (rng.below(2_001) as f64 / 1_000.0 - 1.0);
        (0..envs)
            .map(|_| {
                let env = level * around(0.03);
                (0..n).map(|_| env * around(0.10)).collect()
            })
            .collect()
    }

    fn verdicts(runs: u64, factor: f64) -> Vec<Verdict> {
        let of = |run: u64| {
            let (a, b) = (sample(run * 2 + 1, 8, 20, 100.0), sample(run * 2 + 2, 8, 20, 100.0 * factor));
            compare(&a, &b, &Question { seed: run, ..QUESTION }).expect("values").verdict
        };
        (0..runs).map(of).collect()
    }

    #[test]
    fn the_same_twice_is_no_difference_and_a_tenth_more_is_slower() {
        let claims =
            verdicts(200, 1.0).iter().filter(|v| matches!(v, Verdict::Faster | Verdict::Slower)).count();
        assert!(claims <= 6, "{claims} of 200 A/A runs claim a difference");
        let seen = verdicts(40, 1.1).iter().filter(|v| **v == Verdict::Slower).count();
        assert!(seen >= 36, "{seen} of 40 are called slower");
        let seen = verdicts(40, 1.0 / 1.1).iter().filter(|v| **v == Verdict::Faster).count();
        assert!(seen >= 36, "{seen} of 40 are called faster");
    }

    #[test]
    fn few_or_wild_values_are_not_enough() {
        let check = |a: &[f64], b: &[f64], verdict| {
            let found = compare(&[a.to_vec()], &[b.to_vec()], &QUESTION).expect("values");
            assert_eq!(found.verdict, verdict, "{found:?}");
            assert_eq!(found.over, Over::Invocations);
        };
        check(&[1.0, 1.0], &[9.0, 9.0], Verdict::NotEnoughData);
        check(&[1.0, 2.0, 9.0, 20.0, 1.0], &[1.0, 3.0, 19.0, 4.0, 2.0], Verdict::NotEnoughData);
        check(&[5.0; 6], &[5.0; 6], Verdict::NoDifference);
        check(&[5.0; 6], &[9.0; 6], Verdict::Slower);
        assert_eq!(compare(&[vec![0.0, f64::NAN]], &[vec![1.0]], &QUESTION), None);
    }

    #[test]
    fn student_s_quantiles() {
        // 99 %, two-sided: t = 63.66, 9.92, 4.60 (4 df), 3.25 (9 df); z = 2.576.
        for (k, t) in [(2, 63.66), (3, 9.925), (5, 4.604), (10, 3.250)] {
            let expect = t / 2.576 * (k as f64 / (k as f64 - 1.0)).sqrt();
            assert!((widening(k, 0.005) / expect - 1.0).abs() < 0.03, "{k}: {} {expect}", widening(k, 0.005));
        }
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_estimate(a in prop::collection::vec(prop::collection::vec(0.1..1e3_f64, 1..8), 1..5),
                                           b in prop::collection::vec(prop::collection::vec(0.1..1e3_f64, 1..8), 1..5)) {
            let c = compare(&a, &b, &Question { resamples: 50, ..QUESTION }).expect("values");
            prop_assert!(c.low <= c.ratio * 1.000_001 && c.ratio <= c.high * 1.000_001, "{c:?}");
        }
    }
}
