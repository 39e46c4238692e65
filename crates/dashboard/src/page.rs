//! The report's page of the newest invocations.

use crate::Shared;
use danki_explain::{Context, EnvFacts, Facts, Setting, by_variant, findings, summarise};
use danki_record::{Calibration, Event, Finding, Machine, Manifest, SCHEMA, Summary, VariantSummary};
use danki_runview::assemble;
use std::sync::Arc;

/// The page's data as JSON. Thousands of facts are explained for it, so one is made at a time and not on a thread that serves others.
pub(crate) async fn make(shared: &Arc<Shared>) -> String {
    let _turn = shared.making.lock().await;
    let shared = Arc::clone(shared);
    let made = tokio::task::spawn_blocking(move || shared.page()).await;
    made.unwrap_or_else(|_| "null".to_owned())
}

impl Shared {
    fn page(&self) -> String {
        let mut events = self.window().newest();
        let closed = |e: &Event| if let Event::Connection(c) = e { Some(c.conn) } else { None };
        let known: std::collections::BTreeSet<_> = events.iter().filter_map(closed).collect();
        let open = self.connections.get().map(|open| open()).unwrap_or_default();
        events.extend(open.into_iter().filter(|c| !known.contains(&c.conn)).map(Event::Connection));
        let settings = self.account.get().map(|(_, settings)| settings()).unwrap_or_default();
        let page = page(&events, &settings, self);
        serde_json::to_string(&page).expect("plain data with string keys")
    }
}

fn page(events: &[Event], settings: &[Setting], shared: &Shared) -> danki_runview::Page {
    let facts = Facts::gather(events);
    let variants = by_variant(&facts);
    let numbers = |v: &danki_explain::Variant| -> VariantSummary {
        let memory_mb = settings.iter().find(|s| s.name == v.name).map_or(128, |s| s.memory.mb());
        let of_variant = |env: &EnvFacts| env.variant.as_deref() == Some(&v.name);
        let envs: Vec<&EnvFacts> = facts.envs.values().filter(|env| of_variant(env)).collect();
        let mut summary = summarise(&v.name, memory_mb, Some(v), &envs);
        summary.throttles = facts.refused.iter().filter(|r| r.variant == v.name).count() as u64;
        summary
    };
    let context = Context { settings: settings.to_vec(), seed: 1, ..Context::default() };
    let found = findings(&facts, &variants, &context);
    let summary = Summary {
        schema: SCHEMA,
        name: "danki up".to_owned(),
        complete: true,
        seed: 1,
        time_scale: 1.0,
        repetitions: 1,
        variants: variants.iter().map(numbers).collect(),
        expect: Vec::new(),
        findings: found.into_iter().map(Finding::from).collect(),
        calibration: Calibration::default(),
        link: serde_json::Value::Null,
        caveats: Vec::new(),
    };
    assemble(manifest(shared), summary, events, &facts, &variants)
}

/// No run is behind this page, so most of a manifest says nothing.
fn manifest(shared: &Shared) -> Manifest {
    Manifest {
        schema: SCHEMA,
        danki: shared.setup.version.clone(),
        name: "danki up".to_owned(),
        experiment: serde_json::Value::Null,
        started_epoch_ms: (shared.started_ns + shared.epoch_offset_ns) / 1_000_000,
        started_ns: shared.started_ns,
        epoch_offset_ns: shared.epoch_offset_ns,
        seed: 1,
        time_scale: 1.0,
        quick: false,
        machine: Machine { kernel: String::new(), cpus: 0, cpu_model: String::new() },
        capabilities: serde_json::Value::Null,
        calibration: Calibration::default(),
        complete: true,
    }
}
