//! `cargo xtask test`: every stage of `make test` in order, each with a deadline, all counted; a failed stage does not hide the
//! next. What is installed is installed beside the builds. The closing line is the last thing printed.

mod process;

use crate::tally::{Count, Tally, count};
use process::Echo;
use std::path::Path;
use std::process::ExitCode;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// One step of `make test`.
struct Stage {
    name: &'static str,
    command: &'static [&'static str],
    count: Count,
    /// A command that must succeed for the stage to be possible here; else it is skipped, and said to be.
    needs: Option<&'static [&'static str]>,
    /// It runs beside those after it, up to this one.
    beside: Option<&'static str>,
    minutes: u64,
}

const DANKI: &str = "target/release/danki";

const fn stage(name: &'static str, minutes: u64, count: Count, command: &'static [&'static str]) -> Stage {
    Stage { name, command, count, needs: None, beside: None, minutes }
}

/// Installs what the tests use: most of it is waiting for the network and for compilers of one thread.
const fn installs(name: &'static str, count: Count, command: &'static [&'static str]) -> Stage {
    Stage { name, command, count, needs: None, beside: Some("test"), minutes: 20 }
}

const fn optional(
    name: &'static str,
    minutes: u64,
    needs: &'static [&'static str],
    command: &'static [&'static str],
) -> Stage {
    Stage { name, command, count: Count::One, needs: Some(needs), beside: None, minutes }
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
    installs("packages", Count::One, &["xtask/prepare", "tests"]),
    installs("functions", Count::One, &["make", "functions"]),
    // The tests let danki serve them.
    installs("conformance-clients", Count::Closing, &["conformance/install"]),
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
    stage(
        "build-tests",
        15,
        Count::One,
        &["cargo", "test", "--locked", "--release", "--workspace", "--no-run"],
    ),
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
    // All remedies, with closer bounds, in `make bench`.
    stage("advice", 3, Count::Closing, &["xtask/verify-advice", "--short"]),
    // At length, and with its power, in `make soak`.
    stage("compare", 5, Count::Closing, &["xtask/compare-live", "--short"]),
    quick("keepalive-node", &["xtask/bench-scaled", "experiments/keepalive-node.toml", "--quick"]),
    quick("client-reuse-python", &[DANKI, "bench", "experiments/client-reuse-python.toml", "--quick"]),
    quick("database-connections", &[DANKI, "bench", "experiments/database-connections.toml", "--quick"]),
    quick("handshakes-python", &[DANKI, "bench", "experiments/handshakes-python.toml", "--quick"]),
    quick("idle-cutoff", &[DANKI, "bench", "experiments/idle-cutoff.toml", "--time-scale", "10", "--quick"]),
    quick(
        "provisioned-concurrency",
        &[DANKI, "bench", "experiments/provisioned-concurrency.toml", "--quick"],
    ),
    // Of the experiments above, from what they have written.
    stage("parts", 2, Count::Closing, &["xtask/check-parts"]),
    stage("otlp", 2, Count::Closing, &["conformance/otlp/check"]),
    // T1's shares, means and histograms, where nobody else is at work; T2 too in `make bench` (`danki validate`).
    optional("validate-t1", 5, QUIET, &[DANKI, "validate", "--only", "t1", "--quick"]),
    // Last: it fails if anything above left a process, cgroup, mount or TUN behind.
    stage("doctor", 1, Count::One, &[DANKI, "doctor"]),
    optional("fuzz", 15, FUZZ, &["fuzz/run", "5"]),
];

/// Prints the stages' names and commands.
pub fn list() -> ExitCode {
    for stage in STAGES {
        println!("{:<24}{}", stage.name, stage.command.join(" "));
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
    let mut report = Report::default();
    let mut beside = Vec::new();
    for stage in chosen {
        for (_, ended) in beside.extract_if(.., |(until, _)| *until == stage.name) {
            report.take(ended);
        }
        match stage.beside {
            Some(until) => beside.push((until, start(root, stage))),
            None => {
                println!("\n== {}: {}", stage.name, stage.command.join(" "));
                report.add(stage, run_stage(root, stage, Echo::AsItComes));
            }
        }
    }
    beside.into_iter().for_each(|(_, ended)| report.take(ended));
    println!("\n{}\n{}", report.table, report.total.line());
    if report.total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// How a stage went.
struct Ended {
    tally: Tally,
    lines: Vec<String>,
    seconds: f64,
}

/// A stage that runs beside others.
type Beside = (&'static Stage, JoinHandle<Ended>);

fn start(root: &Path, stage: &'static Stage) -> Beside {
    println!("\n== {}, beside what follows: {}", stage.name, stage.command.join(" "));
    let root = root.to_owned();
    (stage, thread::spawn(move || run_stage(&root, stage, Echo::No)))
}

#[derive(Default)]
struct Report {
    total: Tally,
    table: String,
}

impl Report {
    /// Waits for a stage that ran beside others, and shows what it said.
    fn take(&mut self, (stage, running): Beside) {
        let ended = running.join().expect("a stage does not panic");
        println!("\n== {}, which ran beside:", stage.name);
        ended.lines.iter().for_each(|line| println!("{line}"));
        self.add(stage, ended);
    }

    fn add(&mut self, stage: &Stage, ended: Ended) {
        self.table += &format!("{:<24}{:>6.0} s   {}\n", stage.name, ended.seconds, ended.tally.line());
        self.total.add(ended.tally);
    }
}

fn run_stage(root: &Path, stage: &Stage, echo: Echo) -> Ended {
    let started = Instant::now();
    if let Some(needs) = stage.needs
        && !process::succeeds(root, needs)
    {
        println!("skipped: {}: `{}` does not work here", stage.name, needs.join(" "));
        let tally = Tally { skipped: 1, ..Tally::default() };
        return Ended { tally, lines: Vec::new(), seconds: started.elapsed().as_secs_f64() };
    }
    let outcome = process::run(root, stage.command, Duration::from_secs(stage.minutes * 60), echo);
    if let Err(why) = &outcome.ended {
        println!("== {} failed: {why}", stage.name);
    }
    let tally = count(stage.count, outcome.lines.iter().map(String::as_str), outcome.ended.is_ok());
    Ended { tally, lines: outcome.lines, seconds: started.elapsed().as_secs_f64() }
}
