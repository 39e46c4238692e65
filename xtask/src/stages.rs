//! `cargo xtask test`: every stage of `make test` in order, each with a deadline, all counted; a failed stage does not hide the
//! next. The closing line is the last thing printed.

mod process;

use crate::tally::{Count, Tally, count};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// One step of `make test`.
struct Stage {
    name: &'static str,
    command: &'static [&'static str],
    count: Count,
    /// A command that must succeed for the stage to be possible here; else it is skipped, and said to be.
    needs: Option<&'static [&'static str]>,
    minutes: u64,
}

const DANKI: &str = "target/release/danki";

const fn stage(name: &'static str, minutes: u64, count: Count, command: &'static [&'static str]) -> Stage {
    Stage { name, command, count, needs: None, minutes }
}

const fn optional(
    name: &'static str,
    minutes: u64,
    needs: &'static [&'static str],
    command: &'static [&'static str],
) -> Stage {
    Stage { name, command, count: Count::One, needs: Some(needs), minutes }
}

/// A short run of a shipped experiment, through the binary that users have; danki's exit status says whether the figures hold.
const fn quick(name: &'static str, command: &'static [&'static str]) -> Stage {
    stage(name, 4, Count::One, command)
}

/// cargo-fuzz needs a nightly compiler; both are the developer's to install (`make soak` does).
const FUZZ: &[&str] = &["cargo", "+nightly", "fuzz", "--version"];

/// Shares of CPU to a few per cent can be measured on a quiet machine only.
const QUIET: &[&str] = &["xtask/quiet"];

/// Everything uses the release profile: tests that measure need it, and dependencies compile once.
const STAGES: &[Stage] = &[
    stage("fmt", 2, Count::One, &["cargo", "fmt", "--all", "--check", "--", "--files-with-diff"]),
    stage("tidy", 2, Count::One, &["cargo", "xtask", "tidy"]),
    stage(
        "clippy",
        15,
        Count::One,
        &[
            "cargo",
            "clippy",
            "--locked",
            "--release",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ],
    ),
    stage("build", 15, Count::One, &["cargo", "build", "--locked", "--release", "--workspace"]),
    // Before `test`, which lets danki serve them.
    stage("conformance-clients", 10, Count::Closing, &["conformance/install"]),
    stage(
        "test",
        25,
        Count::Cargo,
        &["cargo", "test", "--locked", "--release", "--workspace", "--no-fail-fast", "--", "--show-output"],
    ),
    stage("conformance-lambda-api", 10, Count::Closing, &["conformance/lambda-api/run"]),
    stage("conformance-db-proxy", 10, Count::Closing, &["conformance/db-proxy/run"]),
    // After `test`, which leaves the reports that a browser opens.
    stage("web", 5, Count::Closing, &["web/check"]),
    stage("corpus", 5, Count::Closing, &["explain-corpus/live"]),
    quick("keepalive-node", &[DANKI, "bench", "experiments/keepalive-node.toml", "--quick"]),
    quick("client-reuse-python", &[DANKI, "bench", "experiments/client-reuse-python.toml", "--quick"]),
    quick("handshakes-python", &[DANKI, "bench", "experiments/handshakes-python.toml", "--quick"]),
    quick("idle-cutoff", &[DANKI, "bench", "experiments/idle-cutoff.toml", "--time-scale", "10", "--quick"]),
    // T1's shares, means and histograms, where nobody else is at work; T2 too in `make bench` (`danki validate`).
    optional("validate-t1", 5, QUIET, &[DANKI, "validate", "--only", "t1", "--quick"]),
    // Last: it fails if anything above left a process, cgroup, mount or TUN behind.
    stage("doctor", 1, Count::One, &[DANKI, "doctor"]),
    optional("fuzz", 15, FUZZ, &["fuzz/run", "10"]),
];

/// Prints the stages' names and commands.
pub fn list() -> ExitCode {
    for stage in STAGES {
        println!("{:<22}{}", stage.name, stage.command.join(" "));
    }
    ExitCode::SUCCESS
}

/// Runs all stages, or the named ones, and prints the closing line.
pub fn run(root: &Path, names: &[String]) -> ExitCode {
    if let Some(unknown) = names.iter().find(|name| STAGES.iter().all(|stage| stage.name != name.as_str())) {
        eprintln!("no stage {unknown:?}\nhint: cargo xtask stages");
        return ExitCode::from(2);
    }
    let chosen =
        STAGES.iter().filter(|stage| names.is_empty() || names.iter().any(|name| name == stage.name));
    let mut total = Tally::default();
    let mut table = String::new();
    for stage in chosen {
        println!("\n== {}: {}", stage.name, stage.command.join(" "));
        let started = Instant::now();
        let tally = run_stage(root, stage);
        table +=
            &format!("{:<22}{:>6.0} s   {}\n", stage.name, started.elapsed().as_secs_f64(), tally.line());
        total.add(tally);
    }
    println!("\n{table}\n{}", total.line());
    if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn run_stage(root: &Path, stage: &Stage) -> Tally {
    if let Some(needs) = stage.needs
        && !process::succeeds(root, needs)
    {
        println!("skipped: {}: `{}` does not work here", stage.name, needs.join(" "));
        return Tally { skipped: 1, ..Tally::default() };
    }
    let outcome = process::run(root, stage.command, Duration::from_secs(stage.minutes * 60));
    if let Err(why) = &outcome.ended {
        println!("== {} failed: {why}", stage.name);
    }
    count(stage.count, outcome.lines.iter().map(String::as_str), outcome.ended.is_ok())
}
