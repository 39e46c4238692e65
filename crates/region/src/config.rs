//! What a user may say about the region. Defaults are sourced; `time_scale` divides idle cut-offs and nothing else.

use crate::{Distribution, Error};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// DynamoDB closes a connection that idled this long: S0 saw 60.03 s kept and 65.6 s not (`seed-experiments.md`).
const DYNAMODB_IDLE_CUTOFF_MS: u64 = 62_500;

/// The service's own time. S0's `SuccessfulRequestLatency` stayed under 10 ms all along and AWS says "single-digit
/// milliseconds"; S3 did 100 reads over one connection in 556 ms at a full vCPU, so SDK, round trip and service together take
/// 5.6 ms, of which a round trip of 1 ms and some 2 ms of the SDK's CPU leave 2 to 3. So: median 2 ms, p99 8 ms, never above
/// 9 ms, which leaves room for the instrument's own lateness below 10 ms. Writes take longer on AWS; set `service_time` for them.
const SERVICE_TIME: Distribution = Distribution::LogNormal { median_ms: 2.0, p99_ms: 8.0, max_ms: Some(9.0) };

/// Extra for the first request on a connection. S1 names the cause (a cache of encryption keys per connection) but no
/// figure; S0 bounds the sum below 10 ms. Assumed: a modest 1.5 ms.
const FIRST_REQUEST_EXTRA: Distribution =
    Distribution::LogNormal { median_ms: 1.5, p99_ms: 4.0, max_ms: Some(6.0) };

/// The region as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// AWS region, e.g. `ap-northeast-1`. Names of every region resolve; this one's certificate is made ahead.
    pub region_name: String,
    /// DynamoDB; without it its name does not exist.
    pub dynamodb: Option<DynamoDb>,
    /// Seed of everything drawn here.
    pub seed: u64,
    /// Divides idle cut-offs, 1 to 10.
    pub time_scale: f64,
    /// Directory that keeps the CA's keys from run to run, because RSA keys take long to make. None: made anew.
    pub ca_dir: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Config { region_name: "us-east-1".to_owned(), dynamodb: None, seed: 1, time_scale: 1.0, ca_dir: None }
    }
}

/// DynamoDB: what is in it, and how its endpoint behaves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DynamoDb {
    /// Tables that exist from the start; not used with an upstream.
    pub tables: Vec<Table>,
    /// The endpoint.
    pub endpoint: Endpoint,
}

/// A table that exists from the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Partition key: attribute and type, `["id", "N"]`.
    pub hash_key: (String, KeyType),
    /// Sort key: attribute and type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_key: Option<(String, KeyType)>,
    /// Items in plain JSON: numbers become `N`, strings `S`, objects `M`, arrays `L`.
    #[serde(default)]
    pub items: Vec<serde_json::Value>,
}

/// Type of a key attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyType {
    /// String.
    S,
    /// Number.
    N,
    /// Binary.
    B,
}

/// How an endpoint behaves in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Endpoint {
    /// A connection without a request for this long is closed (close_notify, FIN), in ms of unscaled time. 0: never.
    pub idle_cutoff_ms: u64,
    /// From the whole request read to the response handed over; the engine's own time is inside. Default: a few ms for
    /// the engine in process; nothing for an upstream, whose real time counts.
    pub service_time: Option<Distribution>,
    /// Added for the first request on a connection; the sum keeps to `service_time`'s bound.
    pub first_request_extra: Option<Distribution>,
    /// Faults to inject; the first that strikes wins.
    pub faults: Vec<Fault>,
    /// `http://` or `https://` URL of a server that answers instead of the engine. It sees the original `Host` and
    /// signature.
    pub upstream: Option<String>,
    /// What TLS offers.
    pub tls: TlsSettings,
}

impl Default for Endpoint {
    fn default() -> Self {
        Endpoint {
            idle_cutoff_ms: DYNAMODB_IDLE_CUTOFF_MS,
            service_time: None,
            first_request_extra: None,
            faults: Vec::new(),
            upstream: None,
            tls: TlsSettings::default(),
        }
    }
}

/// What an endpoint's TLS offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSettings {
    /// Lowest version: AWS refuses less than 1.2.
    pub min: TlsVersion,
    /// Highest version: AWS has offered 1.3 since 2023; field reports before that had 1.2 with its extra round trip.
    pub max: TlsVersion,
    /// Sessions may be resumed. DynamoDB's endpoints gave sessions out in 2016 (aws-sdk-js issue 862); that they still
    /// do is assumed. boto3 refuses tickets by itself; Node's agents use them, also with keep-alive off.
    pub resumption: bool,
}

impl Default for TlsSettings {
    fn default() -> Self {
        TlsSettings { min: TlsVersion::V12, max: TlsVersion::V13, resumption: true }
    }
}

/// A TLS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    V12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    V13,
}

/// A fault to inject: on a share of the requests (`ratio`) or on each n-th (`every`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// Share of requests, 0 to 1, by seeded chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Each n-th request of the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// The endpoint's first requests that are spared.
    #[serde(default)]
    pub after: u64,
    /// How long a stall lasts, in ms; then the connection is closed without an answer.
    #[serde(default = "default_stall_ms")]
    pub stall_ms: u64,
}

/// Longer than common client timeouts, shorter than a test's patience.
fn default_stall_ms() -> u64 {
    30_000
}

/// What an injected fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// 500 `InternalServerError`.
    Http500,
    /// 400 `ProvisionedThroughputExceededException`.
    Throttle,
    /// 400 `ThrottlingException`.
    ThrottlingException,
    /// RST instead of a response.
    Reset,
    /// No response for `stall_ms`, then the connection ends.
    Stall,
}

impl FaultKind {
    /// As it is written and recorded.
    pub fn as_str(self) -> &'static str {
        match self {
            FaultKind::Http500 => "http500",
            FaultKind::Throttle => "throttle",
            FaultKind::ThrottlingException => "throttling-exception",
            FaultKind::Reset => "reset",
            FaultKind::Stall => "stall",
        }
    }
}

impl Endpoint {
    /// The service time in effect; none for an upstream unless one was asked for.
    pub fn effective_service_time(&self) -> Option<Distribution> {
        self.service_time.or(self.upstream.is_none().then_some(SERVICE_TIME))
    }

    /// The first request's extra in effect.
    pub fn effective_first_request_extra(&self) -> Option<Distribution> {
        self.first_request_extra.or(self.upstream.is_none().then_some(FIRST_REQUEST_EXTRA))
    }
}

impl Config {
    /// Checks what the types cannot.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let refuse = |key: String, value: String, allowed| Err(Error::Setting { key, value, allowed });
        if !(1.0..=10.0).contains(&self.time_scale) {
            return refuse("time_scale".to_owned(), self.time_scale.to_string(), "1 to 10");
        }
        let Some(dynamodb) = &self.dynamodb else { return Ok(()) };
        let tls = dynamodb.endpoint.tls;
        if (tls.min, tls.max) == (TlsVersion::V13, TlsVersion::V12) {
            return refuse("dynamodb.endpoint.tls.min".to_owned(), "1.3".to_owned(), "at most max");
        }
        for (i, fault) in dynamodb.endpoint.faults.iter().enumerate() {
            let key = |part: &str| format!("dynamodb.endpoint.faults[{i}]{part}");
            match (fault.ratio, fault.every) {
                (Some(ratio), None) if !(0.0..=1.0).contains(&ratio) => {
                    return refuse(key(".ratio"), ratio.to_string(), "0 to 1");
                }
                (None, Some(0)) => return refuse(key(".every"), "0".to_owned(), "1 or more"),
                (Some(_), None) | (None, Some(_)) => {}
                _ => {
                    let value = fault.kind.as_str().to_owned();
                    return refuse(key(""), value, "exactly one of ratio and every is given");
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiments_section() {
        let text = r#"
            [[tables]]
            name = "test"
            hash_key = ["id", "N"]
            items = [{ id = 1, name = "one" }]
            [endpoint]
            idle_cutoff_ms = 1000
            service_time = { median_ms = 3, p99_ms = 8 }
            tls = { max = "1.2" }
            faults = [{ kind = "throttle", ratio = 0.1 }, { kind = "reset", every = 5, after = 2 }]
        "#;
        let read: DynamoDb = toml::from_str(text).expect("valid");
        assert_eq!(read.tables[0].hash_key, ("id".to_owned(), KeyType::N));
        assert_eq!(read.tables[0].items, [serde_json::json!({"id": 1, "name": "one"})]);
        assert_eq!(read.endpoint.faults[1].after, 2);
        assert_eq!(read.endpoint.tls.min, TlsVersion::V12);
        let config = Config { dynamodb: Some(read.clone()), ..Config::default() };
        config.validate().expect("valid");
        let written = toml::to_string(&read).expect("written");
        assert_eq!(toml::from_str::<DynamoDb>(&written).expect("read again"), read);
    }

    #[test]
    fn defaults_are_dynamodbs() {
        let read: DynamoDb = toml::from_str("").expect("empty is valid");
        assert_eq!(read, DynamoDb::default());
        assert_eq!(read.endpoint.idle_cutoff_ms, 62_500);
        assert!(read.endpoint.effective_service_time().is_some_and(|d| d.max_ms() < 10.0));
        let upstream = Endpoint { upstream: Some("http://127.0.0.1:8000".to_owned()), ..Endpoint::default() };
        assert_eq!(upstream.effective_service_time(), None);
    }

    #[test]
    fn refused_settings_are_named() {
        let check = |text: &str, expect: &str| {
            let said = match toml::from_str::<Config>(text) {
                Err(error) => error.to_string(),
                Ok(config) => config.validate().expect_err("must be refused").to_string(),
            };
            assert!(said.contains(expect), "{text}: {said}");
        };
        check("time_scale = 11", "time_scale");
        check("time_scale = nan", "time_scale");
        check("regoin_name = 'x'", "regoin_name");
        check("[dynamodb.endpoint]\nfaults = [{ kind = 'reset' }]", "exactly one of ratio and every");
        check("[dynamodb.endpoint]\nfaults = [{ kind = 'reset', every = 0 }]", "faults[0].every");
        check("[dynamodb.endpoint]\nfaults = [{ kind = 'reset', ratio = 2 }]", "faults[0].ratio");
        check("[dynamodb.endpoint]\nfaults = [{ kind = 'melt', ratio = 1 }]", "melt");
        check("[dynamodb.endpoint.tls]\nmin = '1.3'\nmax = '1.2'", "tls.min");
        check("[dynamodb.endpoint]\nservice_time = { mean_ms = 1 }", "mean_ms");
    }
}
