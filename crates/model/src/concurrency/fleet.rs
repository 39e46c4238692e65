//! All environments of an account: who gets one, who is throttled, which are made and which end.
//!
//! The driver performs [`Action`]s in order and reports what comes of them as [`Input`]s. Every admitted invocation holds exactly one
//! environment from its [`Input::Arrive`] until [`Input::Freed`] or [`Input::Lost`]; so concurrency is the number of environments that
//! hold one.

use super::admission::Arrival;
use super::slot::{Slot, SlotState, SlotView};
use super::{
    Bucket, Provisioning, REQUESTS_PER_CONCURRENCY, SCALING_BURST, SCALING_PER_S, StatusReason, Throttle,
};
use crate::{EnvId, InitializationType};
use std::collections::{BTreeMap, BTreeSet};

/// An invocation on its way; unique within a fleet's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A version of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(pub u32);

/// In which state an invocation shall find its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// A new one, although one is idle.
    Cold,
    /// An idle one; it is made and initialised first if there is none.
    Warm,
    /// As if the idle one had been idle for too long: it ends, a new one serves.
    Expired,
    /// One that has been idle for at least so many ns.
    IdleGap(u64),
}

/// What the fleet is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Somebody invokes.
    Arrive {
        /// The invocation.
        ticket: Ticket,
        /// What is invoked.
        version: VersionId,
        /// Which environment it wants.
        forced: Option<Forced>,
        /// Asynchronous: no request rate applies.
        asynchronous: bool,
    },
    /// After [`Action::Prepare`]: it is initialised and rests, or why not.
    Prepared {
        /// Which.
        env: EnvId,
        /// Why its init failed, if it did. Its sandbox is there all the same.
        failure: Option<StatusReason>,
    },
    /// Its invocation has ended and it rests.
    Freed(EnvId),
    /// It could not be made, is broken, or has ended after [`Action::End`].
    Lost(EnvId),
    /// Take no more invocations of this version and end its environments.
    Retire(VersionId),
    /// End environments of a version that have been idle for as long, in ns.
    Expire(VersionId, u64),
    /// Time has passed, see [`Fleet::wake_ns`].
    Tick,
}

/// Why an environment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Idle for too long, or forced to be.
    Spindown,
    /// Room for another one.
    Evicted,
    /// Provisioned concurrency does not need it any more.
    Surplus,
    /// Its version is retired.
    Retired,
}

/// What the driver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run the invocation on this environment; then [`Input::Freed`] or [`Input::Lost`].
    Run {
        /// The invocation.
        ticket: Ticket,
        /// Where.
        env: EnvId,
        /// It has to be made first; on demand.
        new: bool,
        /// The version has provisioned concurrency that is usable, but none was free.
        spillover: bool,
    },
    /// Make this environment and initialise it; then [`Input::Prepared`] or [`Input::Lost`].
    Prepare {
        /// Which.
        env: EnvId,
        /// Of which version.
        version: VersionId,
        /// On whose behalf.
        initialization: InitializationType,
    },
    /// Tell the caller that the invocation is not taken.
    Throttle(Ticket, Throttle),
    /// Tell the caller that the environment that it waited for is lost.
    Fail(Ticket),
    /// End this environment, which is idle; then [`Input::Lost`].
    End(EnvId, EndReason),
}

/// What a fleet goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Concurrency of the account.
    pub account_limit: u32,
    /// Environments that this machine may hold, idle ones included.
    pub max_envs: usize,
    /// An on-demand environment ends when idle for so long.
    pub idle_ttl_ns: u64,
    /// Between the last init of an allocation and READY.
    pub settle_ns: u64,
    /// A provisioned environment is replaced at this age.
    pub provisioned_age_ns: u64,
}

/// The environments of an account. See the module's header.
#[derive(Clone, Debug)]
pub struct Fleet {
    pub(super) rules: Rules,
    pub(super) functions: BTreeMap<String, Function>,
    pub(super) versions: BTreeMap<VersionId, Version>,
    pub(super) slots: BTreeMap<EnvId, Slot>,
    /// Environments kept for an invocation, by the time at which it may begin.
    pub(super) waiting: BTreeSet<(u64, EnvId)>,
    /// Requests per second of functions without a reservation.
    pub(super) requests: Bucket,
    last_env: u32,
    last_version: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Function {
    pub reserved: Option<u32>,
    /// Requests per second; of use only with a reservation.
    pub requests: Bucket,
    /// New environments.
    pub scaling: Bucket,
}

#[derive(Clone, Debug)]
pub(super) struct Version {
    pub function: String,
    pub retired: bool,
    pub provisioning: Option<Provisioning>,
    /// Requests per second that provisioned environments take.
    pub requests: Bucket,
    /// Idle environments that may serve, most recently used last.
    pub on_demand: Pool,
    /// The provisioned ones.
    pub provisioned: Pool,
}

/// Environments of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    pub idle: Vec<EnvId>,
    /// Environments that hold an invocation.
    pub holding: u32,
}

impl Version {
    pub fn pool(&mut self, initialization: InitializationType) -> &mut Pool {
        match initialization {
            InitializationType::OnDemand => &mut self.on_demand,
            InitializationType::ProvisionedConcurrency => &mut self.provisioned,
        }
    }

    /// What provisioned concurrency takes of the function's or the account's concurrency, used or not.
    pub fn claim(&self) -> u32 {
        let requested = self.provisioning.as_ref().map_or(0, |p| p.view().requested);
        requested.max(self.provisioned.holding)
    }
}

impl Fleet {
    /// No function yet.
    pub fn new(rules: Rules, now_ns: u64) -> Fleet {
        let per_s = rules.account_limit.saturating_mul(REQUESTS_PER_CONCURRENCY);
        Fleet {
            rules,
            functions: BTreeMap::new(),
            versions: BTreeMap::new(),
            slots: BTreeMap::new(),
            waiting: BTreeSet::new(),
            requests: Bucket::full(per_s, per_s, now_ns),
            last_env: 0,
            last_version: 0,
        }
    }

    /// One more version of a function.
    pub fn deploy(&mut self, function: &str, now_ns: u64) -> VersionId {
        self.function(function, now_ns);
        self.last_version += 1;
        let id = VersionId(self.last_version);
        let version = Version {
            function: function.to_owned(),
            retired: false,
            provisioning: None,
            requests: Bucket::full(0, 0, now_ns),
            on_demand: Pool::default(),
            provisioned: Pool::default(),
        };
        self.versions.insert(id, version);
        id
    }

    /// Takes a fact, returns what to do about it.
    pub fn step(&mut self, now_ns: u64, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        match input {
            Input::Arrive { ticket, version, forced, asynchronous } => {
                let arrival = Arrival { ticket, version, forced, asynchronous };
                self.arrive(now_ns, arrival, &mut actions);
                return actions;
            }
            Input::Prepared { env, failure } => self.prepared(now_ns, env, failure, &mut actions),
            Input::Freed(env) => self.freed(now_ns, env, &mut actions),
            Input::Lost(env) => self.lost(now_ns, env, &mut actions),
            Input::Retire(version) => self.retire(now_ns, version, &mut actions),
            Input::Expire(version, ttl_ns) => self.expire(now_ns, version, ttl_ns, &mut actions),
            Input::Tick => self.tick(now_ns, &mut actions),
        }
        self.provide(now_ns, &mut actions);
        actions
    }

    /// When [`Input::Tick`] is due, if nothing happens before.
    pub fn wake_ns(&self) -> Option<u64> {
        let of_version = |version: &Version| {
            let expiry = version.on_demand.idle.first().map(|env| self.slots[env].since_ns);
            let expiry = expiry.map(|since| since.saturating_add(self.rules.idle_ttl_ns));
            [expiry, version.provisioning.as_ref().and_then(Provisioning::wake_ns)]
                .into_iter()
                .flatten()
                .min()
        };
        let waiting = self.waiting.first().map(|(until_ns, _)| *until_ns);
        self.versions.values().filter_map(of_version).chain(waiting).min()
    }

    /// Every environment that there is.
    pub fn envs(&self) -> impl Iterator<Item = SlotView> + '_ {
        self.slots.iter().map(|(env, slot)| SlotView {
            env: *env,
            version: slot.version,
            initialization: slot.initialization,
            state: slot.state,
            usable: !slot.is_provisioned()
                || self.versions[&slot.version].provisioning.as_ref().is_some_and(|p| p.is_usable(*env)),
            since_ns: slot.since_ns,
        })
    }

    /// Environments of a version.
    pub fn count(&self, version: VersionId) -> usize {
        self.slots.values().filter(|slot| slot.version == version).count()
    }

    pub(super) fn function(&mut self, name: &str, now_ns: u64) -> &mut Function {
        self.functions.entry(name.to_owned()).or_insert_with(|| Function {
            reserved: None,
            requests: Bucket::full(0, 0, now_ns),
            scaling: Bucket::full(SCALING_PER_S, SCALING_BURST, now_ns),
        })
    }

    pub(super) fn version(&mut self, id: VersionId) -> &mut Version {
        self.versions
            .get_mut(&id)
            .expect("a version is forgotten only when it is retired and has no environment")
    }

    /// A retired version without environments is no more.
    pub(super) fn forget(&mut self, id: VersionId) {
        if self.versions.get(&id).is_some_and(|version| version.retired) && self.count(id) == 0 {
            self.versions.remove(&id);
        }
    }

    /// A new environment's place. There must be room.
    pub(super) fn place(
        &mut self,
        now_ns: u64,
        version: VersionId,
        initialization: InitializationType,
        state: SlotState,
    ) -> EnvId {
        self.last_env += 1;
        let env = EnvId(self.last_env);
        let slot = Slot { version, initialization, state, since_ns: now_ns, surplus: false };
        self.version(version).pool(initialization).holding += u32::from(slot.ticket().is_some());
        self.slots.insert(env, slot);
        env
    }

    /// The environment's next state, with all that is counted.
    pub(super) fn become_(&mut self, now_ns: u64, env: EnvId, state: SlotState) {
        let slot = self.slots.get_mut(&env).expect("only environments that exist change");
        let (before, usable) = (slot.clone(), slot.is_provisioned());
        (slot.state, slot.since_ns) = (state, now_ns);
        let holds = slot.ticket().is_some();
        if let SlotState::Waiting { until_ns, .. } = before.state {
            self.waiting.remove(&(until_ns, env));
        }
        if let SlotState::Waiting { until_ns, .. } = state {
            self.waiting.insert((until_ns, env));
        }
        let version = self.version(before.version);
        let may_serve = !usable || version.provisioning.as_ref().is_some_and(|p| p.is_usable(env));
        let pool = version.pool(before.initialization);
        pool.holding = pool.holding + u32::from(holds) - u32::from(before.ticket().is_some());
        if before.state == SlotState::Idle {
            pool.idle.retain(|idle| *idle != env);
        }
        if state == SlotState::Idle && may_serve {
            pool.idle.push(env);
        }
    }

    /// Ends an environment that nobody holds.
    pub(super) fn end(&mut self, now_ns: u64, env: EnvId, reason: EndReason, actions: &mut Vec<Action>) {
        self.become_(now_ns, env, SlotState::Ending);
        actions.push(Action::End(env, reason));
    }

    /// Is there room for one more? An idle environment makes it if need be.
    pub(super) fn make_room(&mut self, now_ns: u64, actions: &mut Vec<Action>) -> bool {
        let live = self.slots.values().filter(|slot| slot.state != SlotState::Ending).count();
        if live < self.rules.max_envs {
            return true;
        }
        let coldest = self.versions.values().filter_map(|version| version.on_demand.idle.first());
        let Some(env) = coldest.min_by_key(|env| self.slots[env].since_ns).copied() else { return false };
        self.end(now_ns, env, EndReason::Evicted, actions);
        true
    }
}
