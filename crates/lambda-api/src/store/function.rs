//! A function: its versions, aliases and everything that is stored beside them.

use super::Configuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The version that can be changed.
pub const LATEST: &str = "$LATEST";

/// A function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Function {
    pub name: String,
    pub latest: Version,
    /// Published versions by number.
    pub versions: BTreeMap<u64, Version>,
    /// Number of the next version: numbers are never used twice.
    pub next_version: u64,
    pub aliases: BTreeMap<String, Alias>,
    pub tags: BTreeMap<String, String>,
    /// Reserved concurrency.
    pub reserved: Option<u32>,
    /// Provisioned concurrency by qualifier.
    pub provisioned: BTreeMap<String, Provisioned>,
    /// By qualifier; `$LATEST` without one.
    pub event_invoke: BTreeMap<String, EventInvoke>,
    pub urls: BTreeMap<String, UrlConfig>,
    /// Statements by qualifier; the empty qualifier is the function itself.
    pub permissions: BTreeMap<String, Vec<Permission>>,
    pub recursion: String,
    pub runtime_update: Value,
}

/// `$LATEST` or a published version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Version {
    pub number: String,
    pub configuration: Configuration,
    pub code: CodeOf,
    pub revision: String,
    pub modified_ms: u64,
    pub state: State,
    pub last_update: LastUpdate,
}

/// Where a version's code is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeOf {
    /// Directory that becomes `/var/task`, or the file of an image.
    pub dir: PathBuf,
    /// The zip it came from; none for a local path.
    pub zip: Option<PathBuf>,
    /// Base64 of SHA-256 of the zip.
    pub sha256: String,
    pub size: u64,
    /// The user's own directory or image: changes there are picked up.
    pub local: bool,
}

/// `State` of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Pending,
    Active,
    Failed(String),
}

/// `LastUpdateStatus` of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LastUpdate {
    InProgress,
    Successful,
    Failed(String),
}

/// A name for a version, or for two with weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Alias {
    pub version: String,
    pub description: String,
    /// Another version and its share of invocations.
    pub weights: BTreeMap<String, f64>,
    pub revision: String,
}

/// Provisioned concurrency as asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Provisioned {
    pub requested: u32,
    pub modified_ms: u64,
}

/// How asynchronous invocations are treated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventInvoke {
    pub retries: Option<u32>,
    pub max_age_s: Option<u32>,
    pub on_success: Option<String>,
    pub on_failure: Option<String>,
    pub modified_ms: u64,
}

/// A Function URL.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UrlConfig {
    /// First label of the URL's host name.
    pub id: String,
    pub auth_type: String,
    pub cors: Option<Value>,
    /// `BUFFERED` or `RESPONSE_STREAM`.
    pub invoke_mode: String,
    pub created_ms: u64,
    pub modified_ms: u64,
}

/// A statement of a resource policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Permission {
    pub sid: String,
    pub statement: Value,
}

impl Function {
    /// `$LATEST` or a number.
    pub fn version(&self, number: &str) -> Option<&Version> {
        match number {
            LATEST => Some(&self.latest),
            number => self.versions.get(&number.parse().ok()?),
        }
    }

    pub fn version_mut(&mut self, number: &str) -> Option<&mut Version> {
        match number {
            LATEST => Some(&mut self.latest),
            number => self.versions.get_mut(&number.parse().ok()?),
        }
    }

    /// The version that a qualifier leads to.
    pub fn resolve(&self, qualifier: &str) -> Option<&Version> {
        match self.aliases.get(qualifier) {
            Some(alias) => self.version(&alias.version),
            None => self.version(qualifier),
        }
    }
}
