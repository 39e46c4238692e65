//! Findings of an old run by today's rules.

use crate::read::Run;
use danki_explain::{Context, Facts, Finding, Setting, by_variant, findings};
use danki_model::MemoryMb;
use danki_record::Manifest;
use serde_json::Value;

/// What findings need to know beside the facts, from a manifest. Variants that it does not describe get no predictions.
pub fn context(manifest: &Manifest, caveats: &[String]) -> Context {
    let variants = manifest.experiment["variants"].as_array().map(Vec::as_slice).unwrap_or_default();
    Context {
        settings: variants.iter().filter_map(setting).collect(),
        caveats: caveats.to_vec(),
        seed: manifest.seed,
    }
}

fn setting(variant: &Value) -> Option<Setting> {
    let function = &variant["function"];
    let memory = u32::try_from(function["memory"].as_u64()?).ok()?;
    let environment = function["environment"].as_object().into_iter().flatten();
    Some(Setting {
        name: variant["name"].as_str()?.to_owned(),
        memory: MemoryMb::try_from(memory).ok()?,
        environment: environment.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect(),
        runtime: function["runtime"].as_str().unwrap_or_default().to_owned(),
    })
}

impl Run {
    /// What today's rules find in the run's facts.
    pub fn found(&self) -> Vec<Finding> {
        let facts = Facts::gather(&self.events);
        findings(&facts, &by_variant(&facts), &context(&self.manifest, &self.summary.caveats))
    }

    /// Replaces the findings of the summary by today's.
    pub fn explain_again(&mut self) {
        self.summary.findings = self.found().into_iter().map(danki_record::Finding::from).collect();
    }
}
