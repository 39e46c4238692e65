//! Two runs side by side: per variant and measure a ratio, its interval, a word.
//!
//! The first measure is the primary one; its interval is made so that two runs of the same thing are called different in
//! [`ALPHA`] of all cases. The others are told beside it and are not corrected for their number.

use danki_record::{Event, Invocation};
use danki_runview::Run;
use danki_stats::{Comparison, Question, compare};
use std::collections::BTreeMap;

/// How often an A/A comparison may claim a difference.
pub const ALPHA: f64 = 0.01;
/// Differences below this are called none.
const LEAST: f64 = 0.02;
const RESAMPLES: u32 = 1_000;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Median `Duration`; the primary one.
    DurationP50,
    /// 95th percentile of `Duration`.
    DurationP95,
    /// Median CPU time.
    CpuP50,
    /// Median `Init Duration`.
    InitP50,
}

/// One line of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Variant of A, and of B where it differs.
    pub variant: String,
    /// What.
    pub measure: Measure,
    /// The answer; none: a side has no such values.
    pub answer: Option<Comparison>,
}

impl Measure {
    /// All, the primary one first.
    pub const ALL: [Measure; 4] =
        [Measure::DurationP50, Measure::DurationP95, Measure::CpuP50, Measure::InitP50];

    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Measure::DurationP50 => "Duration p50",
            Measure::DurationP95 => "Duration p95",
            Measure::CpuP50 => "CPU p50",
            Measure::InitP50 => "Init p50",
        }
    }

    fn quantile(self) -> f64 {
        if self == Measure::DurationP95 { 0.95 } else { 0.5 }
    }

    fn of(self, i: &Invocation) -> Option<f64> {
        match self {
            Measure::DurationP50 | Measure::DurationP95 => Some(i.duration_ms),
            Measure::CpuP50 => Some(i.cpu_us as f64 / 1e3),
            Measure::InitP50 => i.init_ms,
        }
    }
}

/// B against A, variant by variant. Variants of one name belong together; if each run has just one, they do too.
pub fn compare_runs(a: &Run, b: &Run) -> Vec<Row> {
    let names = |run: &Run| run.summary.variants.iter().map(|v| v.name.clone()).collect::<Vec<_>>();
    let (of_a, of_b) = (names(a), names(b));
    let pairs: Vec<(String, String)> = match (of_a.as_slice(), of_b.as_slice()) {
        ([one], [other]) => vec![(one.clone(), other.clone())],
        _ => of_a.iter().filter(|n| of_b.contains(n)).map(|n| (n.clone(), n.clone())).collect(),
    };
    pairs.iter().flat_map(|(x, y)| rows((a, x), (b, y))).collect()
}

fn rows((a, in_a): (&Run, &str), (b, in_b): (&Run, &str)) -> Vec<Row> {
    let variant = if in_a == in_b { in_a.to_owned() } else { format!("{in_a} → {in_b}") };
    let row = |measure: Measure| Row {
        variant: variant.clone(),
        measure,
        answer: compare(
            &by_env(a, in_a, measure),
            &by_env(b, in_b, measure),
            &question(measure, a.manifest.seed),
        ),
    };
    Measure::ALL.map(row).into()
}

/// How a measure is asked about.
pub(crate) fn question(measure: Measure, seed: u64) -> Question {
    Question {
        quantile: measure.quantile(),
        confidence: 1.0 - ALPHA,
        least_effect: LEAST,
        resamples: RESAMPLES,
        seed,
    }
}

/// Values by env; an env's first invocation counts only for what init is about.
pub(crate) fn by_env(run: &Run, variant: &str, measure: Measure) -> Vec<Vec<f64>> {
    let mut envs: BTreeMap<u32, Vec<&Invocation>> = BTreeMap::new();
    for event in &run.events {
        if let Event::Invocation(i) = event
            && i.variant == variant
            && !i.ping
        {
            envs.entry(i.env.0).or_default().push(i);
        }
    }
    let values = |mut all: Vec<&Invocation>| {
        all.sort_by_key(|i| i.dispatched_ns);
        let skip = usize::from(measure != Measure::InitP50 && all.len() > 1);
        all.into_iter().skip(skip).filter_map(|i| measure.of(i)).collect()
    };
    envs.into_values().map(values).collect()
}
