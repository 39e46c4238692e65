//! Commands about finished runs, and those that judge.

use super::{FunctionOptions, RunOptions};
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// List the runs of this directory.
    Runs {
        /// Where they are.
        #[arg(long, default_value = "runs", value_name = "DIR")]
        dir: PathBuf,
    },
    /// Write report.html of a run, or show one invocation in the terminal.
    Report(Report),
    /// Say whether B is faster or slower than A: two runs, or two functions that are run now, interleaved.
    Compare(Compare),
    /// Hold a run against a budget; exit code 1 if a limit is missed.
    Check(Check),
    /// Find the memory size: what each costs and takes, and which is best for cost, for speed, for both.
    Tune(Tune),
    /// Read what AWS itself recorded and hold a run against it.
    #[command(subcommand)]
    Import(Import),
}

#[derive(Debug, clap::Args)]
pub struct Report {
    /// A run directory, the end of its name, or `last`.
    #[arg(default_value = "last")]
    pub run: String,
    /// Open the page in a browser.
    #[arg(long)]
    pub open: bool,
    /// Show one invocation's waterfall here instead; the begin of its id is enough.
    #[arg(long, value_name = "ID")]
    pub explain: Option<String>,
    /// Find causes again, by this danki's rules.
    #[arg(long)]
    pub again: bool,
    /// Write trace.perfetto.json too (Perfetto, chrome://tracing).
    #[arg(long)]
    pub perfetto: bool,
    /// Write profile.speedscope.json too (speedscope).
    #[arg(long)]
    pub speedscope: bool,
}

#[derive(Debug, clap::Args)]
pub struct Compare {
    /// A run, or a function's directory, or such a directory at a git revision: DIR@REVISION.
    pub a: String,
    /// Another one of the same sort.
    pub b: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub function: FunctionOptions,
    /// Memory size in MB of both functions.
    #[arg(long, default_value_t = 1769, value_name = "MB", help_heading = "For a function's directory")]
    pub memory: u32,
    /// Invocations of each in each environment.
    #[arg(long, default_value_t = 15, value_name = "N", help_heading = "For a function's directory")]
    pub count: u32,
    /// Environments of each; the interval is taken over them.
    #[arg(long, default_value_t = 8, value_name = "N", help_heading = "For a function's directory", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub envs: u32,
}

#[derive(Debug, clap::Args)]
pub struct Check {
    /// A run directory, the end of its name, or `last`.
    #[arg(default_value = "last")]
    pub run: String,
    /// The limits.
    #[arg(long, default_value = "danki-budget.toml", value_name = "FILE")]
    pub budget: PathBuf,
    /// A run to compare with; wins over the budget's `baseline`.
    #[arg(long, value_name = "RUN")]
    pub baseline: Option<String>,
    /// Write JUnit XML here.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Append a Markdown table here, e.g. "$GITHUB_STEP_SUMMARY".
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Tune {
    /// The function's directory, an experiment file, or the name of one in experiments/; of an experiment the first variant is tuned.
    pub target: PathBuf,
    #[command(flatten)]
    pub run: RunOptions,
    #[command(flatten)]
    pub function: FunctionOptions,
    /// Memory sizes in MB.
    #[arg(long, value_delimiter = ',', value_name = "MB,…", default_value = "128,256,512,1024,1769,3008")]
    pub memory: Vec<u32>,
    /// Invocations of each size.
    #[arg(long, default_value_t = 30, value_name = "N")]
    pub count: u32,
}

#[derive(Debug, Subcommand)]
pub enum Import {
    /// REPORT lines of CloudWatch Logs: a file of lines, of `aws logs tail` or `filter-log-events`, text or JSON.
    AwsLogs {
        /// The file.
        file: PathBuf,
        /// The run to hold against it: a directory, the end of its name, or `last`.
        #[arg(long, default_value = "last", value_name = "RUN")]
        run: String,
    },
}
