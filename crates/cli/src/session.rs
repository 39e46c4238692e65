//! What every run needs: the keeper (forked before any thread exists), an async runtime, signals, the set-up.

use crate::exit::{Exit, Failure};
use crate::{paths, terminal};
use danki_lab::{
    Experiment, Interpreters, Results, Setup, Watcher, calibrate, read_calibration, write_calibration,
};
use danki_model::CpuChoice;
use danki_record::Calibration;
use danki_sys::Keeper;
use danki_sys::caps::Capabilities;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// A process that can run experiments, one after the other.
pub struct Session {
    keeper: Arc<Keeper>,
    runtime: tokio::runtime::Runtime,
    /// Interpreters of this machine.
    pub interpreters: Interpreters,
    search_path: Vec<PathBuf>,
    calibration: Calibration,
    capabilities: Capabilities,
    interrupted: watch::Receiver<bool>,
}

/// How often the loops are timed when nobody asked for a calibration.
const QUICK_RUNS: u32 = 3;

impl Session {
    /// Removes what dead runs left, forks the keeper, then starts threads.
    pub fn start(speed: Speed) -> Result<Session, Failure> {
        Session::start_with(speed, Interpreters::find)
    }

    /// As [`Session::start`], without asking the interpreters for their versions, which takes them longer than all the rest.
    pub fn start_at_once() -> Result<Session, Failure> {
        Session::start_with(Speed::AsKept, |_| Interpreters::default())
    }

    fn start_with(speed: Speed, find: impl FnOnce(&[PathBuf]) -> Interpreters) -> Result<Session, Failure> {
        danki_sys::sweep();
        let keeper = Arc::new(Keeper::start(&format!("{}", std::process::id()))?);
        let capabilities = danki_sys::caps::probe();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Failure::machine(format!("cannot start threads: {e}")))?;
        let search_path = paths::search_path();
        let interpreters = find(&search_path);
        let calibration = calibration(speed, &interpreters);
        let interrupted = watch_signals(&runtime)?;
        Ok(Session { keeper, runtime, interpreters, search_path, calibration, capabilities, interrupted })
    }

    /// Runs an experiment into a run directory.
    pub fn run(&self, experiment: &Experiment, run: RunInto, watcher: Watcher) -> Result<Results, Failure> {
        let setup = self.setup(run);
        Ok(self.runtime.block_on(danki_lab::run(experiment, &setup, self.interrupted.clone(), watcher))?)
    }

    /// What a world is made with.
    pub fn setup(&self, run: RunInto) -> Setup {
        let missing = self
            .capabilities
            .missing()
            .iter()
            .map(|m| format!("{} is missing: {}", m.what, m.consequence))
            .collect();
        Setup {
            keeper: Arc::clone(&self.keeper),
            dir: run.dir,
            ca_dir: paths::cache().map(|cache| cache.join("ca")),
            search_path: self.search_path.clone(),
            calibration: self.calibration.clone(),
            capabilities: serde_json::to_value(&self.capabilities).unwrap_or_default(),
            missing,
            force: run.force,
            keep_raw: run.keep_raw,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Does something that waits.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Becomes true with the first signal.
    pub fn interruption(&self) -> watch::Receiver<bool> {
        self.interrupted.clone()
    }

    /// A directory that goes with the session.
    pub fn dir(&self) -> &Path {
        self.keeper.dir()
    }

    /// A signal asked for the end.
    pub fn interrupted(&self) -> bool {
        *self.interrupted.borrow()
    }
}

/// Where to and how an experiment is run.
pub struct RunInto {
    /// The run directory.
    pub dir: PathBuf,
    /// Run even if the machine is too small.
    pub force: bool,
    /// Keep responses as they were.
    pub keep_raw: bool,
}

/// Whether the speed of this machine's core is measured before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// Never.
    AsKept,
    /// If it never was.
    Once,
    /// In any case: it changes with what else the machine does, and quotas will hang on it.
    Anew,
}

impl Speed {
    /// As a run needs it.
    pub fn for_run(experiment: &Experiment) -> Speed {
        if experiment.host.cpu_model == Some(CpuChoice::Scaled) { Speed::Anew } else { Speed::Once }
    }
}

fn calibration(speed: Speed, interpreters: &Interpreters) -> Calibration {
    let path = paths::cache().map(|cache| cache.join("calibration.json"));
    let kept = path.as_deref().and_then(read_calibration);
    match (speed, kept) {
        (Speed::AsKept | Speed::Once, Some(kept)) => return kept,
        (Speed::AsKept, None) => return Calibration::default(),
        (Speed::Once, None) => {
            terminal::note(
                "comparing this machine's core with a Lambda vCPU (once; `danki calibrate` repeats it)",
            );
        }
        (Speed::Anew, _) => {
            terminal::note("comparing this machine's core with a Lambda vCPU, to scale quotas by it")
        }
    }
    let measured = calibrate(interpreters, QUICK_RUNS).unwrap_or_default();
    if let Some(path) = path.filter(|_| measured.cpu_factor.is_some()) {
        write_calibration(&path, &measured)
            .unwrap_or_else(|error| terminal::note(&format!("warning: {error}")));
    }
    measured
}

/// The first signal ends the load and keeps what there is; the second ends the process, and the keeper clears up.
fn watch_signals(runtime: &tokio::runtime::Runtime) -> Result<watch::Receiver<bool>, Failure> {
    let _context = runtime.enter();
    let listen = |kind| signal(kind).map_err(|e| Failure::machine(format!("cannot listen for signals: {e}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let (sender, receiver) = watch::channel(false);
    runtime.spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if sender.send_replace(true) {
                std::process::exit(Exit::Interrupted as i32);
            }
            terminal::note("\nstopping: what there is will be written (once more: leave at once)");
        }
    });
    Ok(receiver)
}
