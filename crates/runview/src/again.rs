//! Findings of an old run by today's rules.

use crate::read::Run;
use danki_explain::{Context, DatabaseSetting, Facts, Finding, Setting, by_variant, findings};
use danki_model::{CpuChoice, CpuModel, MemoryMb};
use danki_record::Manifest;
use serde_json::Value;
use std::collections::BTreeMap;

/// What findings need to know beside the facts, from a manifest. Variants that it does not describe get no predictions.
pub fn context(manifest: &Manifest, caveats: &[String]) -> Context {
    let variants = manifest.experiment["variants"].as_array().map(Vec::as_slice).unwrap_or_default();
    Context {
        settings: variants.iter().filter_map(setting).collect(),
        databases: databases(&manifest.experiment, variants),
        cpu_model: cpu_model(manifest),
        caveats: caveats.to_vec(),
        seed: manifest.seed,
    }
}

/// How the run's CPU quotas were set.
fn cpu_model(manifest: &Manifest) -> CpuModel {
    let word = &manifest.experiment["host"]["cpu_model"];
    let choice: CpuChoice = serde_json::from_value(word.clone()).unwrap_or_default();
    choice.with(manifest.calibration.cpu_factor).unwrap_or_default()
}

/// By variant.
fn databases(experiment: &Value, variants: &[Value]) -> BTreeMap<String, DatabaseSetting> {
    let Some(database) = experiment["region"]["database"].as_object() else { return BTreeMap::new() };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let limit = database.get("max_connections").and_then(Value::as_u64);
    let one = |variant: &Value| {
        let setting = DatabaseSetting {
            proxy: text(&variant["db_proxy"]),
            max_connections: limit.and_then(|n| u32::try_from(n).ok())?,
            class: database.get("class").and_then(text).unwrap_or_default(),
        };
        Some((text(&variant["name"])?, setting))
    };
    variants.iter().filter_map(one).collect()
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
