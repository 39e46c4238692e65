//! What all envs of a host share.

use crate::deployed::Deployed;
use crate::files::SharedFiles;
use crate::logs::LogHub;
use crate::sampler::Sampler;
use crate::spy::Spies;
use crate::{DnsServer, HostConfig};
use danki_link::LinkHandle;
use danki_model::{EnvId, PERIOD_US};
use danki_record::{Event, Recorder};
use danki_sys::{Keeper, clock};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The host's parts that every env uses.
pub(crate) struct Shared {
    pub config: HostConfig,
    pub keeper: Arc<Keeper>,
    pub link: LinkHandle,
    pub recorder: Recorder,
    pub dns: DnsServer,
    pub files: SharedFiles,
    pub sampler: Sampler,
    pub functions: AtomicU32,
    /// Sentences already recorded: a caveat that holds for every env is said once.
    pub caveats: Mutex<BTreeSet<String>>,
    /// Who else reads the log lines.
    pub logs: LogHub,
    /// Profiles of Python functions, if profiles are made.
    pub spies: Option<Spies>,
}

impl Shared {
    /// CPU per period during an on-demand init: one full vCPU, or more where the memory size buys more.
    pub fn boosted_quota_us(&self, function: &Deployed) -> u64 {
        match self.config.init_boost {
            true => function.quota_us.max(PERIOD_US),
            false => function.quota_us,
        }
    }

    /// A seed of its own for each function.
    pub fn next_seed(&self) -> u64 {
        self.config.seed ^ u64::from(self.functions.fetch_add(1, Ordering::Relaxed)).rotate_left(32)
    }

    /// The log stream of an env; the same run and seed give the same name but for the date.
    pub fn log_stream(&self, env: EnvId, version: &str) -> String {
        let bits = (u128::from(self.config.seed) << 64) | u128::from(env.0);
        danki_model::log::stream_name(clock::epoch_ns() / 1_000_000, version, bits)
    }

    /// Records a sentence that readers of the results must know, once.
    pub fn caveat(&self, text: String) {
        let mut said = self.caveats.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(text.clone()) {
            self.recorder.record(Event::Caveat { text });
        }
    }
}
