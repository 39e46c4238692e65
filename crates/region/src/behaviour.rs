//! How an endpoint behaves in time, as a user may say it.

use crate::kind::Kind;
use crate::{Distribution, Error};
use serde::{Deserialize, Serialize};

/// How an endpoint behaves in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Endpoint {
    /// A connection without a request for this long is closed (close_notify, FIN), in ms of unscaled time. 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_cutoff_ms: Option<u64>,
    /// From the whole request read to the response handed over; the engine's own time is inside. Default: what the service
    /// is known to take; nothing for an upstream, whose real time counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Distribution>,
    /// The same for operations that change something. Default: as `service_time` if that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_service_time: Option<Distribution>,
    /// Added where a value is encrypted or decrypted: the service asks KMS for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kms_time: Option<Distribution>,
    /// Requests per second beyond which the service answers `ThrottlingException`; a second's worth may come at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Added for the first request on a connection; the sum keeps to `service_time`'s bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_request_extra: Option<Distribution>,
    /// Faults to inject; the first that strikes wins.
    pub faults: Vec<Fault>,
    /// `http://` or `https://` URL of a server that answers instead of the engine. It sees the original `Host` and
    /// signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// What TLS offers.
    pub tls: TlsSettings,
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
    /// 400 `ProvisionedThroughputExceededException`; `ThrottlingException` where the service knows no other.
    Throttle,
    /// 400 `ThrottlingException`.
    ThrottlingException,
    /// RST instead of a response.
    Reset,
    /// The head and half of the body, then RST.
    ResetMidBody,
    /// A fatal TLS alert instead of a response.
    TlsAlert,
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
            FaultKind::ResetMidBody => "reset-mid-body",
            FaultKind::TlsAlert => "tls-alert",
            FaultKind::Stall => "stall",
        }
    }
}

/// What is in effect: what was said, else the service's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timing {
    pub(crate) idle_cutoff_ms: u64,
    pub(crate) read: Option<Distribution>,
    pub(crate) write: Option<Distribution>,
    pub(crate) kms: Option<Distribution>,
    pub(crate) first_request_extra: Option<Distribution>,
    pub(crate) rate_per_s: Option<f64>,
}

impl Endpoint {
    /// What is in effect for a service. An upstream takes its own time and has its own quotas, unless others were asked for.
    pub(crate) fn timing(&self, kind: Kind) -> Timing {
        let own = kind.timing();
        let unless_upstream = |own| self.upstream.is_none().then_some(own).flatten();
        Timing {
            idle_cutoff_ms: self.idle_cutoff_ms.unwrap_or(own.idle_cutoff_ms),
            read: self.service_time.or(unless_upstream(own.read)),
            write: self.write_service_time.or(self.service_time).or(unless_upstream(own.write)),
            kms: self.kms_time.or(unless_upstream(own.kms)),
            first_request_extra: self.first_request_extra.or(unless_upstream(own.first_request_extra)),
            rate_per_s: self.rate_per_s.or(own.rate_per_s.filter(|_| self.upstream.is_none())),
        }
    }

    /// Checks what the types cannot.
    pub(crate) fn validate(&self, service: &str) -> Result<(), Error> {
        let refuse = |key: String, value: String, allowed| {
            Err(Error::Setting { key: format!("{service}.endpoint.{key}"), value, allowed })
        };
        if (self.tls.min, self.tls.max) == (TlsVersion::V13, TlsVersion::V12) {
            return refuse("tls.min".to_owned(), "1.3".to_owned(), "at most max");
        }
        if let Some(rate) = self.rate_per_s
            && !(0.1..=1e9).contains(&rate)
        {
            return refuse("rate_per_s".to_owned(), rate.to_string(), "0.1 to 1000000000");
        }
        for (i, fault) in self.faults.iter().enumerate() {
            let key = |part: &str| format!("faults[{i}]{part}");
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
