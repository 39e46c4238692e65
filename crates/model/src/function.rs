//! What a user says about a function.

use crate::{Logging, MemoryMb};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A function as it is deployed: Lambda's configuration, with local paths for code and layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionSpec {
    /// Function name.
    pub name: String,
    /// Who runs the code.
    pub runtime: Runtime,
    /// Handler, e.g. `index.handler`; free-form for `provided`.
    pub handler: String,
    /// Directory that becomes `/var/task`.
    pub code: PathBuf,
    /// Directories merged in order into `/opt` (later ones win), at most 5.
    pub layers: Vec<PathBuf>,
    /// Memory size.
    pub memory: MemoryMb,
    /// Function timeout in ms, 1,000 to 900,000.
    pub timeout_ms: u64,
    /// Size of `/tmp` in MB, 512 to 10,240.
    pub ephemeral_mb: u32,
    /// The customer's environment variables.
    pub environment: BTreeMap<String, String>,
    /// AWS region the function believes to be in.
    pub region: String,
    /// Log format and levels.
    #[serde(default)]
    pub logging: Logging,
    /// A container image, which brings its own runtime and has no handler; `code` is not used then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSpec>,
}

/// A container image and `ImageConfig`, what is said instead of the image's own settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSpec {
    /// An OCI archive, or what `docker save` wrote.
    pub archive: PathBuf,
    /// Instead of `ENTRYPOINT`.
    pub entry_point: Option<Vec<String>>,
    /// Instead of `CMD`.
    pub command: Option<Vec<String>>,
    /// Instead of `WORKDIR`.
    pub working_directory: Option<String>,
}

/// The language runtime of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Runtime {
    /// `nodejs<major>.x`
    NodeJs(u8),
    /// `python3.<minor>`
    Python(u8),
    /// `php-8<minor>`, as Bref calls its runtimes: AWS has none of its own, and most PHP functions are Bref's.
    Php(u8),
    /// `provided`, `provided.al2`, `provided.al2023`: the package brings its own `bootstrap`.
    Provided,
}

/// A runtime identifier that danki does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "runtime {0:?} is not one of nodejs<N>.x, python3.<N>, php-8<N>, provided, provided.al2, provided.al2023"
)]
pub struct UnknownRuntime(pub String);

impl FromStr for Runtime {
    type Err = UnknownRuntime;
    fn from_str(s: &str) -> Result<Self, UnknownRuntime> {
        let unknown = || UnknownRuntime(s.to_owned());
        if let Some(major) = s.strip_prefix("nodejs").and_then(|r| r.strip_suffix(".x")) {
            return major.parse().map(Runtime::NodeJs).map_err(|_| unknown());
        }
        if let Some(minor) = s.strip_prefix("python3.") {
            return minor.parse().map(Runtime::Python).map_err(|_| unknown());
        }
        if let Some(minor) = s.strip_prefix("php-8") {
            return minor.parse().map(Runtime::Php).map_err(|_| unknown());
        }
        match s {
            "provided" | "provided.al2" | "provided.al2023" => Ok(Runtime::Provided),
            _ => Err(unknown()),
        }
    }
}

impl TryFrom<String> for Runtime {
    type Error = UnknownRuntime;
    fn try_from(s: String) -> Result<Self, UnknownRuntime> {
        s.parse()
    }
}

impl From<Runtime> for String {
    fn from(r: Runtime) -> String {
        r.to_string()
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Runtime::NodeJs(major) => write!(f, "nodejs{major}.x"),
            Runtime::Python(minor) => write!(f, "python3.{minor}"),
            Runtime::Php(minor) => write!(f, "php-8{minor}"),
            Runtime::Provided => f.write_str("provided.al2023"),
        }
    }
}

/// Value of `AWS_LAMBDA_INITIALIZATION_TYPE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitializationType {
    /// Created because an invocation needed an env.
    #[default]
    OnDemand,
    /// Created ahead, by provisioned concurrency: no CPU boost, up to 15 min.
    ProvisionedConcurrency,
}

impl InitializationType {
    /// The text that the function sees.
    pub fn as_str(self) -> &'static str {
        match self {
            InitializationType::OnDemand => "on-demand",
            InitializationType::ProvisionedConcurrency => "provisioned-concurrency",
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A function that Lambda would accept.
    pub(crate) fn spec() -> FunctionSpec {
        FunctionSpec {
            name: "f".to_owned(),
            runtime: Runtime::NodeJs(20),
            handler: "index.handler".to_owned(),
            code: PathBuf::from("code"),
            layers: Vec::new(),
            memory: MemoryMb::try_from(256).expect("in range"),
            timeout_ms: 3_000,
            ephemeral_mb: 512,
            environment: BTreeMap::new(),
            region: "ap-northeast-1".to_owned(),
            logging: Logging::default(),
            image: None,
        }
    }

    #[test]
    fn runtime_identifiers_round_trip() {
        for id in ["nodejs20.x", "python3.11", "php-82", "provided.al2023"] {
            assert_eq!(id.parse::<Runtime>().expect("known").to_string(), id);
        }
        for id in ["node", "nodejs.x", "python2.7", "python3.", "php", "php-8", "php-72", "java21", ""] {
            assert!(id.parse::<Runtime>().is_err(), "{id}");
        }
    }
}
