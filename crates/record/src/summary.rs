//! `summary.json`: a run in numbers. Field names are a contract with those who read the file from outside.

use crate::{Calibration, Finding};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`crate::SCHEMA`].
    pub schema: u32,
    /// The experiment's name.
    pub name: String,
    /// The run ended by itself.
    pub complete: bool,
    /// Seed of all draws.
    pub seed: u64,
    /// Divisor of gaps, cut-offs and idle lifetimes.
    pub time_scale: f64,
    /// How many times the load was repeated, each time with new envs; samples are pooled.
    pub repetitions: u32,
    /// One entry per variant, in the experiment's order.
    pub variants: Vec<VariantSummary>,
    /// Published figures beside the measured ones.
    pub expect: Vec<Expectation>,
    /// What the facts say, one plain sentence each.
    pub findings: Vec<Finding>,
    /// Speed of this machine against AWS's.
    pub calibration: Calibration,
    /// How late the link released packets: the instrument's own error.
    pub link: serde_json::Value,
    /// What a reader of the numbers must know.
    pub caveats: Vec<String>,
}

/// One variant in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantSummary {
    /// Its name.
    pub name: String,
    /// Memory size in MB.
    pub memory_mb: u32,
    /// How many were invoked; those that failed are among them.
    pub invocations: u64,
    /// Those that ended in an error or timed out.
    pub errors: u64,
    /// Those that timed out.
    pub timeouts: u64,
    /// Those that waited for an init: cold and suppressed starts.
    pub cold_starts: u64,
    /// `Duration` of the REPORT lines.
    pub duration_ms: Quantiles,
    /// `Duration` of those that found a warm env.
    pub warm_duration_ms: Quantiles,
    /// From dispatch to response.
    pub client_ms: Quantiles,
    /// From intended time to dispatch: how far the load fell behind its schedule.
    pub late_ms: Quantiles,
    /// `Init Duration` of each cold start, in order.
    pub init_ms: Vec<f64>,
    /// Requests to the region by service: with the connection set-up they needed, at the env's network edge. `SERVICE_new` are those
    /// that opened their connection, `SERVICE_kept` the others, where there are both.
    pub calls: BTreeMap<String, Quantiles>,
    /// `Duration` by how the invocation found its env: `cold`, `warm`, and for provisioned envs `provisioned_first` and
    /// `provisioned_later`.
    #[serde(default)]
    pub durations: BTreeMap<String, Quantiles>,
    /// Invocations that were throttled: they are in no other number.
    #[serde(default)]
    pub throttles: u64,
    /// Requests as a load generator counts them; absent where they come one by one.
    #[serde(default)]
    pub requests: Option<RequestCounts>,
    /// Connections to a database of the region, if the variant has one.
    #[serde(default)]
    pub database: Option<DatabaseCounts>,
    /// Numbers at the top level of the function's JSON responses.
    pub returned: BTreeMap<String, Quantiles>,
    /// What happened to connections.
    pub connections: ConnectionCounts,
    /// The same, counted in the packets of `wire.pcap`.
    pub capture: CaptureCounts,
    /// `connections.opened` per invocation.
    pub connections_per_invocation: f64,
    /// `connections.tls_handshakes` per invocation.
    pub handshakes_per_invocation: f64,
    /// Share of all Durations in which the env was throttled.
    pub throttled_ratio: f64,
    /// CPU time used in all Durations, divided by them.
    pub cpu_share: f64,
    /// Share of an invocation's span that nothing recorded explains: the median over the invocations.
    pub unattributed_ratio: f64,
    /// Parts of the waterfall over the variant's invocations.
    pub waterfall_ms: BTreeMap<String, Quantiles>,
}

/// Requests of a load with several clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Requests per second, of the time in which at least one was under way.
    pub per_s: f64,
    /// Answers whose `statusCode` is not 2xx, of functions that did not fail.
    pub non_2xx: u64,
    /// So many ms, from dispatch to response, were enough for 50, 66, 75, 80, 90, 95, 98, 99 and 100 % of the requests; `ab` has the same.
    pub percent_ms: BTreeMap<String, f64>,
}

/// Connections to a database, and waiting for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatabaseCounts {
    /// The proxy that stands before it.
    pub proxy: Option<String>,
    /// Connections that the database allows.
    pub max_connections: u32,
    /// Connections to the database that were opened: by functions, or by the proxy.
    pub opened: u64,
    /// Most of them at once.
    pub peak: u64,
    /// Their number over time: seconds since the run's first invocation, and how many from then on.
    pub over_time: Vec<[f64; 2]>,
    /// Connections that functions opened, to the database or to its proxy.
    pub clients: u64,
    /// What clients of the proxy waited for a connection to the database, each time that they got one.
    pub borrow_wait_ms: Quantiles,
    /// Clients that waited in vain.
    pub borrow_timeouts: u64,
    /// How much shorter p95 of `Duration` would be without these waits, 0 to 1.
    pub wait_share_of_p95: f64,
    /// Sessions that tied a connection to themselves.
    pub pins: u64,
    /// Their causes, `reason: statement`, and how many each.
    pub pinned_by: BTreeMap<String, u64>,
    /// From a statement's last byte to the last of its answer, as the proxy saw it.
    pub statement_ms: Quantiles,
}

/// TCP connections and TLS handshakes of a variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionCounts {
    /// TCP connections that were opened.
    pub opened: u64,
    /// Requests on a connection that had served one before.
    pub reused: u64,
    /// TLS handshakes.
    pub tls_handshakes: u64,
    /// TLS handshakes that resumed a session.
    pub tls_resumed: u64,
    /// Connections that an endpoint or the network reset.
    pub reset: u64,
}

/// Handshakes counted in a capture, each once however often its packets were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureCounts {
    /// TCP: SYN without ACK.
    pub tcp_handshakes: u64,
    /// TLS: ClientHello.
    pub tls_handshakes: u64,
}

/// A sample's summary. Quantiles of an empty sample are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Sample size.
    pub n: u64,
    /// Smallest value.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// How quantiles were taken, e.g. `nearest-rank`.
    pub method: String,
    /// 95 % interval of the median, free of assumptions about the distribution; absent: n too small.
    pub p50_interval: Option<[f64; 2]>,
}

/// A published figure beside the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// What is compared.
    pub name: String,
    /// The metric's expression.
    pub metric: String,
    /// Published figure, if there is one.
    pub published: Option<f64>,
    /// Measured figure; absent: the run has no such number.
    pub measured: Option<f64>,
    /// measured / published.
    pub ratio: Option<f64>,
    /// It lies where the experiment says it must.
    pub within: bool,
    /// What is allowed, in words.
    pub allowed: String,
    /// Where the published figure comes from.
    pub source: String,
    /// Why the two may differ.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that outside readers rely on.
    #[test]
    fn the_contract_names_are_there() {
        let json = serde_json::to_value(summary()).expect("plain data");
        for path in [
            "/variants/0/name",
            "/variants/0/invocations",
            "/variants/0/errors",
            "/variants/0/duration_ms/min",
            "/variants/0/duration_ms/p50",
            "/variants/0/duration_ms/p90",
            "/variants/0/duration_ms/p95",
            "/variants/0/duration_ms/p99",
            "/variants/0/duration_ms/max",
            "/variants/0/duration_ms/mean",
            "/variants/0/init_ms/0",
            "/variants/0/calls/dynamodb/n",
            "/variants/0/calls/dynamodb/p50",
            "/variants/0/calls/dynamodb/p90",
            "/variants/0/calls/dynamodb/p95",
            "/variants/0/calls/dynamodb/mean",
            "/variants/0/connections/opened",
            "/variants/0/connections/reused",
            "/variants/0/connections/tls_handshakes",
            "/variants/0/throttled_ratio",
            "/variants/0/unattributed_ratio",
            "/expect/0/name",
            "/expect/0/published",
            "/expect/0/measured",
            "/expect/0/ratio",
            "/expect/0/within",
            "/calibration/cpu_factor",
            "/caveats/0",
        ] {
            assert!(json.pointer(path).is_some(), "{path}");
        }
        let back: Summary = serde_json::from_value(json).expect("reads back");
        assert_eq!(back, summary());
    }

    fn quantiles() -> Quantiles {
        let one = Some(1.0);
        Quantiles {
            n: 1,
            min: one,
            p50: one,
            p90: one,
            p95: one,
            p99: one,
            max: one,
            mean: one,
            method: "nearest-rank".to_owned(),
            p50_interval: None,
        }
    }

    fn summary() -> Summary {
        let variant = VariantSummary {
            name: "on".to_owned(),
            memory_mb: 128,
            invocations: 1,
            errors: 0,
            timeouts: 0,
            cold_starts: 1,
            duration_ms: quantiles(),
            warm_duration_ms: quantiles(),
            client_ms: quantiles(),
            late_ms: quantiles(),
            init_ms: vec![120.0],
            calls: [("dynamodb".to_owned(), quantiles())].into(),
            durations: BTreeMap::new(),
            throttles: 0,
            requests: None,
            database: None,
            returned: BTreeMap::new(),
            connections: ConnectionCounts::default(),
            capture: CaptureCounts::default(),
            connections_per_invocation: 0.0,
            handshakes_per_invocation: 0.0,
            throttled_ratio: 0.5,
            cpu_share: 0.07,
            unattributed_ratio: 0.01,
            waterfall_ms: BTreeMap::new(),
        };
        let expectation = Expectation {
            name: "p50".to_owned(),
            metric: "on.duration_ms.p50".to_owned(),
            published: Some(1.0),
            measured: Some(1.0),
            ratio: Some(1.0),
            within: true,
            allowed: "×/÷ 2".to_owned(),
            source: "S1".to_owned(),
            reason: String::new(),
        };
        let finding = Finding {
            variant: None,
            kind: "throttled".to_owned(),
            text: "a finding".to_owned(),
            evidence: Vec::new(),
            examples: Vec::new(),
            level: crate::Level::Problem,
            connections: Vec::new(),
            share: Some(0.5),
            confidence: crate::Confidence::High,
            remedy: None,
        };
        Summary {
            schema: crate::SCHEMA,
            name: "x".to_owned(),
            complete: true,
            seed: 1,
            time_scale: 1.0,
            repetitions: 1,
            variants: vec![variant],
            expect: vec![expectation],
            findings: vec![finding],
            calibration: Calibration { cpu_factor: Some(1.3), measurements: Vec::new() },
            link: serde_json::Value::Null,
            caveats: vec!["a caveat".to_owned()],
        }
    }
}
