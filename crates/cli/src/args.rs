//! What can be said on the command line. Each flag maps to one place.

mod runs;

pub use runs::{Check, Compare, Import, Report, RunsCommand, Tune};

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use danki_host::{Forced, IDLE_GAP_MAX};
use danki_model::CpuChoice;
use std::path::PathBuf;
use std::time::Duration;

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
    /// Serve Lambda's API: any AWS SDK deploys and invokes functions here. Ends with Ctrl-C.
    Up(Up),
    /// Invoke a function of `danki up`: response to stdout, the end of its log to stderr.
    Invoke(Invoke),
    /// Print what a function of `danki up` wrote.
    Logs(Logs),
    #[command(flatten)]
    Runs(RunsCommand),
    /// Say what this machine can do and what earlier runs left behind.
    Doctor(Doctor),
    /// Compare the speed of this machine's core with a Lambda vCPU.
    Calibrate(Calibrate),
    /// Hold this machine's CPU model against what was measured on AWS.
    Validate(Validate),
    /// Show a run's traces: a table of all, or one as a tree.
    Trace(Trace),
    /// Lambda layers from this source tree.
    #[command(subcommand)]
    Layer(Layer),
    /// Pool connections to MySQL or PostgreSQL, as RDS Proxy does or better. Ends with Ctrl-C; SIGHUP reads the file again.
    DbProxy(DbProxy),
    /// Remove what dead runs left behind.
    Clean,
    /// Print a completion script.
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

#[derive(Debug, clap::Args)]
pub struct DbProxy {
    /// What to listen on, which database, which accounts: see docs/db-proxy.md.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Log every connection, not only what needs attention.
    #[arg(long)]
    pub verbose: bool,
}

#[derive(Debug, Subcommand)]
pub enum Layer {
    /// Build danki-secrets, which takes the place of the AWS Parameters and Secrets Lambda Extension.
    Build(LayerBuild),
}

#[derive(Debug, clap::Args)]
pub struct LayerBuild {
    /// For functions of this architecture.
    #[arg(long, value_enum, default_value_t = Arch::X86_64)]
    pub arch: Arch,
    /// Where the zip goes, and the same as a directory [default: target/layers of the source tree].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Architectures of Lambda functions.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Arch {
    /// Intel and AMD.
    #[value(name = "x86_64")]
    X86_64,
    /// Graviton, which Lambda calls arm64.
    #[value(alias = "arm64")]
    Aarch64,
}

impl Arch {
    /// As Rust names it.
    pub fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::Aarch64 => "aarch64",
        }
    }
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
    /// Run again with each remedy that danki can apply by itself, and print predicted against measured.
    #[arg(long)]
    pub verify_advice: bool,
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
    #[command(flatten)]
    pub state: State,
    /// Keep the run directory here.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run even if the machine is too small.
    #[arg(long)]
    pub force: bool,
}

/// In which state the invocation finds its environment. Header `X-Danki-Force` says the same to `danki up`.
#[derive(Debug, Default, clap::Args)]
#[group(multiple = false)]
#[command(next_help_heading = "State of the environment")]
pub struct State {
    /// A new one, which is what there is anyway.
    #[arg(long)]
    pub cold: bool,
    /// One that was initialised before the invocation begins, and frozen.
    #[arg(long)]
    pub warm: bool,
    /// The same, idle for this long: 500ms, 65s, 2m; at most an hour.
    #[arg(long, value_name = "GAP", value_parser = gap)]
    pub idle: Option<Duration>,
}

impl State {
    /// As the host takes it.
    pub fn forced(&self) -> Option<Forced> {
        let flag = |given: bool, forced| given.then_some(forced);
        flag(self.cold, Forced::Cold).or(flag(self.warm, Forced::Warm)).or(self.idle.map(Forced::IdleGap))
    }
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
    /// Runtime: nodejs<N>.x, python3.<N>, php-8<N>, provided.al2023 [default: guessed from the files].
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

/// How CPU quotas are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CpuModel {
    /// Lambda's quotas as they are.
    Host,
    /// Divided by the speed of this machine's core, which is measured first.
    Scaled,
}

impl From<CpuModel> for CpuChoice {
    fn from(model: CpuModel) -> CpuChoice {
        match model {
            CpuModel::Host => CpuChoice::Host,
            CpuModel::Scaled => CpuChoice::Scaled,
        }
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
    /// CPU quotas as Lambda's, or scaled by the speed of this machine's core [default: host, or what the file says].
    #[arg(long, value_enum, value_name = "MODEL")]
    pub cpu_model: Option<CpuModel>,
    /// Run even if the machine is too small.
    #[arg(long)]
    pub force: bool,
    /// Seed of everything drawn.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub struct Up {
    /// A SAM or CloudFormation template to deploy, or its directory.
    pub template: Option<PathBuf>,
    /// A parameter of the template; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value, help_heading = "With a template")]
    pub parameter: Vec<(String, String)>,
    /// Name of the stack: part of names that the template does not give.
    #[arg(long, default_value = "danki", value_name = "NAME", help_heading = "With a template")]
    pub stack_name: String,
    /// Serve function URLs and routes over HTTP here [default with a template: 3000].
    #[arg(long, value_name = "PORT")]
    pub http_port: Option<u16>,
    /// The same over HTTPS, with a certificate of danki's own CA [default with a template: 3443].
    #[arg(long, value_name = "PORT")]
    pub https_port: Option<u16>,
    /// Port at 127.0.0.1; 0 takes a free one and prints it.
    #[arg(long, default_value_t = 9001, value_name = "PORT")]
    pub port: u16,
    /// Region of the account and of the services that functions reach.
    #[arg(long, default_value = "us-east-1", value_name = "NAME")]
    pub region: String,
    /// Keep the account here; it is there again at the next start.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Refuse requests that are not signed with the key printed at the start.
    #[arg(long)]
    pub verify_signatures: bool,
    /// Concurrent executions of the account.
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub account_limit: u32,
    /// From the last initialisation of provisioned concurrency to READY, in seconds [default: 84.6, as measured on AWS].
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub pc_delay: Option<f64>,
    /// Show nothing in a browser, and record nothing for it.
    #[arg(long)]
    pub no_ui: bool,
    /// Let environments run on between invocations instead of freezing them.
    #[arg(long)]
    pub no_freeze: bool,
    /// Divide idle lifetimes, allocation delays, retry delays and ages of events by N, 1 to 10.
    #[arg(long, default_value_t = 1.0, value_name = "N", value_parser = time_scale)]
    pub time_scale: f64,
    /// Seed of everything drawn.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

#[derive(Debug, clap::Args)]
pub struct Invoke {
    /// The function's name, with a version or an alias if that is meant: `name:live`.
    pub function: String,
    /// JSON payload: a file, or - for stdin [default: {}].
    #[arg(long, value_name = "FILE")]
    pub event: Option<PathBuf>,
    /// The state in which it finds its environment: cold, warm, expired (idle for too long), or gap=65s (idle for so long).
    #[arg(long, value_name = "STATE", value_parser = forced)]
    pub force: Option<String>,
    /// Port of `danki up`.
    #[arg(long, default_value_t = 9001, value_name = "PORT")]
    pub port: u16,
}

#[derive(Debug, clap::Args)]
pub struct Logs {
    /// The function's name.
    pub function: String,
    /// Go on until Ctrl-C.
    #[arg(short, long)]
    pub follow: bool,
    /// Port of `danki up`.
    #[arg(long, default_value_t = 9001, value_name = "PORT")]
    pub port: u16,
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
pub struct Trace {
    /// The run directory.
    pub run: PathBuf,
    /// The beginning of a trace's id, or of a request's.
    pub id: Option<String>,
    /// Only traces that X-Ray's filter expression takes, such as 'responsetime <= 0.1'; prints how their times are distributed.
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "id")]
    pub filter: Option<String>,
    /// Print who calls whom, how often, and how long it takes.
    #[arg(long, conflicts_with = "id")]
    pub map: bool,
    /// Print JSON, as X-Ray's BatchGetTraces gives it.
    #[arg(long)]
    pub json: bool,
    /// Send all traces of the run to an OpenTelemetry collector, over OTLP/HTTP: http://localhost:4318
    #[arg(long, value_name = "URL", conflicts_with_all = ["id", "filter", "map", "json"])]
    pub otlp: Option<String>,
    /// A header for the collector, 'name: value'; may be repeated
    #[arg(long, value_name = "HEADER", requires = "otlp")]
    pub header: Vec<String>,
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

fn gap(text: &str) -> Result<Duration, String> {
    let gap = danki_load::seconds(text).and_then(|s| Duration::try_from_secs_f64(s).ok());
    let allowed = || "expected a time such as 500ms, 65s or 2m, at most 1 h".to_owned();
    gap.filter(|gap| *gap <= IDLE_GAP_MAX).ok_or_else(allowed)
}

fn seconds(text: &str) -> Result<f64, String> {
    let fits = |s: &f64| (0.0..=3_600.0).contains(s);
    text.parse().ok().filter(fits).ok_or_else(|| "expected seconds, 0 to 3600".to_owned())
}

fn time_scale(text: &str) -> Result<f64, String> {
    let fits = |n: &f64| (1.0..=10.0).contains(n);
    text.parse().ok().filter(fits).ok_or_else(|| "expected a number, 1 to 10".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PublishedTable {
    T1,
    T2,
}

/// One word: which words there are, `danki up` knows.
fn forced(text: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "=.".contains(c);
    match !text.is_empty() && text.chars().all(legal) {
        true => Ok(text.to_owned()),
        false => Err("allowed: cold, warm, expired, gap=SECONDSs".to_owned()),
    }
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
        check("danki up --port 0 --state /tmp/s --verify-signatures --pc-delay 0.5 --time-scale 10", true);
        check("danki up --no-ui", true);
        check("danki logs -f f --port 9002", true);
        check("danki run f --idle 65s", true);
        check("danki run f --warm", true);
        check("danki run f --cold --warm", false);
        check("danki run f --idle 65", false);
        check("danki run f --idle 61m", false);
        check("danki up --time-scale 11", false);
        check("danki up --pc-delay -1", false);
        check("danki trace runs/x 1-5759e988 --json", true);
        check("danki trace runs/x --map --filter responsetime<=0.1", true);
        check("danki trace runs/x 1-5759e988 --map", false);
        check("danki trace", false);
        check("danki bench", false);
        check("danki bench f --env A", false);
        check("danki compare a b --envs 5 --memory 512 --env A=1", true);
        check("danki check last --budget b.toml --junit j.xml --markdown m.md", true);
        check("danki report --explain 6f68 --again", true);
        check("danki tune f --memory 128,512 --quick", true);
        check("danki import aws-logs file --run last", true);
        check("danki compare a b --envs 1", false);
        check("danki import logs", false);
        check("danki calibrate --runs 0", false);
        check("danki", false);
    }
}
