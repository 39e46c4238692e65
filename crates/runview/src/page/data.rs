//! What the page is given. `web/src/schema.ts` is generated from this file and from `record`'s; `tidy` holds them together.
//!
//! Facts that come by the thousand are columns, not objects: they deflate to a few bytes per row. Times are µs since the
//! run's start, or relative to the row's own begin where that is said.

use super::rows;
use crate::read::Run;
use danki_explain::{Edge, Facts, Part, Variant, by_variant, edges};
use danki_record::{Event, Manifest, Summary};
use serde::Serialize;

/// A run, as the page shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page {
    /// `manifest.json`.
    pub manifest: Manifest,
    /// `summary.json`.
    pub summary: Summary,
    /// What the experiment asks.
    pub description: String,
    /// Names of the waterfall's parts; `Invocations::segments` counts in them.
    pub parts: Vec<String>,
    /// Invocations by dispatch.
    pub invocations: Invocations,
    /// Their requests.
    pub calls: Calls,
    /// Environments by id.
    pub envs: Vec<EnvLife>,
    /// TCP connections by SYN.
    pub connections: Connections,
    /// Who calls whom.
    pub edges: Vec<Edge>,
    /// What each variant costs.
    pub costs: Vec<Cost>,
    /// Connections at databases over time, if the run recorded any.
    pub databases: Vec<Database>,
}

/// A column of numbers.
pub type Columns = Vec<i64>;
/// Pairs of numbers, flat.
pub type Spans = Vec<i64>;

/// Columns, one entry per invocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Invocations {
    /// Request ids.
    pub id: Vec<String>,
    /// Position in `summary.variants`.
    pub variant: Columns,
    /// Environment.
    pub env: Columns,
    /// 0 cold, 1 warm, 2 suppressed.
    pub start: Columns,
    /// Position in `failures`; -1: it succeeded.
    pub failure: Columns,
    /// Kinds of failure.
    pub failures: Vec<String>,
    /// Dispatch: the difference to the row before, µs.
    pub dispatched_delta: Columns,
    /// Dispatch to response, µs.
    pub span: Columns,
    /// Response to the next event asked for, µs.
    pub after: Columns,
    /// `Duration` of REPORT, µs.
    pub duration: Columns,
    /// `Init Duration`, µs; -1: none.
    pub init: Columns,
    /// CPU time, µs.
    pub cpu: Columns,
    /// Throttled, µs.
    pub throttled: Columns,
    /// Memory used at most, MB.
    pub memory: Columns,
    /// Per invocation: part, length in µs, part, length… They fill the span. Empty: left out, see `rows::DETAILS`.
    pub segments: Vec<Spans>,
}

/// Columns, one entry per request to the region. Times in µs relative to the invocation's dispatch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Calls {
    /// Row of the invocation.
    pub invocation: Columns,
    /// Position in `names`: service and operation.
    pub name: Columns,
    /// `dynamodb GetItem`…
    pub names: Vec<String>,
    /// HTTP status.
    pub status: Columns,
    /// Connection.
    pub conn: Columns,
    /// Begin.
    pub from: Columns,
    /// First packet of the request, since the begin.
    pub sent: Columns,
    /// The endpoint has read it, since the begin.
    pub read: Columns,
    /// The endpoint has answered, since the begin.
    pub answered: Columns,
    /// Last byte in the env, since the begin.
    pub done: Columns,
    /// Length of the DNS query before a connection opened for it; -1: none.
    pub dns: Columns,
    /// Length of the TCP connect; -1: the connection was kept.
    pub tcp: Columns,
    /// Length of the TLS handshake; -1: none.
    pub tls: Columns,
    /// How long a kept connection had idled; -1: new.
    pub idle: Columns,
}

/// An environment's life.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnvLife {
    /// Its id.
    pub env: u32,
    /// Position in `summary.variants`; -1: none of them.
    pub variant: i64,
    /// `on-demand` or `provisioned-concurrency`.
    pub initialization: String,
    /// Decision to create it, µs.
    pub created: i64,
    /// Init phases: begin, end, µs.
    pub inits: Spans,
    /// End, µs; -1: with the run.
    pub ended: i64,
}

/// Columns, one entry per TCP connection. Times in µs since its SYN; -1: never.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Connections {
    /// Its id.
    pub conn: Columns,
    /// Environment.
    pub env: Columns,
    /// Port in the env.
    pub port: Columns,
    /// Position in `servers`.
    pub server: Columns,
    /// Endpoints, by address or by the name asked for.
    pub servers: Vec<String>,
    /// SYN: the difference to the row before.
    pub syn_delta: Columns,
    /// SYN-ACK in the env.
    pub established: Columns,
    /// Last payload byte.
    pub last_byte: Columns,
    /// First FIN or RST.
    pub closed: Columns,
    /// 0 open, 1 client, 2 server, 3 client reset, 4 server reset.
    pub closed_by: Columns,
    /// Payload bytes from the env.
    pub up: Columns,
    /// Payload bytes to the env.
    pub down: Columns,
    /// Requests served.
    pub requests: Columns,
}

/// What a variant costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Its name.
    pub variant: String,
    /// USD per million invocations as measured, requests included.
    pub usd_per_million: f64,
    /// The share of requests in it, USD.
    pub requests_usd: f64,
    /// GB-seconds per million invocations.
    pub gb_seconds: f64,
    /// Where the prices come from.
    pub source: String,
}

/// Connections at a database over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Database {
    /// Whose.
    pub name: String,
    /// Time in µs, open connections, time, open connections…
    pub open: Spans,
}

/// The summary's curves begin with the first invocation, the page's time with the run.
fn databases(summary: &Summary, facts: &Facts, zero_ns: u64) -> Vec<Database> {
    let first_ns = facts.invocations.first().map_or(0, |i| i.dispatched_ns.saturating_sub(zero_ns));
    let point = |[seconds, open]: &[f64; 2]| [first_ns as i64 / 1_000 + (seconds * 1e6) as i64, *open as i64];
    let curve = |v: &danki_record::VariantSummary| {
        let open = v.database.as_ref()?.over_time.iter().flat_map(point).collect();
        Some(Database { name: v.name.clone(), open })
    };
    summary.variants.iter().filter_map(curve).collect()
}

/// What the page shows of a run.
pub fn build(run: &Run) -> Page {
    let facts = Facts::gather(&run.events);
    let variants = by_variant(&facts);
    assemble(run.manifest.clone(), run.summary.clone(), &run.events, &facts, &variants)
}

/// The same, of facts that are explained already.
pub fn assemble(
    manifest: Manifest,
    summary: Summary,
    events: &[Event],
    facts: &Facts,
    variants: &[Variant],
) -> Page {
    let zero = manifest.started_ns;
    let names: Vec<&str> = summary.variants.iter().map(|v| v.name.as_str()).collect();
    let explained = rows::in_order(variants);
    Page {
        description: manifest.experiment["description"].as_str().unwrap_or_default().to_owned(),
        parts: Part::ALL.iter().map(|part| part.name().to_owned()).collect(),
        invocations: rows::invocations(&explained, &names, zero),
        calls: rows::calls(&explained),
        envs: rows::envs(events, facts, &names, zero),
        connections: rows::connections(facts, zero),
        edges: edges(variants),
        costs: rows::costs(variants, &summary),
        databases: databases(&summary, facts, zero),
        manifest,
        summary,
    }
}
