//! What the facts say, in sentences with numbers behind them.

use danki_model::{ConnId, RequestId};
use serde::{Deserialize, Serialize};

/// Something the facts say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The variant it is about; absent: the run.
    pub variant: Option<String>,
    /// What kind of thing it is, in a word.
    pub kind: String,
    /// What it means for the reader.
    #[serde(default)]
    pub level: Level,
    /// One or two plain sentences.
    pub text: String,
    /// The numbers behind it.
    pub evidence: Vec<Evidence>,
    /// Invocations to look at.
    pub examples: Vec<RequestId>,
    /// Connections to look at.
    #[serde(default)]
    pub connections: Vec<ConnId>,
    /// Share of the variant's time that it accounts for, 0 to 1, where that can be said.
    #[serde(default)]
    pub share: Option<f64>,
    /// How sure the attribution is.
    #[serde(default)]
    pub confidence: Confidence,
    /// What would change it, if something is known to.
    #[serde(default)]
    pub remedy: Option<Remedy>,
}

/// A number behind a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What it is, e.g. `new_call_median`.
    pub name: String,
    /// The number.
    pub value: f64,
    /// Its unit: `ms`, `s`, `MB`, `USD`, `ratio`, `1` for counts.
    pub unit: String,
}

/// What a finding means for its reader. The order is that of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Costs time, money or answers.
    Problem,
    /// Good to know before the numbers are quoted.
    #[default]
    Note,
    /// As it should be.
    Good,
}

/// How sure an attribution is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The facts leave no other reading that we know of.
    High,
    /// Another reading is possible, and the text names it.
    #[default]
    Medium,
    /// A hint: few cases, or a reading by exclusion.
    Low,
}

/// What would change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// What to do.
    pub text: String,
    /// Predicted saving per invocation at the median, ms; negative: slower.
    pub saves_ms: Option<f64>,
    /// Predicted saving per million invocations in USD; negative: dearer.
    pub saves_usd_per_million: Option<f64>,
    /// How danki can try it by itself.
    pub change: Option<Change>,
}

/// A change that danki can apply to a variant without touching the function's code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "apply", rename_all = "snake_case")]
pub enum Change {
    /// Another memory size.
    Memory {
        /// MB.
        mb: u32,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Connections are kept: SDK v2's variable, and agents that are told so by a file preloaded into Node.
    KeepAlive,
    /// As many envs ready.
    ProvisionedConcurrency {
        /// How many.
        envs: u32,
    },
    /// Straight to the database.
    NoDbProxy,
    /// Through the first of the database's proxies.
    DbProxy,
    /// An invocation whenever it has been idle for so long.
    Ping {
        /// Seconds, as the run's clocks went.
        every_s: f64,
    },
}
