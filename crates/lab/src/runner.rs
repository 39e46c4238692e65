//! Runs an experiment: world, load, run directory, summary.
//!
//! Whatever happens after the first invocation, what was recorded is written: an interruption or an error ends the load, not
//! the bookkeeping.

use crate::capture::{ByClient, count_handshakes};
use crate::demand;
use crate::error::Error;
use crate::experiment::Experiment;
use crate::machine::{self, CpuTimes};
use crate::results::Results;
use crate::rundir::{self, RunDir, Written};
use crate::summarise::{Ingredients, Returned, summarise};
use crate::world::World;
use bytes::Bytes;
use danki_host::{Call, Function, Outcome};
use danki_load::{Fire, Schedule};
use danki_record::{Calibration, Manifest, Recorder, SCHEMA};
use danki_sys::{Keeper, clock};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

mod caveats;

/// Facts that may wait for the writer.
const RECORDER_BOUND: usize = 262_144;
/// Responses longer than this are not kept for the summary.
const RESPONSE_MAX: usize = 256 * 1024;

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
    let dir = RunDir::create(&setup.dir)?;
    let mut manifest = manifest(experiment, setup);
    rundir::write_manifest(&dir, &manifest)?;
    let (recorder, recording) = Recorder::bounded(RECORDER_BOUND);
    let run_dir = RunDir::start(&dir, recording)?;
    let cpu_before = CpuTimes::now();

    let world = World::start(experiment, setup, &recorder, &dir.join("wire.pcap")).await?;
    let tally = Arc::new(Tally::new(watcher, setup.keep_raw, total(experiment)));
    let load = drive(experiment, &world, &tally, stop).await;
    let link = world.stop().await;
    drop(recorder);
    let written = finish(run_dir).await?;

    let mut caveats = caveats::of_set_up(experiment, setup);
    caveats.extend(forced);
    caveats.extend(CpuTimes::now().caveat_since(cpu_before));
    let link = link?;
    caveats.extend(caveats::of_link(&link, tally.with(|state| state.dropped)));
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
        link: serde_json::to_value(&link).unwrap_or_default(),
        caveats,
        complete,
    });
    manifest.complete = complete;
    rundir::write_digest(&dir, &digest, &written.events, &returned, manifest.started_ns)?;
    rundir::write_manifest(&dir, &manifest)?;
    load?;
    Ok(Results {
        dir,
        manifest,
        summary: digest.summary,
        description: experiment.description.clone(),
        rows: digest.rows,
        returned,
    })
}

/// All repetitions; each deploys anew, so that its envs are new. `false`: it was stopped.
async fn drive(
    experiment: &Experiment,
    world: &World,
    tally: &Arc<Tally>,
    stop: watch::Receiver<bool>,
) -> Result<bool, Error> {
    let (failing, failed) = watch::channel(false);
    let stop = either(stop, failed);
    let _watch = Watch::start(world, tally, failing.clone());
    for repetition in 0..experiment.repetitions {
        let functions = deploy(experiment, world)?;
        let seed = experiment.seed.wrapping_add(u64::from(repetition));
        let (variants, scale) = (experiment.variants.len(), experiment.time_scale);
        let mut schedule = Schedule::new(&experiment.load, variants, seed, scale, clock::monotonic_ns());
        let before = tally.sent(variants);
        let dropped_before = world.link_stats().dropped_bound;
        let done = danki_load::run(&mut schedule, clock::monotonic_ns, stop.clone(), |fire| {
            let call = Call {
                payload: Bytes::from(experiment.variants[fire.variant].event.as_str().to_owned()),
                index: before[fire.variant] + fire.index,
                intended_ns: fire.intended_ns,
            };
            tally.fired(fire);
            invoke(functions[fire.variant].clone(), call, Arc::clone(tally), failing.clone())
        })
        .await;
        // Later drops are the goodbyes of endpoints to envs that are gone.
        tally.dropped(world.link_stats().dropped_bound - dropped_before);
        for function in &functions {
            function.retire().await;
        }
        tally.failure()?;
        if !done {
            return Ok(false);
        }
    }
    Ok(true)
}

fn deploy(experiment: &Experiment, world: &World) -> Result<Vec<Function>, Error> {
    experiment.variants.iter().map(|v| Ok(world.host.deploy(v.function.clone(), &v.name)?)).collect()
}

/// One invocation; resolves to when its connections began to idle.
async fn invoke(function: Function, call: Call, tally: Arc<Tally>, failing: watch::Sender<bool>) -> u64 {
    let variant = function.deployed().variant.clone();
    match function.invoke(call).await {
        Ok(outcome) => {
            let ended_ns = outcome.invocation.responded_ns;
            tally.ended(variant, outcome);
            ended_ns
        }
        Err(source) => {
            tally.failed(Error::Invoke { variant, source });
            failing.send_replace(true);
            clock::monotonic_ns()
        }
    }
}

/// Ends the load with the region's last words if the region dies: an error that names itself, not a run of timeouts.
struct Watch(tokio::task::JoinHandle<()>);

impl Watch {
    fn start(world: &World, tally: &Arc<Tally>, failing: watch::Sender<bool>) -> Watch {
        let (died, tally) = (world.region_died(), Arc::clone(tally));
        Watch(tokio::spawn(async move {
            tally.failed(died.await);
            failing.send_replace(true);
        }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Becomes true when one of the two does.
fn either(mut one: watch::Receiver<bool>, mut other: watch::Receiver<bool>) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(*one.borrow() || *other.borrow());
    tokio::spawn(async move {
        let first = async { one.wait_for(|stop| *stop).await.is_ok() };
        let second = async { other.wait_for(|stop| *stop).await.is_ok() };
        tokio::select! {
            true = first => {}
            true = second => {}
            () = sender.closed() => return,
            else => return,
        }
        sender.send_replace(true);
    });
    receiver
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

/// What invocations brought.
struct Tally {
    watcher: Watcher,
    keep_raw: bool,
    total: Option<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sent: Vec<u32>,
    done: u64,
    dropped: u64,
    returned: Vec<Returned>,
    failure: Option<Error>,
}

impl Tally {
    fn new(watcher: Watcher, keep_raw: bool, total: Option<u64>) -> Tally {
        Tally { watcher, keep_raw, total, state: Mutex::default() }
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many of each variant have been sent so far.
    fn sent(&self, variants: usize) -> Vec<u32> {
        self.with(|state| {
            state.sent.resize(variants, 0);
            state.sent.clone()
        })
    }

    fn fired(&self, fire: Fire) {
        self.with(|state| state.sent[fire.variant] += 1);
    }

    fn ended(&self, variant: String, outcome: Outcome) {
        let short = outcome.payload.len() <= RESPONSE_MAX;
        let payload =
            if short { serde_json::from_slice(&outcome.payload).unwrap_or_default() } else { Value::Null };
        let Outcome { invocation, payload: raw, function_error, .. } = outcome;
        let raw = self.keep_raw.then_some(raw);
        let request_id = invocation.request_id;
        let done = self.with(|state| {
            state.returned.push(Returned {
                variant: variant.clone(),
                request_id,
                function_error,
                payload,
                raw,
            });
            state.done += 1;
            state.done
        });
        (self.watcher)(&Progress { done, total: self.total, variant });
    }

    /// Packets that the link dropped while the load was on.
    fn dropped(&self, packets: u64) {
        self.with(|state| state.dropped += packets);
    }

    fn failed(&self, error: Error) {
        self.with(|state| state.failure.get_or_insert(error).fault());
    }

    fn failure(&self) -> Result<(), Error> {
        self.with(|state| state.failure.take()).map_or(Ok(()), Err)
    }

    fn returned(&self) -> Vec<Returned> {
        self.with(|state| std::mem::take(&mut state.returned))
    }
}
