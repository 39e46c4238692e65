//! What environments go through between invocations: they become ready, rest, wait, age and end.

use super::fleet::{Action, EndReason, Fleet, VersionId};
use super::slot::SlotState;
use super::{Need, StatusReason};
use crate::{EnvId, InitializationType};

impl Fleet {
    pub(super) fn prepared(
        &mut self,
        now_ns: u64,
        env: EnvId,
        failure: Option<StatusReason>,
        actions: &mut Vec<Action>,
    ) {
        let Some(slot) = self.slots.get(&env) else { return };
        let SlotState::Preparing(waiter) = slot.state else { return };
        let (version, provisioned) = (slot.version, slot.is_provisioned());
        let unwanted = slot.surplus || self.versions[&version].retired;
        if let Some(waiter) = waiter {
            let (ticket, until_ns) = (waiter.ticket, now_ns.saturating_add(waiter.gap_ns));
            if waiter.gap_ns > 0 && !unwanted {
                return self.become_(now_ns, env, SlotState::Waiting { ticket, until_ns });
            }
            self.become_(now_ns, env, SlotState::Busy(ticket));
            return actions.push(Action::Run { ticket, env, new: false, spillover: false });
        }
        if let (true, Some(provisioning)) = (provisioned, &mut self.version(version).provisioning) {
            match failure {
                None => provisioning.initialised(env, now_ns),
                Some(reason) => provisioning.init_failed(env, reason, now_ns),
            }
        }
        if unwanted || (provisioned && failure.is_some()) {
            return self.end(now_ns, env, EndReason::Surplus, actions);
        }
        self.become_(now_ns, env, SlotState::Idle);
    }

    pub(super) fn freed(&mut self, now_ns: u64, env: EnvId, actions: &mut Vec<Action>) {
        let Some(slot) = self.slots.get(&env) else { return };
        let SlotState::Busy(_) = slot.state else { return };
        let (surplus, retired) = (slot.surplus, self.versions[&slot.version].retired);
        self.become_(now_ns, env, SlotState::Idle);
        if surplus {
            self.end(now_ns, env, EndReason::Surplus, actions);
        } else if retired {
            self.end(now_ns, env, EndReason::Retired, actions);
        }
    }

    pub(super) fn lost(&mut self, now_ns: u64, env: EnvId, actions: &mut Vec<Action>) {
        let Some(slot) = self.slots.get(&env) else { return };
        let (version, state) = (slot.version, slot.state);
        let waits = matches!(state, SlotState::Preparing(_) | SlotState::Waiting { .. });
        let waiter = slot.ticket().filter(|_| waits);
        actions.extend(waiter.map(Action::Fail));
        self.become_(now_ns, env, SlotState::Ending);
        self.slots.remove(&env);
        if let Some(provisioning) = &mut self.version(version).provisioning {
            // What cannot be made is not tried without end.
            if matches!(state, SlotState::Preparing(None)) {
                provisioning.init_failed(env, StatusReason::InitFailure, now_ns);
            }
            provisioning.gone(env);
        }
        self.forget(version);
    }

    pub(super) fn retire(&mut self, now_ns: u64, id: VersionId, actions: &mut Vec<Action>) {
        let Some(version) = self.versions.get_mut(&id) else { return };
        (version.retired, version.provisioning) = (true, None);
        for env in self.envs_of(id) {
            match self.slots[&env].state {
                SlotState::Idle => self.end(now_ns, env, EndReason::Retired, actions),
                SlotState::Waiting { ticket, .. } => {
                    actions.push(Action::Fail(ticket));
                    self.end(now_ns, env, EndReason::Retired, actions);
                }
                SlotState::Preparing(_) | SlotState::Busy(_) | SlotState::Ending => {}
            }
        }
        self.forget(id);
    }

    pub(super) fn expire(&mut self, now_ns: u64, version: VersionId, ttl_ns: u64, actions: &mut Vec<Action>) {
        let Some(version) = self.versions.get(&version) else { return };
        let idle = version.on_demand.idle.clone();
        for env in idle {
            if self.slots[&env].since_ns.saturating_add(ttl_ns) <= now_ns {
                self.end(now_ns, env, EndReason::Spindown, actions);
            }
        }
    }

    pub(super) fn tick(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        let all: Vec<VersionId> = self.versions.keys().copied().collect();
        for version in all {
            self.expire(now_ns, version, self.rules.idle_ttl_ns, actions);
        }
        while let Some((until_ns, env)) = self.waiting.first().copied()
            && until_ns <= now_ns
        {
            let ticket = self.slots[&env].ticket().expect("who waits has a ticket");
            self.become_(now_ns, env, SlotState::Busy(ticket));
            actions.push(Action::Run { ticket, env, new: false, spillover: false });
        }
    }

    /// Gives each version the provisioned environments that it needs now.
    pub(super) fn provide(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        let all = self.versions.iter().filter(|(_, version)| version.provisioning.is_some());
        let all: Vec<VersionId> = all.map(|(id, _)| *id).collect();
        for id in all {
            while let Some(need) = self.need(id, now_ns) {
                match need {
                    Need::Start => {
                        if !self.make_room(now_ns, actions) {
                            break;
                        }
                        self.start_provisioned(now_ns, id, actions);
                    }
                    Need::Usable(env) => self.version(id).provisioned.idle.push(env),
                    Need::Surplus(env) => self.dismiss(now_ns, env, actions),
                }
            }
        }
    }

    fn need(&mut self, version: VersionId, now_ns: u64) -> Option<Need> {
        self.version(version).provisioning.as_mut().and_then(|provisioning| provisioning.need(now_ns))
    }

    fn start_provisioned(&mut self, now_ns: u64, version: VersionId, actions: &mut Vec<Action>) {
        let initialization = InitializationType::ProvisionedConcurrency;
        let env = self.place(now_ns, version, initialization, SlotState::Preparing(None));
        if let Some(provisioning) = &mut self.version(version).provisioning {
            provisioning.started(env);
        }
        actions.push(Action::Prepare { env, version, initialization });
    }

    /// A provisioned environment that is not wanted any more ends now or when it is free.
    pub(super) fn dismiss(&mut self, now_ns: u64, env: EnvId, actions: &mut Vec<Action>) {
        let Some(slot) = self.slots.get_mut(&env) else { return };
        slot.surplus = true;
        if slot.state == SlotState::Idle {
            self.end(now_ns, env, EndReason::Surplus, actions);
        }
    }

    pub(super) fn envs_of(&self, version: VersionId) -> Vec<EnvId> {
        self.slots.iter().filter(|(_, slot)| slot.version == version).map(|(env, _)| *env).collect()
    }
}
