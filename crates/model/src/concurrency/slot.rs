//! One environment as the fleet sees it: to whom it belongs and whether it is free.

use super::{Ticket, VersionId};
use crate::{EnvId, InitializationType};

/// What an environment is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Being made and initialised ahead of any invocation, or for one that wants it initialised first.
    Preparing(Option<Waiter>),
    /// Frozen since its last use.
    Idle,
    /// Runs an invocation, its init included if it has one.
    Busy(Ticket),
    /// Idle, and kept for an invocation that wants it to have been so for longer.
    Waiting {
        /// The invocation.
        ticket: Ticket,
        /// When it may begin.
        until_ns: u64,
    },
    /// Was told to end.
    Ending,
}

/// An invocation that waits for an environment's init.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    pub(super) ticket: Ticket,
    /// How long the environment rests before.
    pub(super) gap_ns: u64,
}

/// An environment, for those who look on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotView {
    /// Which.
    pub env: EnvId,
    /// Of which version.
    pub version: VersionId,
    /// Why it exists.
    pub initialization: InitializationType,
    /// What it does.
    pub state: SlotState,
    /// It may serve: a provisioned one may not before all of them are there.
    pub usable: bool,
    /// Since when it does that, ns.
    pub since_ns: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub version: VersionId,
    pub initialization: InitializationType,
    pub state: SlotState,
    pub since_ns: u64,
    /// It ends as soon as it is free.
    pub surplus: bool,
}

impl Slot {
    pub fn is_provisioned(&self) -> bool {
        self.initialization == InitializationType::ProvisionedConcurrency
    }

    /// The invocation that it has or is kept for.
    pub fn ticket(&self) -> Option<Ticket> {
        match self.state {
            SlotState::Busy(ticket) | SlotState::Waiting { ticket, .. } => Some(ticket),
            SlotState::Preparing(waiter) => waiter.map(|waiter| waiter.ticket),
            SlotState::Idle | SlotState::Ending => None,
        }
    }
}
