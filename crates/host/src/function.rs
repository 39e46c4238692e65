//! A deployed version of a function, as those who invoke it hold it.

use crate::Error;
use crate::call::{Call, Pending};
use crate::deployed::Deployed;
use crate::invoke::{Arrival, Outcome};
use crate::yard::{Version, Waiting, Yard};
use danki_model::concurrency::{ProvisionStatus, Provisioned, Refused};
use danki_model::{RequestId, log};
use danki_sys::clock;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Busy envs of a retired function are waited for so long.
const PATIENCE: Duration = Duration::from_secs(15);
/// Longest allocation: environments at the bounded rate, each with the longest init.
const ALLOCATION_MAX: Duration = Duration::from_secs(3_600);

/// A deployed function; cheap to clone.
#[derive(Clone)]
pub struct Function {
    yard: Arc<Yard>,
    version: Arc<Version>,
    ids: Arc<Mutex<SmallRng>>,
}

impl Function {
    pub(crate) fn new(yard: Arc<Yard>, version: Arc<Version>, seed: u64) -> Function {
        Function { yard, version, ids: Arc::new(Mutex::new(SmallRng::seed_from_u64(seed))) }
    }

    /// What was deployed.
    pub fn deployed(&self) -> &Deployed {
        &self.version.deployed
    }

    /// Invokes and waits until the env is free again.
    pub async fn invoke(&self, call: Call) -> Result<Outcome, Error> {
        let pending = self.begin(call)?;
        pending.outcome.await.map_err(|_| Error::Stopped)?
    }

    /// Invokes, as concurrency allows; a throttle is told before anything runs. Dropping the result does not end the invocation,
    /// unless the function retires.
    pub fn begin(&self, call: Call) -> Result<Pending, Error> {
        let dispatched_ns = clock::monotonic_ns();
        let request_id = call.caller.request_id.clone().unwrap_or_else(|| self.next_request_id());
        let (answer_to, answer) = oneshot::channel();
        let (outcome_to, outcome) = oneshot::channel();
        self.yard.arrive(Waiting {
            version: Arc::clone(&self.version),
            arrival: Arrival { request_id, call, dispatched_ns },
            answer: answer_to,
            outcome: outcome_to,
            waited: false,
        })?;
        Ok(Pending { answer, outcome })
    }

    /// Ends idle on-demand envs that have been idle for longer than `ttl`; returns how many.
    pub async fn expire(&self, ttl: Duration) -> usize {
        self.yard.expire(self.version.id, ttl).await
    }

    /// Takes no more invocations and ends all envs. Waits at most 15 s for those that are busy; does not wait for those whose caller
    /// has dropped the result.
    pub async fn retire(&self) {
        self.yard.retire(&self.version, PATIENCE).await;
    }

    /// Envs that exist now.
    pub fn envs(&self) -> usize {
        self.yard.count(self.version.id)
    }

    /// Asks for provisioned concurrency, or for another amount of it. Envs begin to initialise at once. Must be
    /// called on a tokio runtime, as all that begins work.
    pub fn provision(&self, requested: u32) -> Result<Provisioned, Refused> {
        if self.version.deployed.version == log::LATEST {
            return Err(Refused::Latest);
        }
        self.yard.provision(self.version.id, requested)
    }

    /// How far provisioned concurrency is; `None` if there is none.
    pub fn provisioned(&self) -> Option<Provisioned> {
        self.yard.provisioned(self.version.id)
    }

    /// Waits until provisioned concurrency is READY or has failed; `None` if there is none.
    pub async fn provisioned_settled(&self) -> Option<Provisioned> {
        let in_progress = |p: Provisioned| p.status == ProvisionStatus::InProgress;
        let settled = |fleet: &danki_model::concurrency::Fleet| {
            !fleet.provisioned_of(self.version.id).is_some_and(in_progress)
        };
        self.yard.until(ALLOCATION_MAX, settled).await;
        self.provisioned()
    }

    /// Gives provisioned concurrency up; `false` if there was none.
    pub fn deprovision(&self) -> bool {
        self.yard.deprovision(self.version.id)
    }

    fn next_request_id(&self) -> RequestId {
        RequestId::from_bits(self.ids.lock().unwrap_or_else(PoisonError::into_inner).random())
    }
}
