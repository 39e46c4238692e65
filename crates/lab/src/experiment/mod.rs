//! An experiment: what is asked, of which function, under which load, against which published figures.
//!
//! `docs/experiment-file.md` is the user's description. `keys` is the file as it is written, `resolve` makes an
//! [`Experiment`] of it, in which every default has been applied and every path is absolute.

mod account;
mod database;
mod function_dir;
mod guess;
mod keys;
mod metric;
mod payload;
mod place;
mod resolve;
mod taken;
mod template;

pub use function_dir::{FunctionChoice, single};
pub use guess::{Guess, Versions};
pub use keys::HostKeys;
pub use metric::{Allowed, Expect, Metric, Operand};
pub use payload::Payload;
pub use place::nearest;
pub use resolve::Options;

use danki_host::Forced;
use danki_link::Path as LinkPath;
use danki_load::Load;
use danki_model::FunctionSpec;
use serde::Serialize;
use std::collections::BTreeMap;

/// An experiment, ready to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub description: String,
    /// Seed of all draws.
    pub seed: u64,
    /// The load is repeated this often, each time with new envs.
    pub repetitions: u32,
    /// Divisor of gaps, idle cut-offs and idle lifetimes.
    pub time_scale: f64,
    /// The region around the function.
    pub region: Region,
    /// Share of invocations that X-Ray keeps; absent: tracing is not active.
    pub xray_sampling: Option<f64>,
    /// How envs behave.
    pub host: HostKeys,
    /// What is compared; at least one.
    pub variants: Vec<Variant>,
    /// How each variant is invoked.
    pub load: Load,
    /// Figures to hold the results against.
    pub expect: Vec<Expect>,
    /// `--quick` was applied.
    pub quick: bool,
    /// What its templates describe and danki does not run; results are read with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The region around a function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Region {
    /// AWS name.
    pub name: String,
    /// The network between the function and endpoints.
    pub path: LinkPath,
    /// The DynamoDB endpoint, if there is one.
    pub dynamodb: Option<danki_region::DynamoDb>,
    /// The Secrets Manager endpoint, if there is one.
    pub secretsmanager: Option<danki_region::SecretsManager>,
    /// The Parameter Store endpoint, if there is one.
    pub ssm: Option<danki_region::Ssm>,
    /// The database, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<danki_database::Config>,
    /// The networks to those that differ, by service.
    pub paths: BTreeMap<String, LinkPath>,
}

/// One of the things compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variant {
    /// Its name, unique in the experiment.
    pub name: String,
    /// The function as deployed for it.
    pub function: FunctionSpec,
    /// Payload of every invocation.
    pub event: Payload,
    /// Envs that provisioned concurrency keeps ready; the function is deployed as version 1 then.
    pub provisioned_concurrency: Option<u32>,
    /// Chance that a thawed runtime sees its event before held packets, if it differs from the host's.
    pub event_first: Option<f64>,
    /// The proxy that its functions have in place of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub db_proxy: Option<String>,
    /// Beside the load it is invoked whenever it has been idle for so long, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ping_s: Option<f64>,
    /// In which state each invocation shall find its env.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced: Option<Forced>,
}

impl Variant {
    /// A variant without settings of its own.
    pub fn new(name: impl Into<String>, function: FunctionSpec, event: Payload) -> Variant {
        Variant {
            name: name.into(),
            function,
            event,
            provisioned_concurrency: None,
            event_first: None,
            db_proxy: None,
            ping_s: None,
            forced: None,
        }
    }
}
