//! What an account's owner sets: limits, reservations, provisioned concurrency.

use super::admission::running;
use super::fleet::{Action, Fleet, Version, VersionId};
use super::{Account, Provisioned, Provisioning, REQUESTS_PER_CONCURRENCY, Refused, limits};

/// What invocations hold just now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Invocations under way.
    pub concurrent: u32,
    /// Those on provisioned environments.
    pub provisioned: u32,
    /// Provisioned environments that may serve, busy or not.
    pub available: u32,
}

impl Held {
    fn of(version: &Version) -> Held {
        Held {
            concurrent: running(version),
            provisioned: version.provisioned.holding,
            available: version.provisioning.as_ref().map_or(0, |p| p.view().available),
        }
    }
}

impl Fleet {
    /// How the account's concurrency is divided.
    pub fn account(&self) -> Account {
        let limit = self.rules.account_limit;
        let reserved: u32 = self.functions.values().filter_map(|function| function.reserved).sum();
        let is_unreserved = |version: &&Version| self.functions[&version.function].reserved.is_none();
        let unreserved = || self.versions.values().filter(is_unreserved);
        let unused = |v: &Version| v.claim() - v.provisioned.holding;
        let unreserved_concurrent = unreserved().map(running).sum();
        Account {
            limit,
            unreserved: limit.saturating_sub(reserved),
            claimed: reserved + unreserved_concurrent + unreserved().map(unused).sum::<u32>(),
            concurrent: self.versions.values().map(running).sum(),
            unreserved_concurrent,
        }
    }

    /// What invocations hold of a function.
    pub fn held(&self, function: &str) -> Held {
        let versions = self.versions.values().filter(|version| version.function == function);
        versions.map(Held::of).fold(Held::default(), |sum, held| Held {
            concurrent: sum.concurrent + held.concurrent,
            provisioned: sum.provisioned + held.provisioned,
            available: sum.available + held.available,
        })
    }

    /// What invocations hold of a version.
    pub fn held_by(&self, version: VersionId) -> Held {
        self.versions.get(&version).map(Held::of).unwrap_or_default()
    }

    /// Raises or lowers the account's limit.
    pub fn set_account_limit(&mut self, now_ns: u64, limit: u32) {
        self.rules.account_limit = limit;
        let per_s = limit.saturating_mul(REQUESTS_PER_CONCURRENCY);
        self.requests.resize(per_s, per_s, now_ns);
    }

    /// The reserved concurrency of a function.
    pub fn reserved(&self, function: &str) -> Option<u32> {
        self.functions.get(function)?.reserved
    }

    /// Reserves concurrency for a function, or no longer.
    pub fn reserve(&mut self, now_ns: u64, function: &str, reserved: Option<u32>) -> Result<(), Refused> {
        if let Some(reserved) = reserved {
            let (others, own) = (self.claimed_by_others(function), self.claimed_by(function, None));
            limits::reserve(self.rules.account_limit, others, own, reserved)?;
        }
        let per_s = reserved.unwrap_or(0).saturating_mul(REQUESTS_PER_CONCURRENCY);
        let entry = self.function(function, now_ns);
        entry.reserved = reserved;
        entry.requests.resize(per_s, per_s, now_ns);
        Ok(())
    }

    /// Provisioned concurrency of a version, once asked for.
    pub fn provisioned_of(&self, version: VersionId) -> Option<Provisioned> {
        Some(self.versions.get(&version)?.provisioning.as_ref()?.view())
    }

    /// Asks for provisioned concurrency, or for another amount of it.
    pub fn provision(
        &mut self,
        now_ns: u64,
        id: VersionId,
        requested: u32,
    ) -> Result<(Provisioned, Vec<Action>), Refused> {
        let Some(version) = self.versions.get(&id).filter(|version| !version.retired) else {
            return Err(Refused::Gone);
        };
        let name = version.function.clone();
        let siblings = self.claimed_by(&name, Some(id));
        let others = self.claimed_by_others(&name);
        limits::provision(self.rules.account_limit, others, self.reserved(&name), siblings, requested)?;
        if requested as usize > self.rules.max_envs {
            return Err(Refused::Machine { max_envs: self.rules.max_envs });
        }
        let (settle_ns, age_ns) = (self.rules.settle_ns, self.rules.provisioned_age_ns);
        let version = self.version(id);
        match &mut version.provisioning {
            Some(provisioning) => provisioning.request(requested),
            none => *none = Some(Provisioning::new(requested, settle_ns, age_ns, now_ns)),
        }
        let per_s = requested.saturating_mul(REQUESTS_PER_CONCURRENCY);
        version.requests.resize(per_s, per_s, now_ns);
        let view = self.provisioned_of(id).expect("it was set above");
        let mut actions = Vec::new();
        self.provide(now_ns, &mut actions);
        Ok((view, actions))
    }

    /// Gives provisioned concurrency up. `None`: there was none.
    pub fn deprovision(&mut self, now_ns: u64, id: VersionId) -> Option<Vec<Action>> {
        self.versions.get_mut(&id)?.provisioning.take()?;
        let mut actions = Vec::new();
        for env in self.envs_of(id) {
            if self.slots[&env].is_provisioned() {
                self.dismiss(now_ns, env, &mut actions);
            }
        }
        Some(actions)
    }

    /// Provisioned concurrency of a function's versions but one.
    fn claimed_by(&self, function: &str, but: Option<VersionId>) -> u32 {
        let of_function = self.versions.iter().filter(|(id, v)| v.function == function && Some(**id) != but);
        of_function.map(|(_, version)| version.claim()).sum()
    }

    /// What all other functions have reserved or, without a reservation, provisioned.
    fn claimed_by_others(&self, function: &str) -> u32 {
        let others = self.functions.iter().filter(|(name, _)| *name != function);
        others.map(|(name, f)| f.reserved.unwrap_or_else(|| self.claimed_by(name, None))).sum()
    }
}
