//! What every operation shares: the account, the fleet that runs it, logs, the queue of asynchronous events.

use crate::asynchronous::Queue;
use crate::fault::Fault;
use crate::fleet::Fleet;
use crate::logs::Logs;
use crate::services::s3::Buckets;
use crate::store::{Account, Persist};
use danki_dashboard::Dashboard;
use danki_model::RequestId;
use danki_model::metrics::Ledger;
use danki_sys::clock;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// How the endpoint behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// AWS name of the region: part of every ARN.
    pub region: String,
    /// Divides retry delays and ages of asynchronous events; 1 to 10.
    pub time_scale: f64,
    /// Refuse requests whose signature does not match the secret key of `danki_model::environment`.
    pub verify_signatures: bool,
    /// Where the account and its code are kept.
    pub dir: PathBuf,
    /// The account survives a restart; otherwise `dir` holds code only.
    pub keep: bool,
}

/// The endpoint behind its routes.
pub struct Api {
    pub config: Config,
    pub fleet: Fleet,
    pub logs: Logs,
    pub queue: Queue,
    pub buckets: Buckets,
    metrics: Mutex<Ledger>,
    /// What a browser sees, if anybody shall see anything.
    pub dashboard: OnceLock<Dashboard>,
    persist: Persist,
    account: Mutex<Account>,
    rng: Mutex<SmallRng>,
}

impl Api {
    pub fn new(config: Config, fleet: Fleet) -> Result<Api, crate::Error> {
        let persist = Persist::open(&config.dir, config.keep)?;
        let account = persist.load()?;
        Ok(Api {
            queue: Queue::new(config.time_scale, config.dir.join("destinations")),
            config,
            fleet,
            logs: Logs::default(),
            buckets: Buckets::default(),
            metrics: Mutex::default(),
            dashboard: OnceLock::new(),
            persist,
            account: Mutex::new(account),
            rng: Mutex::new(SmallRng::seed_from_u64(clock::epoch_ns())),
        })
    }

    pub fn region(&self) -> &str {
        &self.config.region
    }

    /// Where code is unpacked.
    pub fn code_dir(&self) -> PathBuf {
        self.persist.code()
    }

    /// The account, to look at.
    pub fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was counted of asynchronous events; the host counts the rest.
    pub fn metrics(&self) -> MutexGuard<'_, Ledger> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the account and keeps the change. A refusal leaves the account as the closure left it, so refusals come first.
    pub fn change<T>(&self, change: impl FnOnce(&mut Account) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut account = self.account();
        let done = change(&mut account)?;
        let saved = self.persist.save(&account);
        saved.map_err(|e| Fault::service(format!("danki cannot keep its state: {e}")))?;
        Ok(done)
    }

    pub fn uuid(&self) -> String {
        RequestId::from_bits(self.random()).0
    }

    pub fn random<T>(&self) -> T
    where
        rand::distr::StandardUniform: rand::distr::Distribution<T>,
    {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).random()
    }
}

/// Now, in ms of the epoch.
pub fn now_ms() -> u64 {
    clock::epoch_ns() / 1_000_000
}
