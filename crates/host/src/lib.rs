//! Execution environments: what Lambda's workers do, on this machine.
//!
//! A [`Host`] holds deployed [`Function`]s. An invocation takes an idle environment (env) or creates one; the env is a sandbox
//! (`sys`), a Runtime API session (`runtime-api`) and a network card (`link`), which are created, frozen, thawed, reset and ended together.
//! The order of these is the whole point of this crate; `env` holds the parts, `invoke` the order.

mod answer;
mod config;
mod deployed;
mod env;
mod error;
mod facts;
mod files;
mod function;
mod interpreter;
mod invoke;
mod log;
mod logs;
mod plan;
mod sampler;
mod shared;

pub use answer::{Answer, AnswerStream, StreamEnd, Wants};
pub use config::{DnsServer, HostConfig, ThawOrder, WhileFrozen};
pub use deployed::Deployed;
pub use error::Error;
pub use function::{Call, Caller, Function, Pending};
pub use interpreter::{Interpreter, find as find_interpreter, version_caveat};
pub use invoke::Outcome;
pub use logs::{LogKind, LogNews, LogRecord, LogSubscription};

use danki_link::LinkHandle;
use danki_model::FunctionSpec;
use danki_record::Recorder;
use danki_sys::Keeper;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Deployed functions and their envs.
pub struct Host {
    shared: Arc<shared::Shared>,
    functions: Arc<Mutex<Vec<Function>>>,
    expiry: JoinHandle<()>,
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
        let sampler = sampler::Sampler::start(config.cpu_sample_interval);
        let (envs, functions, caveats) = (AtomicU32::new(0), AtomicU32::new(0), Mutex::new(BTreeSet::new()));
        let ttl = config.idle_ttl.div_f64(config.time_scale);
        let shared = shared::Shared {
            config,
            keeper,
            link,
            recorder,
            dns,
            files,
            sampler,
            envs,
            functions,
            caveats,
            logs: logs::LogHub::new(),
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
        let functions = Arc::default();
        let expiry = tokio::spawn(expire(Arc::clone(&functions), ttl));
        Ok(Host { shared, functions, expiry })
    }

    /// Makes a function ready. Nothing runs until it is invoked.
    pub fn deploy(&self, spec: FunctionSpec, variant: &str) -> Result<Function, Error> {
        let deployed = Deployed::new(spec, variant, danki_model::log::LATEST, &self.shared.config)?;
        let caveat = deployed.interpreter.as_ref().and_then(|i| version_caveat(deployed.spec.runtime, i));
        caveat.into_iter().for_each(|text| self.shared.caveat(text));
        let function = Function::new(Arc::clone(&self.shared), deployed);
        lock(&self.functions).push(function.clone());
        Ok(function)
    }

    /// All log lines of all functions, from now on.
    pub fn logs(&self) -> LogSubscription {
        self.shared.logs.subscribe()
    }

    /// Ends all envs; those still busy after 15 s go with the keeper.
    pub async fn stop(self) {
        self.expiry.abort();
        let functions = std::mem::take(&mut *lock(&self.functions));
        let retiring: Vec<_> = functions
            .into_iter()
            .map(|function| tokio::spawn(async move { function.retire().await }))
            .collect();
        for function in retiring {
            function.await.ok();
        }
    }
}

async fn expire(functions: Arc<Mutex<Vec<Function>>>, ttl: Duration) {
    let mut tick =
        tokio::time::interval((ttl / 10).clamp(Duration::from_millis(100), Duration::from_secs(5)));
    loop {
        tick.tick().await;
        let all = lock(&functions).clone();
        for function in all {
            function.expire(ttl).await;
        }
    }
}

fn lock(functions: &Mutex<Vec<Function>>) -> MutexGuard<'_, Vec<Function>> {
    functions.lock().unwrap_or_else(PoisonError::into_inner)
}
