//! Layers: directories that are merged into `/opt`.

use super::CodeOf;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A layer with its versions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Layer {
    pub versions: BTreeMap<u64, LayerVersion>,
    /// Numbers are never used twice.
    pub next_version: u64,
}

/// One version of a layer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LayerVersion {
    pub description: String,
    pub licence: Option<String>,
    pub runtimes: Vec<String>,
    pub architectures: Vec<String>,
    pub code: CodeOf,
    pub created_ms: u64,
}
