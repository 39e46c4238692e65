//! Causes, one file each: plain sentences with the numbers they stand on, and what would change it.
//!
//! A cause that cannot be told from another one says so and lowers its confidence. Nothing is said of a variant whose facts
//! are too few for it; how few, is a constant in the cause's file.

mod cause;
mod cold;
mod cpu;
mod database;
mod dns;
mod errors;
mod extension;
mod faults;
mod idle;
mod init;
mod lazy;
mod machine;
mod memory;
mod post_response;
mod provisioned;
mod refused;
mod reuse;
mod secrets;
mod service;
mod stale;
mod statistics;
mod timeouts;
mod tls;

pub use cause::Cause;

use crate::context::{Context, Setting};
use crate::{Call, Facts, Variant};
use danki_model::billing::Architecture;
use danki_model::{ConnId, RequestId};
use danki_record::{Confidence, Evidence, Level, Remedy};
use serde::Serialize;

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What kind.
    pub cause: Cause,
    /// Which variant; none: the run.
    pub variant: Option<String>,
    /// One or two sentences, complete with their numbers.
    pub text: String,
    /// The numbers.
    pub evidence: Vec<Evidence>,
    /// Invocations to look at, at most [`EXAMPLES`].
    pub examples: Vec<RequestId>,
    /// Connections to look at, at most [`EXAMPLES`].
    pub connections: Vec<ConnId>,
    /// Share of the variant's time, 0 to 1.
    pub share: Option<f64>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What would change it.
    pub remedy: Option<Remedy>,
}

/// Most examples that a finding names.
pub const EXAMPLES: usize = 3;

/// What every cause looks at.
pub(crate) struct Look<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) variant: &'a Variant,
    pub(crate) all: &'a [Variant],
    pub(crate) context: &'a Context,
}

/// A cause: looks, and says what it found.
type Search = fn(&Look<'_>) -> Vec<Finding>;

const SEARCHES: &[Search] = &[
    machine::waited,
    errors::find,
    memory::find,
    refused::find,
    provisioned::find,
    cold::find,
    init::find,
    lazy::find,
    cpu::find,
    reuse::find,
    idle::find,
    stale::find,
    database::find,
    dns::find,
    tls::find,
    secrets::find,
    extension::find,
    timeouts::find,
    faults::find,
    service::find,
    post_response::find,
    statistics::find,
];

/// All findings: the run's, then each variant's; problems before notes before what is good.
pub fn findings(facts: &Facts, variants: &[Variant], context: &Context) -> Vec<Finding> {
    let mut found: Vec<Finding> = machine::find(context).into_iter().collect();
    found.extend(statistics::of_run(variants, context));
    for variant in variants {
        let look = Look { facts, variant, all: variants, context };
        let mut of_variant: Vec<Finding> = SEARCHES.iter().flat_map(|search| search(&look)).collect();
        of_variant.sort_by_key(|f| f.cause.level());
        found.extend(of_variant);
    }
    found
}

impl Finding {
    /// What it means for the reader.
    pub fn level(&self) -> Level {
        self.cause.level()
    }

    pub(crate) fn new(cause: Cause, variant: Option<&str>, text: String) -> Finding {
        Finding {
            cause,
            variant: variant.map(str::to_owned),
            text,
            evidence: Vec::new(),
            examples: Vec::new(),
            connections: Vec::new(),
            share: None,
            confidence: Confidence::High,
            remedy: None,
        }
    }

    pub(crate) fn with(mut self, name: impl Into<String>, value: f64, unit: &'static str) -> Finding {
        self.evidence.push(Evidence { name: name.into(), value, unit: unit.to_owned() });
        self
    }

    pub(crate) fn examples<'a>(mut self, ids: impl IntoIterator<Item = &'a RequestId>) -> Finding {
        for id in ids {
            if self.examples.len() < EXAMPLES && !self.examples.contains(id) {
                self.examples.push(id.clone());
            }
        }
        self
    }

    pub(crate) fn connections(mut self, ids: impl IntoIterator<Item = ConnId>) -> Finding {
        self.connections = ids.into_iter().take(EXAMPLES).collect();
        self
    }

    pub(crate) fn share(mut self, share: f64) -> Finding {
        self.share = Some(share.clamp(0.0, 1.0));
        self
    }

    pub(crate) fn confidence(mut self, confidence: Confidence) -> Finding {
        self.confidence = confidence;
        self
    }

    pub(crate) fn remedy(mut self, remedy: Remedy) -> Finding {
        self.remedy = Some(remedy);
        self
    }
}

impl From<Finding> for danki_record::Finding {
    fn from(f: Finding) -> danki_record::Finding {
        danki_record::Finding {
            kind: f.cause.id(),
            level: f.level(),
            variant: f.variant,
            text: f.text,
            evidence: f.evidence,
            examples: f.examples,
            connections: f.connections,
            share: f.share,
            confidence: f.confidence,
            remedy: f.remedy,
        }
    }
}

impl<'a> Look<'a> {
    pub(crate) fn finding(&self, cause: Cause, text: String) -> Finding {
        Finding::new(cause, Some(&self.variant.name), text)
    }

    pub(crate) fn setting(&self) -> Option<&'a Setting> {
        self.context.of(&self.variant.name)
    }

    /// Invocations of the variant.
    pub(crate) fn n(&self) -> usize {
        self.variant.invocations.len()
    }

    /// Time of all invocations together, ms.
    pub(crate) fn total_ms(&self) -> f64 {
        self.variant.waterfalls().map(|w| w.total() as f64 / 1e6).sum()
    }

    /// Calls with their invocation's id.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&'a RequestId, &'a Call)> {
        self.variant.invocations.iter().flat_map(|(i, w)| w.calls.iter().map(move |c| (&i.request_id, c)))
    }

    /// A remedy with what a saving is worth at this variant's memory size.
    pub(crate) fn saving(&self, text: impl Into<String>, saves_ms: Option<f64>) -> Remedy {
        let gb_second = Architecture::X86.prices().gb_second;
        let usd = self.setting().zip(saves_ms).map(|(setting, ms)| {
            // ms of one are thousands of seconds of a million.
            ms * 1e3 * f64::from(setting.memory.mb()) / 1_024.0 * gb_second
        });
        Remedy { text: text.into(), saves_ms, saves_usd_per_million: usd, change: None }
    }
}

/// `1 connection`, `2 connections`.
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
