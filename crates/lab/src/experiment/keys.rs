//! The experiment file as it is written. Field names are its keys; what they mean is in `docs/experiment-file.md`.

use danki_load::Load;
use danki_model::CpuChoice;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub seed: Option<u64>,
    pub repetitions: Option<u32>,
    pub time_scale: Option<f64>,
    pub event: Option<toml::Value>,
    pub event_file: Option<PathBuf>,
    #[serde(default)]
    pub function: FunctionKeys,
    #[serde(default)]
    pub region: RegionKeys,
    pub xray: Option<XRayKeys>,
    #[serde(default)]
    pub host: HostKeys,
    #[serde(default)]
    pub variant: Vec<VariantKeys>,
    pub load: Option<Load>,
    pub quick: Option<QuickKeys>,
    #[serde(default)]
    pub expect: Vec<ExpectKeys>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionKeys {
    pub dir: Option<PathBuf>,
    pub runtime: Option<String>,
    pub handler: Option<String>,
    pub memory_mb: Option<u32>,
    pub timeout_s: Option<f64>,
    pub ephemeral_mb: Option<u32>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    pub layers: Option<Vec<PathBuf>>,
    /// A SAM template, or its directory, that all of the above is taken from where it is absent.
    pub template: Option<PathBuf>,
    /// Logical id of the template's function.
    pub resource: Option<String>,
    /// Values of the template's parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// A container image in place of a directory: an OCI archive, or what `docker save` wrote.
    pub image: Option<PathBuf>,
    /// `ImageConfig`: instead of the image's `ENTRYPOINT`, `CMD` and `WORKDIR`.
    pub entry_point: Option<Vec<String>>,
    pub command: Option<Vec<String>>,
    pub working_directory: Option<String>,
    /// Only a template says so.
    #[serde(skip)]
    pub json_logs: bool,
}

impl FunctionKeys {
    /// These keys over others.
    pub fn over(self, base: FunctionKeys) -> FunctionKeys {
        FunctionKeys {
            dir: self.dir.or(base.dir),
            runtime: self.runtime.or(base.runtime),
            handler: self.handler.or(base.handler),
            memory_mb: self.memory_mb.or(base.memory_mb),
            timeout_s: self.timeout_s.or(base.timeout_s),
            ephemeral_mb: self.ephemeral_mb.or(base.ephemeral_mb),
            environment: base.environment.into_iter().chain(self.environment).collect(),
            layers: self.layers.or(base.layers),
            template: self.template.or(base.template),
            resource: self.resource.or(base.resource),
            parameters: base.parameters.into_iter().chain(self.parameters).collect(),
            image: self.image.or(base.image),
            entry_point: self.entry_point.or(base.entry_point),
            command: self.command.or(base.command),
            working_directory: self.working_directory.or(base.working_directory),
            json_logs: self.json_logs || base.json_logs,
        }
    }
}

/// [`FunctionKeys`] and what only a variant has (`flatten` would lose the unknown keys).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantKeys {
    pub name: String,
    pub event: Option<toml::Value>,
    pub event_file: Option<PathBuf>,
    pub provisioned_concurrency: Option<u32>,
    pub event_first: Option<f64>,
    pub db_proxy: Option<String>,
    pub ping_s: Option<f64>,
    pub dir: Option<PathBuf>,
    pub runtime: Option<String>,
    pub handler: Option<String>,
    pub memory_mb: Option<u32>,
    pub timeout_s: Option<f64>,
    pub ephemeral_mb: Option<u32>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    pub layers: Option<Vec<PathBuf>>,
    pub template: Option<PathBuf>,
    pub resource: Option<String>,
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    pub image: Option<PathBuf>,
    pub entry_point: Option<Vec<String>>,
    pub command: Option<Vec<String>>,
    pub working_directory: Option<String>,
}

impl VariantKeys {
    /// The function's keys with this variant's over them.
    pub fn over(self, base: &FunctionKeys) -> FunctionKeys {
        let mut base = base.clone();
        // Other code is another function: what was said of the first one's code does not hold for it.
        let differs = |own: &Option<PathBuf>, base: &Option<PathBuf>| own.is_some() && own != base;
        let resource = self.resource.is_some() && self.resource != base.resource;
        let (dir, image) = (differs(&self.dir, &base.dir), differs(&self.image, &base.image));
        let template = differs(&self.template, &base.template) || resource;
        if dir || image || template {
            (base.runtime, base.handler) = (None, None);
            (base.entry_point, base.command, base.working_directory) = (None, None, None);
            (base.dir, base.image) = (None, None);
        }
        let own = FunctionKeys {
            dir: self.dir,
            runtime: self.runtime,
            handler: self.handler,
            memory_mb: self.memory_mb,
            timeout_s: self.timeout_s,
            ephemeral_mb: self.ephemeral_mb,
            environment: self.environment,
            layers: self.layers,
            template: self.template,
            resource: self.resource,
            parameters: self.parameters,
            image: self.image,
            entry_point: self.entry_point,
            command: self.command,
            working_directory: self.working_directory,
            json_logs: false,
        };
        own.over(base)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionKeys {
    pub name: Option<String>,
    pub rtt_ms: Option<f64>,
    pub jitter_ms: Option<f64>,
    pub loss: Option<f64>,
    pub bandwidth_mbps: Option<f64>,
    pub dynamodb: Option<danki_region::DynamoDb>,
    pub secretsmanager: Option<danki_region::SecretsManager>,
    pub ssm: Option<danki_region::Ssm>,
    pub database: Option<danki_database::Config>,
}

/// `[xray]`: tracing is active.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XRayKeys {
    /// Share of invocations whose traces are kept, 0 to 1.
    #[serde(default = "all")]
    pub sampling: f64,
}

fn all() -> f64 {
    1.0
}

/// The keys of a network path. They may also stand in an endpoint's section, whose other keys are the region crate's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathKeys {
    pub rtt_ms: Option<f64>,
    pub jitter_ms: Option<f64>,
    pub loss: Option<f64>,
    pub bandwidth_mbps: Option<f64>,
}

/// Names of [`PathKeys`].
pub const PATH_KEYS: [&str; 4] = ["rtt_ms", "jitter_ms", "loss", "bandwidth_mbps"];

/// `[host]`: how envs behave. Absent keys take the host's defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostKeys {
    /// Freeze envs between invocations.
    pub freezer: Option<bool>,
    /// Packets of a frozen env.
    pub while_frozen: Option<danki_host::WhileFrozen>,
    /// Chance that a thawed runtime sees its event before held packets, 0 to 1.
    pub event_first: Option<f64>,
    /// On-demand init runs at one full vCPU.
    pub init_boost: Option<bool>,
    /// Whether CPU quotas follow Lambda's numbers or the speed of this machine's core.
    pub cpu_model: Option<CpuChoice>,
    /// When within a scheduler's tick CPU quotas are refilled.
    pub quota_phase: Option<danki_host::QuotaPhase>,
    /// An env idle for so long is ended, in seconds.
    pub idle_ttl_s: Option<f64>,
    /// Time between the end of the last init of provisioned concurrency and READY, in seconds.
    pub pc_ready_after_init_s: Option<f64>,
    /// Invocations that may run at once in the account.
    pub account_limit: Option<u32>,
    /// A CPU profile of every init and invocation of Node functions.
    pub profile: Option<bool>,
    /// How many of the machine's trusted roots functions load.
    pub roots: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuickKeys {
    pub repetitions: Option<u32>,
    pub load: Option<Load>,
    pub event: Option<toml::Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectKeys {
    pub name: String,
    pub metric: String,
    pub published: Option<f64>,
    pub within: Within,
    #[serde(default)]
    pub source: String,
    #[serde(default)]
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "a factor such as 2.0, or { min = .., max = .. }")]
pub enum Within {
    Factor(f64),
    Range(RangeKeys),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeKeys {
    pub min: Option<f64>,
    pub max: Option<f64>,
}
