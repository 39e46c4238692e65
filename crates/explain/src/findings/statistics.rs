//! A reader's traps: a mean made by a few, percentiles over too few samples, a difference within the noise.

use super::{Cause, Finding, Look};
use crate::{Context, Variant};
use danki_stats::{Question, Sample, Verdict, compare, smallest_n};
use std::collections::{BTreeMap, BTreeSet};

/// Values needed before a mean is judged; the share of values that may be called a few; what they must do to the mean.
const ENOUGH: usize = 10;
const FEW: f64 = 0.02;
const FACTOR: f64 = 1.5;
/// Confidence that percentiles and comparisons are held to.
const CONFIDENCE: f64 = 0.95;
const RESAMPLES: u32 = 400;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    straggler(look).into_iter().collect()
}

/// Of invocations that were not their env's first: a cold start is a cause of its own.
fn straggler(look: &Look<'_>) -> Option<Finding> {
    let mut met = BTreeSet::new();
    let later = look.variant.invocations.iter().map(|(i, _)| i).filter(|i| !met.insert(i.env));
    let mut all: Vec<_> = later.collect();
    if all.len() < ENOUGH {
        return None;
    }
    all.sort_by(|a, b| b.duration_ms.total_cmp(&a.duration_ms));
    let few = ((all.len() as f64 * FEW) as usize).max(1);
    let of = |some: &[&danki_record::Invocation]| Sample::new(some.iter().map(|i| i.duration_ms)).ok();
    let (whole, rest) = (of(&all)?, of(&all[few..])?);
    if whole.mean() < FACTOR * rest.mean() {
        return None;
    }
    let text = format!(
        "The mean, {:.1} ms, is made by {few} of {} invocations: without {} it is {:.1} ms. Read the median ({:.1} ms), and look \
         at the slowest ({:.0} ms) by itself.",
        whole.mean(),
        all.len(),
        if few == 1 { "it" } else { "them" },
        rest.mean(),
        whole.median(),
        whole.max(),
    );
    let finding = look
        .finding(Cause::StragglerMean, text)
        .with("mean", whole.mean(), "ms")
        .with("mean_without", rest.mean(), "ms")
        .with("stragglers", few as f64, "1")
        .with("slowest", whole.max(), "ms")
        .examples(all[..few].iter().map(|i| &i.request_id));
    Some(finding)
}

/// What is to be said of the run.
pub(super) fn of_run(variants: &[Variant], context: &Context) -> Vec<Finding> {
    few_samples(variants).into_iter().chain(noise(variants, context)).collect()
}

fn few_samples(variants: &[Variant]) -> Option<Finding> {
    let n = variants.iter().map(|v| v.invocations.len()).filter(|n| *n > 0).min()?;
    let unsupported: Vec<(&str, usize)> = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)]
        .into_iter()
        .map(|(name, p)| (name, smallest_n(p, CONFIDENCE)))
        .filter(|(_, needs)| n < *needs)
        .collect();
    let (first, last) = (unsupported.first()?, unsupported.last()?);
    let which = if first == last { first.0.to_owned() } else { format!("{} to {}", first.0, last.0) };
    let text = format!(
        "{n} invocations per variant do not bound {which}: {} needs {} values for a 95 % interval, {} needs {}. Read them as \
         values that occurred, not as the function's.",
        first.0, first.1, last.0, last.1
    );
    let finding = Finding::new(Cause::FewSamples, None, text).with("invocations", n as f64, "1");
    Some(finding.with(format!("needed_for_{}", last.0), last.1 as f64, "1"))
}

/// Durations of a variant by env, without each env's first.
fn by_env(variant: &Variant) -> Vec<Vec<f64>> {
    let mut envs: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for (i, _) in &variant.invocations {
        envs.entry(i.env).or_default().push(i.duration_ms);
    }
    envs.into_values().map(|all| if all.len() > 1 { all[1..].to_vec() } else { all }).collect()
}

fn noise(variants: &[Variant], context: &Context) -> Vec<Finding> {
    let Some((base, others)) = variants.split_first() else { return Vec::new() };
    let question = Question {
        quantile: 0.5,
        confidence: CONFIDENCE,
        least_effect: 0.02,
        resamples: RESAMPLES,
        seed: context.seed,
    };
    let found = others.iter().filter_map(|other| {
        let c = compare(&by_env(base), &by_env(other), &question)?;
        if matches!(c.verdict, Verdict::Faster | Verdict::Slower) {
            return None;
        }
        let text = format!(
            "{} against {}: {:.1} and {:.1} ms at the median, ratio {:.2} with a 95 % interval of {:.2} to {:.2}: {}.",
            other.name,
            base.name,
            c.b,
            c.a,
            c.ratio,
            c.low,
            c.high,
            match c.verdict {
                Verdict::NoDifference => "no difference was shown",
                _ => "too few invocations to tell",
            }
        );
        let finding = Finding::new(Cause::NoiseOverEffect, Some(&other.name), text);
        Some(finding.with("ratio", c.ratio, "ratio").with("low", c.low, "ratio").with("high", c.high, "ratio"))
    });
    found.collect()
}
