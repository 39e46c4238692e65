//! Execution environments: what Lambda's workers do, on this machine.
//!
//! A [`Host`] holds deployed [`Function`]s. An invocation takes an idle environment (env) or creates one; the env is a sandbox
//! (`sys`), a Runtime API session (`runtime-api`) and a network card (`link`), which are created, frozen, thawed, reset and ended together.
//! The order of these is the whole point of this crate; `env` holds the parts, `invoke` the order.

mod answer;
mod call;
mod config;
mod deliver;
mod deployed;
mod env;
mod error;
mod facts;
mod files;
mod function;
mod image;
mod interpreter;
mod invoke;
mod log;
mod logs;
mod metrics;
mod plan;
mod sampler;
mod shared;
mod spy;
mod telemetry;
mod thefts;
mod yard;

pub use answer::{Answer, AnswerStream, StreamEnd, Wants};
pub use call::{Call, Caller, Forced, IDLE_GAP_MAX, Pending};
pub use config::{DnsServer, HostConfig, QuotaPhase, ThawOrder, Tracing, WhileFrozen, XRayServer};
pub use danki_model::concurrency::{Account, ProvisionStatus, Provisioned, Refused, StatusReason, Throttle};
pub use deployed::{Deployed, Deployment};
pub use error::Error;
pub use function::Function;
pub use interpreter::{Interpreter, find as find_interpreter, version_caveat};
pub use invoke::Outcome;
pub use logs::{LogKind, LogNews, LogRecord, LogSubscription};
pub use yard::EnvView;

use danki_link::LinkHandle;
use danki_model::FunctionSpec;
use danki_model::metrics::Ledger;
use danki_record::Recorder;
use danki_sys::Keeper;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Busy envs are waited for so long at the end.
const PATIENCE: Duration = Duration::from_secs(15);

/// Deployed functions and their envs.
pub struct Host {
    shared: Arc<shared::Shared>,
    yard: Arc<yard::Yard>,
    watch: JoinHandle<()>,
}

impl Host {
    /// Prepares the shared files and begins to watch idle envs. Must be called on a tokio runtime.
    pub fn start(
        config: HostConfig,
        keeper: Arc<Keeper>,
        link: LinkHandle,
        recorder: Recorder,
        dns: DnsServer,
    ) -> Result<Host, Error> {
        let files = files::SharedFiles::write(&config.ca_root_pem, config.roots, keeper.dir())?;
        let sampler = sampler::Sampler::start(config.cpu_sample_interval, recorder.clone());
        let at = |path: &std::path::Path| {
            let path = path.to_path_buf();
            |source| Error::File { path, source }
        };
        let spies = match &config.profiles {
            Some(dir) => Some(spy::Spies::find(&config.search_path, dir).map_err(at(dir))?),
            None => None,
        };
        let (functions, caveats) = (AtomicU32::new(0), Mutex::new(BTreeSet::new()));
        let shared = shared::Shared {
            config,
            keeper,
            link,
            recorder,
            dns,
            files,
            sampler,
            functions,
            caveats,
            logs: logs::LogHub::new(),
            spies,
        };
        let shared = Arc::new(shared);
        if !shared.files.has_system_bundle {
            shared
                .caveat("no system certificate bundle here: functions load only danki's own root".to_owned());
        }
        if let Some(roots) = shared.config.roots {
            shared.caveat(format!(
                "functions load {roots} of this machine's trusted roots, not all ([host] roots)"
            ));
        }
        let yard = yard::Yard::new(Arc::clone(&shared));
        let watch = tokio::spawn(Arc::clone(&yard).watch());
        Ok(Host { shared, yard, watch })
    }

    /// Makes a function ready, as `$LATEST`. Nothing runs until it is invoked.
    pub fn deploy(&self, spec: FunctionSpec, variant: &str) -> Result<Function, Error> {
        self.deploy_version(spec, variant, danki_model::log::LATEST)
    }

    /// Makes a version of a function ready. All that have one name share its reserved concurrency.
    pub fn deploy_version(
        &self,
        spec: FunctionSpec,
        variant: &str,
        version: &str,
    ) -> Result<Function, Error> {
        let (variant, version) = (variant.to_owned(), version.to_owned());
        self.deploy_as(spec, Deployment { variant, version, thaw_order: None })
    }

    /// Makes a function ready, with all that can be said about it. A container image is unpacked before this returns.
    pub fn deploy_as(&self, spec: FunctionSpec, deployment: Deployment) -> Result<Function, Error> {
        let deployed = Deployed::new(spec, deployment, &self.shared.config, &self.shared.files.images())?;
        let caveat = deployed.interpreter.as_ref().and_then(|i| version_caveat(deployed.spec.runtime, i));
        caveat.into_iter().for_each(|text| self.shared.caveat(text));
        let is_python = matches!(deployed.spec.runtime, danki_model::Runtime::Python(_));
        if is_python && self.shared.spies.as_ref().is_some_and(|spies| !spies.are_there()) {
            self.shared.caveat(
                "Python functions have no profile: there is no py-spy on PATH (pip install py-spy)"
                    .to_owned(),
            );
        }
        let version = self.yard.deploy(deployed);
        Ok(Function::new(Arc::clone(&self.yard), version, self.shared.next_seed()))
    }

    /// Sets how many invocations of all functions may run at once.
    pub fn set_account_limit(&self, limit: u32) {
        self.yard.set_account_limit(limit);
    }

    /// Reserves concurrency for a function, deployed or not, or no longer.
    pub fn set_reserved(&self, function: &str, reserved: Option<u32>) -> Result<(), Refused> {
        self.yard.reserve(function, reserved)
    }

    /// The reserved concurrency of a function.
    pub fn reserved(&self, function: &str) -> Option<u32> {
        self.yard.reserved(function)
    }

    /// How the account's concurrency is divided now.
    pub fn account(&self) -> Account {
        self.yard.account()
    }

    /// What was counted and measured, in CloudWatch's words. Whoever holds it delays invocations.
    pub fn metrics(&self) -> MutexGuard<'_, Ledger> {
        self.yard.metrics.look()
    }

    /// All envs that exist now.
    pub fn envs(&self) -> Vec<EnvView> {
        self.yard.envs()
    }

    /// All log lines of all functions, from now on.
    pub fn logs(&self) -> LogSubscription {
        self.shared.logs.subscribe()
    }

    /// Ends all envs; those still busy after 15 s go with the keeper.
    pub async fn stop(&self) {
        let retiring: Vec<_> = self
            .yard
            .versions()
            .into_iter()
            .map(|version| {
                let yard = Arc::clone(&self.yard);
                tokio::spawn(async move { yard.retire(&version, PATIENCE).await })
            })
            .collect();
        for version in retiring {
            version.await.ok();
        }
        self.watch.abort();
    }
}
