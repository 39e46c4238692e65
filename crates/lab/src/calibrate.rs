//! How fast is one core here, compared with a Lambda vCPU?
//!
//! The same loop that others timed on AWS at 1,769 MB – exactly one vCPU – is timed here outside of any quota, in fresh
//! processes, as theirs were cold invocations. What counts is CPU time of the whole process: under a quota of one vCPU that
//! is what a pure CPU loop takes by the wall clock too, and here it does not grow when other work shares the machine (but
//! for caches and hyper-threads: calibrate on an idle machine). So the ratio is that of the cores, as far as the
//! interpreters' builds are alike.

use crate::error::{Error, file};
use crate::experiment::Versions;
use crate::machine::machine;
use danki_record::{Calibration, Machine, Measurement};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mean `Duration` of 20 cold invocations at 1,769 MB, x86_64, of 500,000 chained SHA-256, by runtime.
/// Source: cebert/aws-lambda-performance-benchmarks @c8c9c66, 2025-11-30, us-east-2 (`published-tables.md` T2).
const NODE_MS: [(u8, f64); 2] = [(20, 1_627.34), (22, 1_533.69)];
/// The same for Python 3 by minor version.
const PYTHON_MS: [(u8, f64); 4] = [(11, 324.23), (12, 379.91), (13, 368.26), (14, 380.96)];
const SOURCE: &str = "T2: cebert/aws-lambda-performance-benchmarks, 2025-11-30, x86_64, 1,769 MB";

/// T2's workload; prints the loop's CPU time in ms.
const NODE_LOOP: &str = "const { createHash } = require('node:crypto'); const before = process.cpuUsage(); \
     let d = Buffer.from('danki'); for (let i = 0; i < 500000; i++) d = createHash('sha256').update(d).digest(); \
     const { user, system } = process.cpuUsage(before); console.log((user + system) / 1000)";
const PYTHON_LOOP: &str = "import hashlib, time\nt = time.process_time()\nd = b'danki'\n\
     for _ in range(500_000):\n    d = hashlib.sha256(d).digest()\nprint((time.process_time() - t) * 1000)";

/// Interpreters to measure with; those that are absent are left out.
#[derive(Clone, Debug, Default)]
pub struct Interpreters {
    /// Their versions.
    pub versions: Versions,
    /// `node`.
    pub node: Option<PathBuf>,
    /// `python3`.
    pub python: Option<PathBuf>,
    /// `php`, which is not measured with.
    pub php: Option<PathBuf>,
}

impl Interpreters {
    /// Looks for them along `search_path`.
    pub fn find(search_path: &[PathBuf]) -> Interpreters {
        let find = |runtime| danki_host::find_interpreter(runtime, search_path).ok().flatten();
        let node = find(danki_model::Runtime::NodeJs(0));
        let python = find(danki_model::Runtime::Python(0));
        let php = find(danki_model::Runtime::Php(0));
        let number = |version: &str, nth| version.split('.').nth(nth).and_then(|n| n.parse().ok());
        Interpreters {
            versions: Versions {
                node: node.as_ref().and_then(|i| number(&i.version, 0)),
                python: python.as_ref().and_then(|i| number(&i.version, 1)),
                php: php.as_ref().and_then(|i| number(&i.version, 1)),
            },
            node: node.map(|i| i.executable),
            python: python.map(|i| i.executable),
            php: php.map(|i| i.executable),
        }
    }
}

/// Measures, `runs` times each. Takes a few seconds; the machine should be idle.
pub fn calibrate(interpreters: &Interpreters, runs: u32) -> Result<Calibration, Error> {
    let mut measurements = Vec::new();
    if let (Some(node), Some(major)) = (&interpreters.node, interpreters.versions.node) {
        let here = times(node, "-e", NODE_LOOP, runs)?;
        measurements.push(measurement(
            "500,000 chained SHA-256, node",
            here,
            nearest(&NODE_MS, major),
            "nodejs",
        ));
    }
    if let (Some(python), Some(minor)) = (&interpreters.python, interpreters.versions.python) {
        let here = times(python, "-c", PYTHON_LOOP, runs)?;
        measurements.push(measurement(
            "500,000 chained SHA-256, python",
            here,
            nearest(&PYTHON_MS, minor),
            "python3.",
        ));
    }
    if measurements.is_empty() {
        return Err(Error::Interpreter {
            program: "calibration".to_owned(),
            problem: "neither node nor python3 is here".to_owned(),
        });
    }
    Ok(Calibration { cpu_factor: factor(&measurements), measurements })
}

/// The geometric mean of the workloads' ratios.
fn factor(measurements: &[Measurement]) -> Option<f64> {
    let logs = measurements.iter().filter(|m| m.here_ms > 0.0).map(|m| (m.aws_ms / m.here_ms).ln());
    let (n, sum) = logs.fold((0.0, 0.0), |(n, sum), log| (n + 1.0, sum + log));
    (n > 0.0).then(|| (sum / n).exp())
}

fn times(program: &Path, flag: &str, code: &str, runs: u32) -> Result<Vec<f64>, Error> {
    let failed = |problem: String| Error::Interpreter { program: program.display().to_string(), problem };
    let once = |_| {
        let output = Command::new(program).args([flag, code]).output().map_err(|e| failed(e.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    };
    (0..runs.max(1)).map(once).collect()
}

fn measurement(workload: &str, here: Vec<f64>, (version, aws_ms): (u8, f64), runtime: &str) -> Measurement {
    let runs = u32::try_from(here.len()).unwrap_or(u32::MAX);
    let here_ms = danki_stats::Sample::new(here).map_or(0.0, |sample| sample.median());
    Measurement {
        workload: workload.to_owned(),
        here_ms,
        runs,
        aws_ms,
        source: format!("{SOURCE}, {runtime}{version}"),
    }
}

/// The published figure of the version, or of the nearest that has one.
fn nearest(published: &[(u8, f64)], version: u8) -> (u8, f64) {
    *published.iter().min_by_key(|(v, _)| v.abs_diff(version)).expect("the tables are not empty")
}

/// A calibration as it is kept from run to run.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    machine: Machine,
    calibration: Calibration,
}

/// The calibration kept in `path`, if it was made on this machine.
pub fn read_calibration(path: &Path) -> Option<Calibration> {
    let kept: Kept = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    let here = machine();
    (kept.machine.cpu_model == here.cpu_model).then_some(kept.calibration)
}

/// Keeps a calibration.
pub fn write_calibration(path: &Path, calibration: &Calibration) -> Result<(), Error> {
    let kept = Kept { machine: machine(), calibration: calibration.clone() };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(file("create", parent))?;
    }
    let text = serde_json::to_string_pretty(&kept).expect("plain data with string keys");
    fs::write(path, text).map_err(file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_core_has_a_factor_above_one() {
        let m = |here_ms, aws_ms| Measurement {
            workload: String::new(),
            here_ms,
            runs: 1,
            aws_ms,
            source: String::new(),
        };
        let close =
            |got: Option<f64>, expect: f64| assert!((got.expect("some") - expect).abs() < 1e-9, "{got:?}");
        close(factor(&[m(100.0, 200.0)]), 2.0);
        close(factor(&[m(100.0, 400.0), m(100.0, 100.0)]), 2.0);
        assert_eq!(factor(&[]), None);
        assert_eq!(nearest(&NODE_MS, 24).0, 22);
    }

    #[test]
    fn a_calibration_is_kept_for_its_machine_only() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("deep/calibration.json");
        assert_eq!(read_calibration(&path), None);
        let calibration = Calibration { cpu_factor: Some(1.5), measurements: Vec::new() };
        write_calibration(&path, &calibration).expect("written");
        assert_eq!(read_calibration(&path), Some(calibration));
        let other =
            fs::read_to_string(&path).expect("there").replace("\"cpu_model\": \"", "\"cpu_model\": \"other ");
        fs::write(&path, other).expect("written");
        assert_eq!(read_calibration(&path), None);
    }
}
