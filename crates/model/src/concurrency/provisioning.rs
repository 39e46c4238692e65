//! The environments that provisioned concurrency keeps ready for one version.
//!
//! S0 saw READY 84.6 s after the end of init in both of its runs (87.06 − 2.40 s, 86.85 − 2.23 s after INIT_START): environments are
//! initialised at once, then the allocation settles. Nothing is served before all of them are there. A failed init fails the
//! allocation; environments that were usable before stay so. Old ones are replaced ahead: the new one is ready before the old one goes.

use super::{Bucket, PROVISION_PER_S};
use crate::EnvId;
use std::collections::BTreeMap;

/// `Status` of a PC configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvisionStatus {
    /// Environments are being made, or the allocation settles.
    InProgress,
    /// All are usable.
    Ready,
    /// See [`Provisioned::reason`].
    Failed,
}

impl ProvisionStatus {
    /// The API's word.
    pub fn as_str(self) -> &'static str {
        match self {
            ProvisionStatus::InProgress => "IN_PROGRESS",
            ProvisionStatus::Ready => "READY",
            ProvisionStatus::Failed => "FAILED",
        }
    }
}

/// `StatusReason` of a failed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusReason {
    /// The runtime reported an error or ended (recorded on AWS in 2026).
    InitFailure,
    /// Init took longer than it may (assumed by analogy).
    InitTimeout,
}

impl StatusReason {
    /// The API's word.
    pub fn as_str(self) -> &'static str {
        match self {
            StatusReason::InitFailure => "FUNCTION_ERROR_INIT_FAILURE",
            StatusReason::InitTimeout => "FUNCTION_ERROR_INIT_TIMEOUT",
        }
    }
}

/// A PC configuration as the API shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provisioned {
    /// What was asked for.
    pub requested: u32,
    /// Environments that have initialised.
    pub allocated: u32,
    /// Those that may serve.
    pub available: u32,
    /// How far it is.
    pub status: ProvisionStatus,
    /// Why it failed.
    pub reason: Option<StatusReason>,
}

/// What is to be done about a version's PC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Make and initialise one more.
    Start,
    /// This one may serve from now on.
    Usable(EnvId),
    /// This one goes when it is idle.
    Surplus(EnvId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Starting,
    /// Initialised at this time.
    Allocated(u64),
    Usable(u64),
}

/// PC of one version.
#[derive(Clone, Debug)]
pub struct Provisioning {
    requested: u32,
    status: ProvisionStatus,
    reason: Option<StatusReason>,
    members: BTreeMap<EnvId, Stage>,
    /// When the last environment had initialised; all are there since.
    complete_ns: Option<u64>,
    starts: Bucket,
    /// A replacement that failed is not tried again before.
    not_before_ns: u64,
    settle_ns: u64,
    max_age_ns: u64,
}

impl Provisioning {
    /// Nothing is there yet. `settle_ns` passes between the last init and READY; an environment is replaced after `max_age_ns`.
    pub fn new(requested: u32, settle_ns: u64, max_age_ns: u64, now_ns: u64) -> Provisioning {
        Provisioning {
            requested,
            status: ProvisionStatus::InProgress,
            reason: None,
            members: BTreeMap::new(),
            complete_ns: None,
            starts: Bucket::full(PROVISION_PER_S, PROVISION_PER_S, now_ns),
            not_before_ns: now_ns,
            settle_ns,
            max_age_ns,
        }
    }

    /// Another amount, or a new attempt after a failure. Usable environments stay so.
    pub fn request(&mut self, requested: u32) {
        let grows = requested > self.usable();
        self.requested = requested;
        (self.reason, self.complete_ns, self.not_before_ns) = (None, None, 0);
        self.status = if grows { ProvisionStatus::InProgress } else { ProvisionStatus::Ready };
    }

    /// As the API shows it.
    pub fn view(&self) -> Provisioned {
        let allocated = self.members.values().filter(|stage| **stage != Stage::Starting).count();
        let capped = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).min(self.requested);
        Provisioned {
            requested: self.requested,
            allocated: capped(allocated),
            available: self.usable().min(self.requested),
            status: self.status,
            reason: self.reason,
        }
    }

    /// An environment for [`Need::Start`] has this id.
    pub fn started(&mut self, env: EnvId) {
        self.members.insert(env, Stage::Starting);
    }

    /// It has initialised.
    pub fn initialised(&mut self, env: EnvId, now_ns: u64) {
        if let Some(stage @ Stage::Starting) = self.members.get_mut(&env) {
            *stage = Stage::Allocated(now_ns);
        }
    }

    /// It could not be initialised: the allocation fails, but a replacement is tried again later.
    pub fn init_failed(&mut self, env: EnvId, reason: StatusReason, now_ns: u64) {
        if self.members.remove(&env).is_none() {
            return;
        }
        if self.status == ProvisionStatus::InProgress {
            (self.status, self.reason) = (ProvisionStatus::Failed, Some(reason));
        }
        self.not_before_ns = now_ns.saturating_add(self.settle_ns);
    }

    /// It is gone, or does not belong here any more.
    pub fn gone(&mut self, env: EnvId) {
        self.members.remove(&env);
    }

    /// It may serve.
    pub fn is_usable(&self, env: EnvId) -> bool {
        matches!(self.members.get(&env), Some(Stage::Usable(_)))
    }

    /// What is to be done now; call until it says nothing.
    pub fn need(&mut self, now_ns: u64) -> Option<Need> {
        match self.status {
            ProvisionStatus::Failed => self.unusable(),
            ProvisionStatus::InProgress => self.allocate(now_ns),
            ProvisionStatus::Ready => self.maintain(now_ns),
        }
    }

    /// When [`Provisioning::need`] should be asked again, if nothing happens before.
    pub fn wake_ns(&self) -> Option<u64> {
        let settled = self.complete_ns.map(|at| at.saturating_add(self.settle_ns));
        let start = (self.status != ProvisionStatus::Failed && self.missing()).then(|| self.starts.next_ns());
        let replaceable = self.status == ProvisionStatus::Ready && !self.has_spare();
        let aged = replaceable.then(|| self.oldest()).flatten();
        let aged = aged.map(|(_, at)| at.saturating_add(self.max_age_ns));
        let start = [start.flatten(), aged].into_iter().flatten().min();
        [settled, start.map(|at| at.max(self.not_before_ns))].into_iter().flatten().min()
    }

    fn usable(&self) -> u32 {
        let usable = self.members.values().filter(|stage| matches!(stage, Stage::Usable(_))).count();
        u32::try_from(usable).unwrap_or(u32::MAX)
    }

    fn missing(&self) -> bool {
        self.members.len() < self.requested as usize
    }

    fn allocate(&mut self, now_ns: u64) -> Option<Need> {
        if self.missing() {
            self.complete_ns = None;
            return self.starts.take(now_ns).then_some(Need::Start);
        }
        if self.members.values().any(|stage| *stage == Stage::Starting) {
            return None;
        }
        let complete_ns = *self.complete_ns.get_or_insert(now_ns);
        if now_ns < complete_ns.saturating_add(self.settle_ns) {
            return None;
        }
        self.complete_ns = None;
        self.status = ProvisionStatus::Ready;
        self.maintain(now_ns)
    }

    /// Ready: what has initialised may serve, what was lost is made anew, what is old is replaced, what is too much goes.
    fn maintain(&mut self, now_ns: u64) -> Option<Need> {
        let allocated = self.members.iter_mut().find_map(|(env, stage)| match *stage {
            Stage::Allocated(at) => {
                *stage = Stage::Usable(at);
                Some(Need::Usable(*env))
            }
            _ => None,
        });
        if allocated.is_some() {
            return allocated;
        }
        if self.usable() > self.requested {
            return self.oldest().map(|(env, _)| self.drop_member(env));
        }
        if self.usable() == self.requested
            && let Some(env) = self.starting()
            && !self.is_old(now_ns)
        {
            return Some(self.drop_member(env));
        }
        let wanted = self.missing() || (self.is_old(now_ns) && !self.has_spare());
        (wanted && now_ns >= self.not_before_ns && self.starts.take(now_ns)).then_some(Need::Start)
    }

    fn has_spare(&self) -> bool {
        self.members.len() > self.requested as usize
    }

    fn unusable(&mut self) -> Option<Need> {
        let unusable = self.members.iter().find(|(_, stage)| !matches!(stage, Stage::Usable(_)));
        unusable.map(|(env, _)| *env).map(|env| self.drop_member(env))
    }

    fn drop_member(&mut self, env: EnvId) -> Need {
        self.members.remove(&env);
        Need::Surplus(env)
    }

    fn starting(&self) -> Option<EnvId> {
        self.members.iter().find(|(_, stage)| **stage == Stage::Starting).map(|(env, _)| *env)
    }

    fn is_old(&self, now_ns: u64) -> bool {
        self.oldest().is_some_and(|(_, at)| at.saturating_add(self.max_age_ns) <= now_ns)
    }

    fn oldest(&self) -> Option<(EnvId, u64)> {
        let usable = self.members.iter().filter_map(|(env, stage)| match stage {
            Stage::Usable(at) => Some((*env, *at)),
            _ => None,
        });
        usable.min_by_key(|(env, at)| (*at, *env))
    }
}

#[cfg(test)]
mod tests;
