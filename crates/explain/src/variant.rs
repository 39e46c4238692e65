//! The invocations of one variant together.

use crate::{Call, Facts, Part, Waterfall, waterfall};
use danki_record::Invocation;
use danki_stats::Sample;
use serde::Serialize;

/// A variant's invocations, explained.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// In order of dispatch.
    pub invocations: Vec<(Invocation, Waterfall)>,
}

/// What a part is to a variant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PartSummary {
    /// The part.
    pub part: Part,
    /// Median over the invocations, ms, interpolated.
    pub median_ms: f64,
    /// Median over the invocations of its share of the span, 0 to 1. Medians of shares need not sum to 1.
    pub median_share: f64,
    /// Its share of the time of all invocations together, 0 to 1; these sum to 1.
    pub share: f64,
}

/// Explains all invocations; variants in order of their first dispatch.
pub fn by_variant(facts: &Facts) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for invocation in &facts.invocations {
        let explained = (invocation.clone(), waterfall(invocation, facts));
        match variants.iter_mut().find(|v| v.name == invocation.variant) {
            Some(variant) => variant.invocations.push(explained),
            None => variants.push(Variant { name: invocation.variant.clone(), invocations: vec![explained] }),
        }
    }
    variants
}

impl Variant {
    /// All parts in order.
    pub fn parts(&self) -> Vec<PartSummary> {
        Part::ALL
            .into_iter()
            .map(|part| PartSummary {
                part,
                median_ms: median(self.waterfalls().map(|w| w.parts[part] as f64 / 1e6)).unwrap_or(0.0),
                median_share: median(self.waterfalls().map(|w| w.share(part))).unwrap_or(0.0),
                share: self.share(part),
            })
            .collect()
    }

    /// A part's share of the time of all invocations together, 0 to 1; 0 without invocations.
    pub fn share(&self, part: Part) -> f64 {
        let sum = |of: &dyn Fn(&Waterfall) -> u64| self.waterfalls().map(|w| of(w) as f64).sum::<f64>();
        let total = sum(&Waterfall::total);
        if total > 0.0 { sum(&|w| w.parts[part]) / total } else { 0.0 }
    }

    /// Median over the invocations of the share that nothing explains, 0 to 1.
    pub fn unattributed(&self) -> f64 {
        median(self.waterfalls().map(|w| w.share(Part::Unattributed))).unwrap_or(0.0)
    }

    /// Waterfalls in order of dispatch.
    pub fn waterfalls(&self) -> impl Iterator<Item = &Waterfall> {
        self.invocations.iter().map(|(_, w)| w)
    }

    /// Calls of all invocations.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.waterfalls().flat_map(|w| &w.calls)
    }
}

/// Interpolated median; absent without values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Sample::new(values).ok().map(|s| s.median())
}
