//! The services, and what differs between them on the wire and in time.
//!
//! Times are the services' own: from the whole request read to the response handed over. Sources stand beside them; where AWS
//! publishes nothing they are what is left of a call's published whole after a round trip of 1 ms and the SDK's CPU.

use crate::Distribution;
use crate::behaviour::Timing;
use crate::dynamodb::{self, Reply};
use danki_secretstore::Effort;
use serde_json::json;

/// A service of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    DynamoDb,
    SecretsManager,
    Ssm,
}

/// What goes wrong on the service's side, whatever the request was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Capacity of the thing asked for is exhausted.
    Capacity,
    /// The service as a whole is asked too often.
    Throttled,
    Internal,
    TooLarge,
}

/// DynamoDB closes a connection that idled this long: S0 saw 60.03 s kept and 65.6 s not. Assumed of the others, of which nothing is
/// published.
const IDLE_CUTOFF_MS: u64 = 62_500;

/// S0's `SuccessfulRequestLatency` stayed under 10 ms all along and AWS says "single-digit milliseconds"; S3 did 100 reads over one
/// connection in 556 ms at a full vCPU, so SDK, round trip and service together take 5.6 ms, of which a round trip of 1 ms and some 2 ms
/// of the SDK's CPU leave 2 to 3. So: median 2 ms, p99 8 ms, never above 9 ms, which leaves room for the instrument's own lateness.
const DYNAMODB_READ: Distribution =
    Distribution::LogNormal { median_ms: 2.0, p99_ms: 8.0, max_ms: Some(9.0) };

/// A write is acknowledged by two of three zones before it is answered, so it takes about twice as long; also below 10 ms. T13 (a PutItem
/// over a kept connection, with API, SDK and all: 10 ms on average) leaves room for no more.
const DYNAMODB_WRITE: Distribution =
    Distribution::LogNormal { median_ms: 4.0, p99_ms: 9.0, max_ms: Some(9.5) };

/// AJ Stuyvenberg's guide to secrets (2024) has 29.4 ms for a warm call from Lambda; less KMS, round trip and SDK.
const SECRETS_READ: Distribution =
    Distribution::LogNormal { median_ms: 20.0, p99_ms: 60.0, max_ms: Some(300.0) };
/// Nothing is published; assumed twice a read, as for DynamoDB.
const SECRETS_WRITE: Distribution =
    Distribution::LogNormal { median_ms: 40.0, p99_ms: 120.0, max_ms: Some(600.0) };

/// The same guide has 39.3 ms; ten reads in 278 ms at 128 MB were measured elsewhere (Go, 2022). Between the two, less KMS and SDK.
const SSM_READ: Distribution = Distribution::LogNormal { median_ms: 24.0, p99_ms: 80.0, max_ms: Some(300.0) };
/// Nothing is published; assumed twice a read.
const SSM_WRITE: Distribution =
    Distribution::LogNormal { median_ms: 48.0, p99_ms: 160.0, max_ms: Some(600.0) };

/// The same guide: 6.45 ms for a warm call to KMS, less the round trip; what the other services' calls to it take is assumed alike.
const KMS: Distribution = Distribution::LogNormal { median_ms: 5.0, p99_ms: 20.0, max_ms: Some(100.0) };

/// DynamoDB keeps a table's key per connection (S1 names it as a cost of a new one), and users who opened a connection per request found
/// a call to KMS for each (awslabs/fhir-works-on-aws-deployment#639, aws/aws-sdk-go-v2#2129). So the first request takes such a call's
/// time; S0's agent A, each of whose calls was the first on its connection, bounds the sum below 10 ms ([`DYNAMODB_READ`]'s and the write's bound).
const DYNAMODB_FIRST: Distribution = KMS;

/// Quotas of an account that nobody raised (AWS docs): GetSecretValue and DescribeSecret together 10,000 a second, GetParameter 40.
const SECRETS_RATE: f64 = 10_000.0;
const SSM_RATE: f64 = 40.0;

impl Kind {
    /// The endpoint prefix of its host names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::DynamoDb => "dynamodb",
            Kind::SecretsManager => "secretsmanager",
            Kind::Ssm => "ssm",
        }
    }

    /// The operation that a target header names.
    pub(crate) fn operation(self, target: &str) -> Option<&str> {
        match self {
            Kind::DynamoDb => dynamodb::operation(target),
            Kind::SecretsManager => target.strip_prefix("secretsmanager."),
            Kind::Ssm => target.strip_prefix("AmazonSSM."),
        }
    }

    /// What an operation does.
    pub(crate) fn effort(self, operation: &str) -> Effort {
        let known = match self {
            Kind::DynamoDb => Some(Effort { writes: dynamodb::writes(operation), kms: false }),
            Kind::SecretsManager => danki_secretstore::SecretsManager::effort(operation),
            Kind::Ssm => danki_secretstore::Ssm::effort(operation),
        };
        known.unwrap_or(Effort { writes: false, kms: false })
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Kind::DynamoDb => "application/x-amz-json-1.0",
            Kind::SecretsManager | Kind::Ssm => "application/x-amz-json-1.1",
        }
    }

    /// How long it takes, and how much it takes, unless a user says otherwise.
    pub(crate) fn timing(self) -> Timing {
        let (read, write, kms, first_request_extra, rate_per_s) = match self {
            Kind::DynamoDb => (DYNAMODB_READ, DYNAMODB_WRITE, None, Some(DYNAMODB_FIRST), None),
            Kind::SecretsManager => (SECRETS_READ, SECRETS_WRITE, Some(KMS), None, Some(SECRETS_RATE)),
            Kind::Ssm => (SSM_READ, SSM_WRITE, Some(KMS), None, Some(SSM_RATE)),
        };
        let (read, write) = (Some(read), Some(write));
        Timing { idle_cutoff_ms: IDLE_CUTOFF_MS, read, write, kms, first_request_extra, rate_per_s }
    }

    /// An error in the service's words, which are those of its API reference. `status` and `text` of danki's own errors win.
    pub(crate) fn error(self, trouble: Trouble, own: Option<(u16, &str)>) -> Reply {
        let (status, kind, text) = match self {
            Kind::DynamoDb => dynamodb::trouble(trouble),
            Kind::SecretsManager | Kind::Ssm => stores_trouble(self, trouble),
        };
        let (status, text) = own.unwrap_or((status, text));
        let body = match (self, trouble) {
            (Kind::SecretsManager, Trouble::Internal) => json!({ "__type": kind, "Message": text }),
            _ => json!({ "__type": kind, "message": text }),
        };
        Reply { status, body: body.to_string().into() }
    }

    /// The answer to an operation that is not known.
    pub(crate) fn unknown_operation(self) -> Reply {
        let kind = match self {
            Kind::DynamoDb => "com.amazon.coral.service#UnknownOperationException",
            Kind::SecretsManager | Kind::Ssm => "UnknownOperationException",
        };
        Reply { status: 400, body: json!({ "__type": kind }).to_string().into() }
    }
}

fn stores_trouble(kind: Kind, trouble: Trouble) -> (u16, &'static str, &'static str) {
    match (trouble, kind) {
        (Trouble::Capacity | Trouble::Throttled, _) => (400, "ThrottlingException", "Rate exceeded"),
        (Trouble::Internal, Kind::SecretsManager) => {
            (500, "InternalServiceError", "An error occurred on the server side.")
        }
        (Trouble::Internal, _) => (500, "InternalServerError", "An error occurred on the server side."),
        (Trouble::TooLarge, _) => (413, "RequestEntityTooLargeException", "request is too large"),
    }
}
