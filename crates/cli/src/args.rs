//! What can be said on the command line. Each flag maps to one place.

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// AWS Lambda functions on this machine, with Lambda's timing, and where every millisecond went.
#[derive(Debug, Parser)]
#[command(name = "danki", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "exit codes: 0 fine, 1 a figure was missed, 2 bad usage or input, 3 the machine lacks something, \
                        4 the function failed, 130 interrupted"
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an experiment, or a function under a simple load, and report.
    Bench(Bench),
    /// Invoke a function once: response to stdout, log to stderr.
    Run(Run),
    /// Say what this machine can do and what earlier runs left behind.
    Doctor(Doctor),
    /// Compare the speed of this machine's core with a Lambda vCPU.
    Calibrate(Calibrate),
    /// Hold this machine's CPU model against what was measured on AWS.
    Validate(Validate),
    /// Remove what dead runs left behind.
    Clean,
    /// Print a completion script.
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

#[derive(Debug, clap::Args)]
pub struct Bench {
    /// An experiment file, the name of one in experiments/, or a function's directory.
    pub target: PathBuf,
    #[command(flatten)]
    pub run: RunOptions,
    #[command(flatten)]
    pub function: FunctionOptions,
    /// Memory sizes in MB, compared with each other.
    #[arg(long, value_delimiter = ',', value_name = "MB,…", help_heading = "For a function's directory")]
    pub memory: Vec<u32>,
    /// Invocations of each memory size.
    #[arg(long, default_value_t = 10, value_name = "N", help_heading = "For a function's directory")]
    pub count: u32,
}

#[derive(Debug, clap::Args)]
pub struct Run {
    /// The function's directory.
    pub dir: PathBuf,
    #[command(flatten)]
    pub function: FunctionOptions,
    /// Memory size in MB, 128 to 10240.
    #[arg(long, default_value_t = 128, value_name = "MB")]
    pub memory: u32,
    /// Keep the run directory here.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run even if the machine is too small.
    #[arg(long)]
    pub force: bool,
}

/// What is said of a function that has no experiment file.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "For a function's directory")]
pub struct FunctionOptions {
    /// JSON payload: a file, or - for stdin [default: event.json of the directory, or {}].
    #[arg(long, value_name = "FILE")]
    pub event: Option<PathBuf>,
    /// Handler [default: guessed from the files].
    #[arg(long)]
    pub handler: Option<String>,
    /// Runtime: nodejs<N>.x, python3.<N>, provided.al2023 [default: guessed from the files].
    #[arg(long)]
    pub runtime: Option<String>,
    /// Timeout in seconds, 1 to 900 [default: 3].
    #[arg(long, value_name = "S")]
    pub timeout: Option<f64>,
    /// Environment variable; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    pub env: Vec<(String, String)>,
}

impl FunctionOptions {
    /// The flag that was given although an experiment file says it all.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--event", self.event.is_some()),
            ("--handler", self.handler.is_some()),
            ("--runtime", self.runtime.is_some()),
            ("--timeout", self.timeout.is_some()),
            ("--env", !self.env.is_empty()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

/// How an experiment is run.
#[derive(Debug, Default, clap::Args)]
pub struct RunOptions {
    /// Print summary.json instead of tables.
    #[arg(long)]
    pub json: bool,
    /// The run directory [default: runs/TIME-NAME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Divide gaps, idle cut-offs and idle lifetimes by N, 1 to 10.
    #[arg(long, value_name = "N")]
    pub time_scale: Option<f64>,
    /// Fewer invocations, for a first look.
    #[arg(long)]
    pub quick: bool,
    /// Run even if the machine is too small.
    #[arg(long)]
    pub force: bool,
    /// Seed of everything drawn.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct Calibrate {
    /// How often each loop is timed; the median counts.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct Validate {
    /// Only this published table: T1 is the CPU quota's lattice, T2 are ratios between memory sizes
    #[arg(long, value_enum, value_name = "TABLE")]
    pub only: Option<PublishedTable>,
    /// Measure nothing; print what danki assumes about Lambda, each with its source and how sure it is
    #[arg(long, conflicts_with = "only")]
    pub assumptions: bool,
    #[command(flatten)]
    pub run: RunOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PublishedTable {
    T1,
    T2,
}

fn name_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn arguments_read() {
        let check = |line: &str, fine: bool| {
            let parsed = Args::try_parse_from(line.split_whitespace());
            assert_eq!(parsed.is_ok(), fine, "{line}: {parsed:?}");
        };
        check(
            "danki bench keepalive-node --quick --json --time-scale 10 --seed 3 --out /tmp/x --force",
            true,
        );
        check("danki bench f --memory 128,512 --count 3 --env A=1 --env B=", true);
        check("danki run f --event - --memory 256", true);
        check("danki bench", false);
        check("danki bench f --env A", false);
        check("danki calibrate --runs 0", false);
        check("danki", false);
    }
}
