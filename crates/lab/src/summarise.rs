//! Events → the run's numbers. Pure: the same events give the same summary.

use crate::capture::ByClient;
use crate::experiment::Experiment;
use crate::results::Row;
use bytes::Bytes;
use danki_explain::{
    Context, DatabaseSetting, EnvFacts, Facts, Setting, Variant as Explained, by_variant, findings,
    quantiles, summarise_database,
};
use danki_model::{CpuModel, EnvId, RequestId};
use danki_record::{Calibration, CaptureCounts, Event, Finding, Quantiles, SCHEMA, Summary, VariantSummary};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

mod requests;
mod rows;

use requests::requests;

/// What an invocation returned.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Returned {
    /// The variant's name.
    pub variant: String,
    /// The invocation.
    pub request_id: RequestId,
    /// The function or the platform said that it failed.
    pub function_error: Option<String>,
    /// The response, if it was JSON and not too long; else null.
    pub payload: Value,
    /// `statusCode` of the response, if it is one for an HTTP front.
    pub status_code: Option<u16>,
    /// The response as it was, if [`crate::Setup::keep_raw`] asked for it.
    #[serde(skip)]
    pub raw: Option<Bytes>,
}

/// Everything that a summary is made of.
pub struct Ingredients<'a> {
    /// What was run.
    pub experiment: &'a Experiment,
    /// What was recorded.
    pub events: &'a [Event],
    /// What the functions returned.
    pub returned: &'a [Returned],
    /// Handshakes in the capture; none if it could not be read.
    pub capture: ByClient,
    /// Speed of this machine.
    pub calibration: Calibration,
    /// How the envs' CPU quotas were set.
    pub cpu_model: CpuModel,
    /// The link's own figures.
    pub link: Value,
    /// What the runner has to say.
    pub caveats: Vec<String>,
    /// The run ended by itself.
    pub complete: bool,
}

/// A run's numbers, a row per invocation, and the waterfall of each.
pub struct Digest {
    /// `summary.json`.
    pub summary: Summary,
    /// By dispatch.
    pub rows: Vec<Row>,
    /// By variant.
    pub explained: Vec<Explained>,
}

/// Cooks.
pub fn summarise(from: Ingredients<'_>) -> Digest {
    let facts = Facts::gather(from.events);
    let explained = by_variant(&facts);
    let variant_of = variants_of_envs(from.events, &facts);
    let recorded = from.events.iter().filter_map(|event| match event {
        Event::Caveat { text } => Some(text.clone()),
        _ => None,
    });
    let mut told = BTreeSet::new();
    let caveats: Vec<String> =
        from.caveats.into_iter().chain(recorded).filter(|text| told.insert(text.clone())).collect();
    let context = context(from.experiment, from.cpu_model, &caveats);
    let numbers = |variant: &crate::Variant| {
        let of_name = explained.iter().find(|e| e.name == variant.name);
        let returned = from.returned.iter().filter(|r| r.variant == variant.name);
        let of_variant = |env: &EnvId| variant_of.get(env).is_some_and(|v| *v == variant.name);
        let envs: Vec<&EnvFacts> =
            facts.envs.iter().filter(|(env, _)| of_variant(env)).map(|(_, f)| f).collect();
        let mut summary =
            danki_explain::summarise(&variant.name, variant.function.memory.mb(), of_name, &envs);
        let setting = context.databases.get(&variant.name);
        summary.database = setting.map(|s| summarise_database(s, &facts, of_name, &envs));
        summary.requests = requests(from.experiment, of_name, returned.clone());
        summary.capture = captured(&envs, &from.capture);
        summary.returned = returned_numbers(returned);
        summary.throttles = facts.refused.iter().filter(|r| r.variant == variant.name).count() as u64;
        summary
    };
    let variants: Vec<VariantSummary> = from.experiment.variants.iter().map(numbers).collect();
    let as_json: Vec<Value> = variants.iter().map(|v| serde_json::to_value(v).unwrap_or_default()).collect();
    let summary = Summary {
        schema: SCHEMA,
        name: from.experiment.name.clone(),
        complete: from.complete,
        seed: from.experiment.seed,
        time_scale: from.experiment.time_scale,
        repetitions: from.experiment.repetitions,
        variants,
        expect: from.experiment.expect.iter().map(|e| e.judge(&as_json)).collect(),
        findings: findings(&facts, &explained, &context).into_iter().map(Finding::from).collect(),
        calibration: from.calibration,
        link: from.link,
        caveats,
    };
    Digest { summary, rows: rows::rows(&explained, &facts), explained }
}

fn variants_of_envs<'a>(events: &'a [Event], facts: &'a Facts) -> HashMap<EnvId, &'a str> {
    let told = events.iter().filter_map(|event| match event {
        Event::Env(e) => Some((e.env, e.variant.as_str())),
        _ => None,
    });
    facts.invocations.iter().map(|i| (i.env, i.variant.as_str())).chain(told).collect()
}

/// Handshakes in the capture that came from the addresses of these envs.
fn captured(envs: &[&EnvFacts], capture: &ByClient) -> CaptureCounts {
    let clients = envs.iter().flat_map(|env| &env.connections).map(|c| c.connection.client.ip());
    let addresses: BTreeSet<IpAddr> = clients.collect();
    let counts = addresses.iter().filter_map(|address| capture.get(address));
    counts.fold(CaptureCounts::default(), |sum, c| CaptureCounts {
        tcp_handshakes: sum.tcp_handshakes + c.tcp_handshakes,
        tls_handshakes: sum.tls_handshakes + c.tls_handshakes,
    })
}

/// Numbers at the top level of JSON objects; those of a list are pooled. A status code is one, and no measure.
fn returned_numbers<'a>(returned: impl Iterator<Item = &'a Returned>) -> BTreeMap<String, Quantiles> {
    let mut fields: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let good = returned.filter(|r| r.function_error.is_none());
    let all = good.filter_map(|r| r.payload.as_object()).flatten();
    for (key, value) in all.filter(|(key, _)| key.as_str() != "statusCode") {
        let numbers = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let numbers: Vec<f64> = numbers.iter().filter_map(Value::as_f64).collect();
        if !numbers.is_empty() {
            fields.entry(key.clone()).or_default().extend(numbers);
        }
    }
    fields.into_iter().map(|(field, values)| (field, quantiles(values))).collect()
}

/// What findings need to know beside the facts.
fn context(experiment: &Experiment, cpu_model: CpuModel, caveats: &[String]) -> Context {
    let setting = |v: &crate::Variant| Setting {
        name: v.name.clone(),
        memory: v.function.memory,
        environment: v.function.environment.clone(),
        runtime: v.function.runtime.to_string(),
    };
    let settings = experiment.variants.iter().map(setting).collect();
    let database = |v: &crate::Variant| {
        let config = experiment.region.database.as_ref()?;
        let (proxy, max_connections) = (v.db_proxy.clone(), config.max_connections());
        let class = config.class.clone().into();
        Some((v.name.clone(), DatabaseSetting { proxy, max_connections, class }))
    };
    let databases = experiment.variants.iter().filter_map(database).collect();
    Context { settings, databases, cpu_model, caveats: caveats.to_vec(), seed: experiment.seed }
}

#[cfg(test)]
mod tests;
