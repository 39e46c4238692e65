//! The lab: a world with its own keeper and async runtime, behind calls that block.

use crate::{Error, Function, Process, descendants, function_in, traces};
use danki_explain::Facts;
use danki_lab::{Experiment, HostKeys, Setup, World};
use danki_link::Stats;
use danki_model::{EnvId, FunctionSpec};
use danki_record::{Event, Received, Recorder, Recording};
use danki_region::DynamoDb;
use danki_sys::Keeper;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// Facts that may wait to be read; [`Lab::events`] reads, and so does every invocation.
const RECORDER_BOUND: usize = 65_536;
/// Longest start or stop of a lab.
const PATIENCE_S: u64 = 30;

/// How a lab differs from an experiment's defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How envs behave.
    pub host: HostKeys,
    /// Limit of an on-demand init; Lambda's 10 s if absent.
    pub init_limit: Option<Duration>,
    /// The DynamoDB endpoint; one without tables by default.
    pub dynamodb: Option<DynamoDb>,
    /// The Secrets Manager endpoint; none by default.
    pub secretsmanager: Option<danki_region::SecretsManager>,
    /// The Parameter Store endpoint; none by default.
    pub ssm: Option<danki_region::Ssm>,
    /// The database; none by default.
    pub database: Option<danki_database::Config>,
    /// Share of invocations that X-Ray keeps; tracing is not active by default.
    pub xray_sampling: Option<f64>,
    /// Round trip to every endpoint, µs.
    pub rtt_us: u64,
    /// Divides idle cut-offs and idle lifetimes.
    pub time_scale: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            host: HostKeys::default(),
            init_limit: None,
            dynamodb: Some(DynamoDb::default()),
            secretsmanager: None,
            ssm: None,
            database: None,
            xray_sampling: None,
            rtt_us: 1_000,
            time_scale: 1.0,
        }
    }
}

/// A running lab. Dropping it ends it too, but only [`Lab::stop`] tells how that went.
pub struct Lab {
    pub(crate) runtime: tokio::runtime::Runtime,
    world: World,
    keeper: Arc<Keeper>,
    recording: Mutex<Recording>,
    events: Mutex<Vec<Event>>,
    functions: Mutex<Vec<danki_host::Function>>,
    files: TempDir,
    written: Mutex<u32>,
}

/// What a lab leaves: facts, and nothing else.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// All events.
    pub events: Vec<Event>,
    /// Events that were lost because nobody read them in time.
    pub dropped: u64,
    /// The link's figures.
    pub link: Stats,
    /// What is left on the machine, in words; should be empty.
    pub left: Vec<String>,
}

impl Recorded {
    /// The events, joined.
    pub fn facts(&self) -> Facts {
        Facts::gather(&self.events)
    }
}

impl Lab {
    /// Starts a lab. `name` becomes part of the names of its cgroups and directories.
    ///
    /// # Errors
    /// The machine refuses something.
    pub fn start(name: &str, settings: Settings) -> Result<Lab, Error> {
        let keeper = Arc::new(Keeper::start(&format!("testkit-{name}"))?);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let permissions = fs::Permissions::from_mode(0o755);
        let files = tempfile::Builder::new().prefix("testkit-").permissions(permissions).tempdir()?;
        let (recorder, recording) = Recorder::bounded(RECORDER_BOUND);
        let (experiment, init_limit) = experiment(name, settings)?;
        let setup = setup(&keeper, files.path());
        let pcap = files.path().join("wire.pcap");
        let start = World::start_with(&experiment, &setup, &recorder, Some(&pcap), |host| {
            host.init_limit = init_limit.unwrap_or(host.init_limit);
        });
        let world = runtime.block_on(within("the start of the lab", start))??;
        Ok(Lab {
            runtime,
            world,
            keeper,
            recording: Mutex::new(recording),
            events: Mutex::default(),
            functions: Mutex::default(),
            files,
            written: Mutex::default(),
        })
    }

    /// Makes a function ready.
    ///
    /// # Errors
    /// It is not one that Lambda would take, or its interpreter is not here.
    pub fn deploy(&self, spec: FunctionSpec) -> Result<Function<'_>, Error> {
        self.deploy_version(spec, "$LATEST")
    }

    /// Makes a version of a function ready.
    ///
    /// # Errors
    /// As [`Lab::deploy`].
    pub fn deploy_version(&self, spec: FunctionSpec, version: &str) -> Result<Function<'_>, Error> {
        let _context = self.runtime.enter();
        let variant = spec.name.clone();
        let function = self.world.host.deploy_version(spec, &variant, version)?;
        let mut functions = lock(&self.functions);
        functions.push(function);
        Ok(Function::new(self, functions.len() - 1))
    }

    /// The host: limits, metrics, the list of envs.
    pub fn host(&self) -> &danki_host::Host {
        &self.world.host
    }

    pub(crate) fn function(&self, number: usize) -> danki_host::Function {
        lock(&self.functions)[number].clone()
    }

    /// A function made of one file; the directory goes with the lab.
    ///
    /// # Errors
    /// The file cannot be written, or its name tells no runtime.
    pub fn write(&self, file: &str, code: &str) -> Result<FunctionSpec, Error> {
        let mut written = lock(&self.written);
        *written += 1;
        let dir = self.files.path().join(format!("function-{written}"));
        fs::create_dir(&dir)?;
        fs::write(dir.join(file), code)?;
        fs::set_permissions(dir.join(file), fs::Permissions::from_mode(0o755))?;
        function_in(&dir)
    }

    /// Everything recorded so far.
    pub fn events(&self) -> Vec<Event> {
        self.read();
        lock(&self.events).clone()
    }

    /// All lines of an env's log so far.
    pub fn log(&self, env: EnvId) -> Vec<String> {
        let lines = self.events().into_iter().filter_map(|event| match event {
            Event::Log(log) if log.env == env => Some(log.line),
            _ => None,
        });
        lines.collect()
    }

    pub(crate) fn read(&self) {
        let recording = lock(&self.recording);
        let mut events = lock(&self.events);
        while let Received::Event(event) = recording.receive(Duration::ZERO) {
            events.push(*event);
        }
    }

    /// Processes of the lab whose arguments hold `text`, e.g. `bootstrap.py`.
    pub fn processes(&self, text: &str) -> Vec<Process> {
        descendants(self.keeper.pid()).into_iter().filter(|p| p.command().contains(text)).collect()
    }

    /// The keeper.
    pub fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// Directory for files of the test; goes with the lab.
    pub fn dir(&self) -> &Path {
        self.files.path()
    }

    /// Ends everything and looks for what is left of it.
    ///
    /// # Errors
    /// Something would not end.
    pub fn stop(self) -> Result<Recorded, Error> {
        self.read();
        let mut processes = descendants(self.keeper.pid());
        processes.extend(Process::find(self.keeper.pid()));
        let Lab { runtime, world, keeper, recording, events, functions, files, written: _ } = self;
        drop(functions);
        let run = keeper.dir().file_name().map(|name| name.to_string_lossy().into_owned());
        let link = runtime.block_on(within("the end of the lab", world.stop()))??;
        drop(runtime);
        if let Ok(keeper) = Arc::try_unwrap(keeper) {
            keeper.shutdown()?;
        }
        let recording = recording.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut events = events.into_inner().unwrap_or_else(PoisonError::into_inner);
        while let Received::Event(event) = recording.receive(Duration::ZERO) {
            events.push(*event);
        }
        drop(files);
        let mut left = run.as_deref().map(traces).unwrap_or_default();
        left.extend(processes.iter().filter(|p| p.lives()).map(|p| format!("{p:?}: {}", p.command())));
        Ok(Recorded { events, dropped: recording.dropped(), link, left })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every wait has a deadline.
pub(crate) async fn within<T>(what: &'static str, future: impl Future<Output = T>) -> Result<T, Error> {
    let late = |_| Error::Late { what, seconds: PATIENCE_S };
    tokio::time::timeout(Duration::from_secs(PATIENCE_S), future).await.map_err(late)
}

fn experiment(name: &str, settings: Settings) -> Result<(Experiment, Option<Duration>), Error> {
    let choice = danki_lab::FunctionChoice {
        dir: crate::repository().join("functions/hello-provided"),
        ..Default::default()
    };
    let mut experiment = danki_lab::single(&choice, &danki_lab::Options::default())?;
    experiment.name = name.to_owned();
    experiment.host = settings.host;
    experiment.region.dynamodb = settings.dynamodb;
    experiment.region.secretsmanager = settings.secretsmanager;
    experiment.region.ssm = settings.ssm;
    experiment.region.database = settings.database;
    experiment.xray_sampling = settings.xray_sampling;
    experiment.region.path.rtt_us = settings.rtt_us;
    experiment.time_scale = settings.time_scale;
    Ok((experiment, settings.init_limit))
}

fn setup(keeper: &Arc<Keeper>, dir: &Path) -> Setup {
    Setup {
        keeper: Arc::clone(keeper),
        dir: dir.join("run"),
        // RSA keys take a second to make; every test binary uses the same ones.
        ca_dir: Some(crate::repository().join("target/testkit-ca")),
        search_path: ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from).to_vec(),
        calibration: danki_record::Calibration::default(),
        capabilities: serde_json::Value::Null,
        missing: Vec::new(),
        force: true,
        keep_raw: false,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
