//! Runs an experiment: world, load, run directory, summary.
//!
//! Whatever happens after the first invocation, what was recorded is written: an interruption or an error ends the load, not
//! the bookkeeping.

use crate::capture::{ByClient, count_handshakes};
use crate::demand;
use crate::error::Error;
use crate::experiment::Experiment;
use crate::machine::{self, CpuTimes};
use crate::profiles::{self, ProfileVerdict};
use crate::results::Results;
use crate::rundir::{self, RunDir, Written};
use crate::summarise::{Ingredients, summarise};
use crate::world::{PROFILES, World};
use danki_link::Stats;
use danki_load::Schedule;
use danki_record::{Calibration, Manifest, Recorder, SCHEMA};
use danki_sys::{Keeper, clock};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

mod caveats;
mod drive;
mod pings;
mod tally;

use drive::drive;
use tally::Tally;

/// Facts that may wait for the writer.
const RECORDER_BOUND: usize = 262_144;

/// What a run needs besides the experiment.
#[derive(Clone)]
pub struct Setup {
    /// Makes sandboxes.
    pub keeper: Arc<Keeper>,
    /// The run directory. It is created.
    pub dir: PathBuf,
    /// Keeps the CA's keys from run to run.
    pub ca_dir: Option<PathBuf>,
    /// Where interpreters are looked for.
    pub search_path: Vec<PathBuf>,
    /// Speed of this machine.
    pub calibration: Calibration,
    /// What this machine can do, for the manifest.
    pub capabilities: Value,
    /// Sentences about what this machine lacks.
    pub missing: Vec<String>,
    /// Run even if the machine is too small.
    pub force: bool,
    /// Keep responses as they were in the results.
    pub keep_raw: bool,
    /// Version of danki.
    pub version: String,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Invocations that have ended.
    pub done: u64,
    /// Invocations in all, if that is known.
    pub total: Option<u64>,
    /// The variant invoked last.
    pub variant: String,
}

/// Told about every invocation that ends; must not block.
pub type Watcher = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Runs an experiment until its load is done or `stop` becomes true.
pub async fn run(
    experiment: &Experiment,
    setup: &Setup,
    stop: watch::Receiver<bool>,
    watcher: Watcher,
) -> Result<Results, Error> {
    let forced = demand::check(experiment, machine::cpus(), setup.force)?;
    let cpu_model = demand::cpu_model(experiment, setup.calibration.cpu_factor)?;
    let dir = RunDir::create(&setup.dir)?;
    let mut manifest = manifest(experiment, setup);
    rundir::write_manifest(&dir, &manifest)?;
    let (recorder, recording) = Recorder::bounded(RECORDER_BOUND);
    let run_dir = RunDir::start(&dir, recording)?;
    let cpu_before = CpuTimes::now();

    let world = World::start(experiment, setup, &recorder, Some(&dir.join("wire.pcap"))).await?;
    let tally = Arc::new(Tally::new(watcher, setup.keep_raw, total(experiment)));
    let load = drive(experiment, &world, &tally, stop).await;
    let link = world.stop().await;
    drop(recorder);
    let written = finish(run_dir).await?;

    let mut caveats = caveats::of_set_up(experiment, setup);
    caveats.extend(forced);
    caveats.extend(CpuTimes::now().caveat_since(cpu_before));
    // An end that failed is told last, when all is written.
    let (link, ended) = match link {
        Ok(stats) => (stats, Ok(())),
        Err(error) => (Stats::default(), Err(error)),
    };
    caveats.extend(caveats::of_link(&link, tally.all_dropped()));
    caveats.extend(caveats::of_writing(&written));
    let complete = matches!(load, Ok(true));
    if !complete {
        caveats.insert(0, "the run was interrupted: fewer invocations than planned".to_owned());
    }
    let capture = count_handshakes(&dir.join("wire.pcap")).unwrap_or_else(|error| {
        caveats.push(format!("handshakes could not be counted in wire.pcap: {error}"));
        ByClient::default()
    });
    let returned = tally.returned();
    let digest = summarise(Ingredients {
        experiment,
        events: &written.events,
        returned: &returned,
        capture,
        calibration: setup.calibration.clone(),
        cpu_model,
        link: serde_json::to_value(&link).unwrap_or_default(),
        caveats,
        complete,
    });
    manifest.complete = complete;
    rundir::write_digest(&dir, &digest, &written.events, &returned, manifest.started_ns)?;
    rundir::write_traces(&dir, &manifest, &written.events)?;
    rundir::write_manifest(&dir, &manifest)?;
    let profiles = profiles_of(experiment, &dir)?;
    load?;
    ended?;
    Ok(Results {
        dir,
        manifest,
        summary: digest.summary,
        description: experiment.description.clone(),
        rows: digest.rows,
        returned,
        profiles,
    })
}

fn profiles_of(experiment: &Experiment, dir: &Path) -> Result<Vec<ProfileVerdict>, Error> {
    let asked = experiment.host.profile.unwrap_or(false);
    if asked { profiles::fold(&dir.join(PROFILES), &dir.join("profiles.jsonl")) } else { Ok(Vec::new()) }
}

async fn finish(run_dir: RunDir) -> Result<Written, Error> {
    let finished = tokio::task::spawn_blocking(move || run_dir.finish()).await;
    finished.map_err(|_| Error::Broken("the end of the run directory has panicked"))?
}

fn total(experiment: &Experiment) -> Option<u64> {
    let one = Schedule::new(&experiment.load, experiment.variants.len(), experiment.seed, 1.0, 0).total()?;
    Some(one * u64::from(experiment.repetitions))
}

fn manifest(experiment: &Experiment, setup: &Setup) -> Manifest {
    Manifest {
        schema: SCHEMA,
        danki: setup.version.clone(),
        name: experiment.name.clone(),
        experiment: serde_json::to_value(experiment).unwrap_or_default(),
        started_epoch_ms: clock::epoch_ns() / 1_000_000,
        started_ns: clock::monotonic_ns(),
        epoch_offset_ns: clock::epoch_offset_ns(),
        seed: experiment.seed,
        time_scale: experiment.time_scale,
        quick: experiment.quick,
        machine: machine::machine(),
        capabilities: setup.capabilities.clone(),
        calibration: setup.calibration.clone(),
        complete: false,
    }
}

/// A directory for a run, named after the time and the experiment, that does not exist yet.
pub fn new_run_dir(runs: &Path, name: &str) -> PathBuf {
    let time = danki_model::time::iso(clock::epoch_ns() / 1_000_000);
    let seconds: String = time.chars().take_while(|c| *c != '.').filter(|c| *c != ':').collect();
    let base = format!("{seconds}-{name}");
    let nth = |n: u32| if n == 1 { runs.join(&base) } else { runs.join(format!("{base}-{n}")) };
    (1..).map(nth).find(|dir| !dir.exists()).expect("there are more numbers than directories")
}
