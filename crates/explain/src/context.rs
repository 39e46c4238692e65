//! What the facts do not say about themselves: how each variant was deployed, and what the runner saw of the machine.

use danki_model::{CpuModel, MemoryMb};
use std::collections::BTreeMap;

/// How one variant was deployed.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The variant's name.
    pub name: String,
    /// Its memory size.
    pub memory: MemoryMb,
    /// Its environment variables.
    pub environment: BTreeMap<String, String>,
    /// Its runtime, as AWS names it.
    pub runtime: String,
}

/// The database that a variant's functions use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseSetting {
    /// The proxy that stands before it.
    pub proxy: Option<String>,
    /// Connections that it allows.
    pub max_connections: u32,
    /// Its instance class.
    pub class: String,
}

/// A run around its facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// One per variant; a variant without one gets no prediction.
    pub settings: Vec<Setting>,
    /// By variant; absent: no database.
    pub databases: BTreeMap<String, DatabaseSetting>,
    /// Whether the envs' quotas were scaled to the speed of the host's core.
    pub cpu_model: CpuModel,
    /// What the runner had to say.
    pub caveats: Vec<String>,
    /// Seed of resampling.
    pub seed: u64,
}

impl Context {
    /// How a variant was deployed.
    pub fn of(&self, variant: &str) -> Option<&Setting> {
        self.settings.iter().find(|s| s.name == variant)
    }
}
