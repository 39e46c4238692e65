//! Which environment an invocation gets, if any.

use super::fleet::{Action, EndReason, Fleet, Forced, Ticket, Version, VersionId};
use super::slot::{SlotState, Waiter};
use super::{Provisioning, Throttle};
use crate::{EnvId, InitializationType};

/// An invocation that wants in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub ticket: Ticket,
    pub version: VersionId,
    pub forced: Option<Forced>,
    pub asynchronous: bool,
}

impl Fleet {
    pub(super) fn arrive(&mut self, now_ns: u64, arrival: Arrival, actions: &mut Vec<Action>) {
        if self.versions.get(&arrival.version).is_none_or(|version| version.retired) {
            return actions.push(Action::Fail(arrival.ticket));
        }
        if let Err(reason) = self.admit(now_ns, arrival, actions) {
            actions.push(Action::Throttle(arrival.ticket, reason));
        }
    }

    fn admit(&mut self, now_ns: u64, arrival: Arrival, actions: &mut Vec<Action>) -> Result<(), Throttle> {
        self.has_any_room(arrival.version)?;
        if let Some(env) = self.provisioned(now_ns, arrival) {
            self.hold(now_ns, env, arrival, false, actions);
            return Ok(());
        }
        self.has_on_demand_room(arrival.version)?;
        self.takes_request(now_ns, arrival)?;
        let version = self.version(arrival.version);
        let usable = |p: &Provisioning| p.view().available > 0;
        let spillover = version.provisioning.as_ref().is_some_and(usable);
        let idle = version.on_demand.idle.last().copied();
        match (arrival.forced, idle) {
            (None | Some(Forced::Warm | Forced::IdleGap(_)), Some(env)) => {
                self.hold(now_ns, env, arrival, spillover, actions);
            }
            (Some(Forced::Warm | Forced::IdleGap(_)), None) => self.prepare(now_ns, arrival, actions)?,
            (Some(Forced::Expired), Some(env)) => {
                self.end(now_ns, env, EndReason::Spindown, actions);
                self.create(now_ns, arrival, spillover, actions)?;
            }
            (Some(Forced::Cold | Forced::Expired) | None, _) => {
                self.create(now_ns, arrival, spillover, actions)?;
            }
        }
        Ok(())
    }

    /// The hard limits, whichever environment would serve.
    fn has_any_room(&self, version: VersionId) -> Result<(), Throttle> {
        let account = self.account();
        let name = &self.versions[&version].function;
        let running: u32 = self.versions_of(name).map(running).sum();
        match self.functions[name].reserved {
            Some(reserved) if running >= reserved => {
                Err(Throttle::ReservedFunctionConcurrentInvocationLimitExceeded)
            }
            _ if account.concurrent >= account.limit => Err(Throttle::ConcurrentInvocationLimitExceeded),
            _ => Ok(()),
        }
    }

    /// What reservations and provisioned concurrency leave to on-demand environments.
    fn has_on_demand_room(&self, version: VersionId) -> Result<(), Throttle> {
        let name = &self.versions[&version].function;
        if let Some(reserved) = self.functions[name].reserved {
            let used: u32 = self.versions_of(name).map(|v| v.on_demand.holding + v.claim()).sum();
            return if used < reserved {
                Ok(())
            } else {
                Err(Throttle::ReservedFunctionConcurrentInvocationLimitExceeded)
            };
        }
        let unreserved = self.versions.values().filter(|v| self.functions[&v.function].reserved.is_none());
        let used: u32 = unreserved.map(|v| v.on_demand.holding + v.claim()).sum();
        if used < self.account().unreserved {
            Ok(())
        } else {
            Err(Throttle::ConcurrentInvocationLimitExceeded)
        }
    }

    fn takes_request(&mut self, now_ns: u64, arrival: Arrival) -> Result<(), Throttle> {
        if arrival.asynchronous {
            return Ok(());
        }
        let name = self.versions[&arrival.version].function.clone();
        let function = self.function(&name, now_ns);
        let (bucket, reason) = match function.reserved {
            Some(_) => (&mut function.requests, Throttle::ReservedFunctionInvocationRateLimitExceeded),
            None => (&mut self.requests, Throttle::FunctionInvocationRateLimitExceeded),
        };
        if bucket.take(now_ns) { Ok(()) } else { Err(reason) }
    }

    /// An idle provisioned environment, unless a new or an old one is forced or requests come too fast.
    fn provisioned(&mut self, now_ns: u64, arrival: Arrival) -> Option<EnvId> {
        let version = self.version(arrival.version);
        let env = *version.provisioned.idle.last()?;
        let wanted = !matches!(arrival.forced, Some(Forced::Cold | Forced::Expired));
        let taken = wanted && (arrival.asynchronous || version.requests.take(now_ns));
        taken.then_some(env)
    }

    /// An idle environment serves, at once or after having been idle for long enough.
    fn hold(
        &mut self,
        now_ns: u64,
        env: EnvId,
        arrival: Arrival,
        spillover: bool,
        actions: &mut Vec<Action>,
    ) {
        let ticket = arrival.ticket;
        let until_ns = match arrival.forced {
            Some(Forced::IdleGap(gap_ns)) => self.slots[&env].since_ns.saturating_add(gap_ns),
            _ => now_ns,
        };
        if until_ns > now_ns {
            self.become_(now_ns, env, SlotState::Waiting { ticket, until_ns });
        } else {
            self.become_(now_ns, env, SlotState::Busy(ticket));
            actions.push(Action::Run { ticket, env, new: false, spillover });
        }
    }

    fn create(
        &mut self,
        now_ns: u64,
        arrival: Arrival,
        spillover: bool,
        actions: &mut Vec<Action>,
    ) -> Result<(), Throttle> {
        let Arrival { ticket, version, .. } = arrival;
        let env = self.grow(now_ns, version, SlotState::Busy(ticket), actions)?;
        actions.push(Action::Run { ticket, env, new: true, spillover });
        Ok(())
    }

    fn prepare(&mut self, now_ns: u64, arrival: Arrival, actions: &mut Vec<Action>) -> Result<(), Throttle> {
        let Arrival { ticket, version, .. } = arrival;
        let gap_ns = if let Some(Forced::IdleGap(gap_ns)) = arrival.forced { gap_ns } else { 0 };
        let state = SlotState::Preparing(Some(Waiter { ticket, gap_ns }));
        let env = self.grow(now_ns, version, state, actions)?;
        actions.push(Action::Prepare { env, version, initialization: InitializationType::OnDemand });
        Ok(())
    }

    /// One more on-demand environment, no faster than a function may grow.
    fn grow(
        &mut self,
        now_ns: u64,
        version: VersionId,
        state: SlotState,
        actions: &mut Vec<Action>,
    ) -> Result<EnvId, Throttle> {
        let name = self.versions[&version].function.clone();
        let may = self.function(&name, now_ns).scaling.take(now_ns) && self.make_room(now_ns, actions);
        if !may {
            return Err(Throttle::ConcurrentInvocationLimitExceeded);
        }
        Ok(self.place(now_ns, version, InitializationType::OnDemand, state))
    }

    pub(super) fn versions_of<'a>(&'a self, function: &'a str) -> impl Iterator<Item = &'a Version> + 'a {
        self.versions.values().filter(move |version| version.function == function)
    }
}

/// Invocations that a version's environments hold.
pub(super) fn running(version: &Version) -> u32 {
    version.on_demand.holding + version.provisioned.holding
}
