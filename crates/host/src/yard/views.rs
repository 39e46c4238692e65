//! What can be asked and set from outside: limits, provisioned concurrency, the list of envs.

use super::Yard;
use danki_model::concurrency::{Account, Provisioned, Refused, SlotState, SlotView, VersionId};
use danki_model::{EnvId, InitializationType};
use danki_sys::clock;
use std::sync::Arc;

/// An env, for those who look on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvView {
    /// Which.
    pub env: EnvId,
    /// Its function's name.
    pub function: String,
    /// Its version.
    pub version: String,
    /// Why it exists.
    pub initialization: InitializationType,
    /// `initialising`, `idle`, `allocated` (provisioned, but not yet READY), `busy`, `waiting` (for a forced gap) or `ending`.
    pub state: &'static str,
    /// Since when, ns of the monotonic clock.
    pub since_ns: u64,
}

impl Yard {
    pub fn set_account_limit(&self, limit: u32) {
        self.lock().fleet.set_account_limit(clock::monotonic_ns(), limit);
    }

    pub fn reserve(&self, function: &str, reserved: Option<u32>) -> Result<(), Refused> {
        self.lock().fleet.reserve(clock::monotonic_ns(), function, reserved)
    }

    pub fn reserved(&self, function: &str) -> Option<u32> {
        self.lock().fleet.reserved(function)
    }

    pub fn account(&self) -> Account {
        self.lock().fleet.account()
    }

    pub fn count(&self, version: VersionId) -> usize {
        self.lock().fleet.count(version)
    }

    pub fn provision(self: &Arc<Self>, version: VersionId, requested: u32) -> Result<Provisioned, Refused> {
        let mut state = self.lock();
        let (view, actions) = state.fleet.provision(clock::monotonic_ns(), version, requested)?;
        drop(self.perform(&mut state, actions));
        self.look_sooner(&mut state);
        Ok(view)
    }

    pub fn deprovision(self: &Arc<Self>, version: VersionId) -> bool {
        let mut state = self.lock();
        let actions = state.fleet.deprovision(clock::monotonic_ns(), version);
        let there_was = actions.is_some();
        drop(self.perform(&mut state, actions.unwrap_or_default()));
        there_was
    }

    pub fn provisioned(&self, version: VersionId) -> Option<Provisioned> {
        self.lock().fleet.provisioned_of(version)
    }

    pub fn envs(&self) -> Vec<EnvView> {
        let state = self.lock();
        let view = |slot: SlotView| {
            let deployed = &state.versions.get(&slot.version)?.deployed;
            Some(EnvView {
                env: slot.env,
                function: deployed.spec.name.clone(),
                version: deployed.version.clone(),
                initialization: slot.initialization,
                state: word(slot),
                since_ns: slot.since_ns,
            })
        };
        state.fleet.envs().filter_map(view).collect()
    }
}

fn word(slot: SlotView) -> &'static str {
    match slot.state {
        SlotState::Preparing(_) => "initialising",
        SlotState::Idle if slot.usable => "idle",
        SlotState::Idle => "allocated",
        SlotState::Busy(_) => "busy",
        SlotState::Waiting { .. } => "waiting",
        SlotState::Ending => "ending",
    }
}
