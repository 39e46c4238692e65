//! `manifest.json`: what a run was, so that its numbers can be judged and the run repeated.

use serde::{Deserialize, Serialize};

/// Version of the run directory's schema. It grows when a reader of the old one would misread the new one.
pub const SCHEMA: u32 = 1;

/// The run's set-up. Written when the run starts and once more when it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: u32,
    /// danki's version.
    pub danki: String,
    /// The experiment's name.
    pub name: String,
    /// The experiment as it was run, defaults and `--quick` applied.
    pub experiment: serde_json::Value,
    /// When the run started, ms since 1970.
    pub started_epoch_ms: u64,
    /// When the run started, ns of the run's clock: zero of the times in the CSV files.
    pub started_ns: u64,
    /// Add it to any `*_ns` of the run to get ns since 1970.
    pub epoch_offset_ns: u64,
    /// Seed of all draws.
    pub seed: u64,
    /// Divisor of gaps, cut-offs and idle lifetimes.
    pub time_scale: f64,
    /// `--quick` was given.
    pub quick: bool,
    /// The machine.
    pub machine: Machine,
    /// What the kernel and the machine can do, as `danki doctor` prints it.
    pub capabilities: serde_json::Value,
    /// Speed of this machine against AWS's.
    pub calibration: Calibration,
    /// The run ended by itself. `false` in the directory of a run that was interrupted or is under way.
    pub complete: bool,
}

/// The machine a run ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// CPUs that danki may use.
    pub cpus: u32,
    /// Model of the first CPU, as the kernel names it.
    pub cpu_model: String,
}

/// Single-thread speed of this machine against a Lambda vCPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Above 1: this machine's core is faster than AWS's vCPU by this factor. Absent: `danki calibrate` was never run.
    pub cpu_factor: Option<f64>,
    /// The single measurements behind it.
    pub measurements: Vec<Measurement>,
}

/// One workload's time here and on AWS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Which loop on which interpreter.
    pub workload: String,
    /// Median here, ms.
    pub here_ms: f64,
    /// How many times it ran here.
    pub runs: u32,
    /// Published for one vCPU, ms.
    pub aws_ms: f64,
    /// Where the published figure comes from.
    pub source: String,
}
