//! The envs of all functions: performs what `model::concurrency` decides.
//!
//! Idle envs stand here, invocations that wait for one as well; every decision is made under one lock that is never held across a wait.
//! What takes time (making, initialising, invoking, ending an env) runs in a task of its own and comes back with one fact.

use crate::Error;
use crate::answer::Answer;
use crate::deployed::Deployed;
use crate::env::Env;
use crate::invoke::{self, Arrival, Outcome};
use crate::metrics::{self, Began, Book};
use crate::shared::Shared;
use danki_model::concurrency::{
    Action, EndReason, Fleet, Input, Rules, StatusReason, Throttle, Ticket, VersionId,
};
use danki_model::lifecycle::Failure;
use danki_model::{EnvId, InitializationType};
use danki_record::{EnvEvent, EnvWhat, Event, Refused, Span};
use danki_sys::clock;
use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio::task::JoinHandle;

mod views;

pub use views::EnvView;

/// Provisioned envs that initialise at once on this machine.
const PREPARING_MAX: usize = 16;
/// Longest sleep between two looks at the time.
const LOOK: Duration = Duration::from_millis(500);

/// A deployed version.
pub(crate) struct Version {
    pub id: VersionId,
    pub deployed: Arc<Deployed>,
    pub retired: watch::Sender<bool>,
}

/// An invocation that has no env yet.
pub(crate) struct Waiting {
    pub version: Arc<Version>,
    pub arrival: Arrival,
    pub answer: oneshot::Sender<Answer>,
    pub outcome: oneshot::Sender<Result<Outcome, Error>>,
    pub waited: bool,
}

pub(crate) struct Yard {
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// Something is due sooner than was thought.
    sooner: Notify,
    /// An env is gone, or an allocation has moved on.
    moved: Notify,
    preparing: Semaphore,
    pub metrics: Book,
}

struct State {
    fleet: Fleet,
    versions: HashMap<VersionId, Arc<Version>>,
    resting: HashMap<EnvId, Env>,
    waiting: HashMap<Ticket, Waiting>,
    last_ticket: u64,
    /// When the time is looked at next.
    due_ns: u64,
}

impl Yard {
    pub fn new(shared: Arc<Shared>) -> Arc<Yard> {
        let config = &shared.config;
        let scaled = |time: Duration| ns(time.div_f64(config.time_scale));
        let rules = Rules {
            account_limit: config.account_limit,
            max_envs: config.max_envs,
            idle_ttl_ns: scaled(config.idle_ttl),
            settle_ns: scaled(config.pc_settle),
            provisioned_age_ns: scaled(config.pc_max_age),
        };
        let state = State {
            fleet: Fleet::new(rules, clock::monotonic_ns()),
            versions: HashMap::new(),
            resting: HashMap::new(),
            waiting: HashMap::new(),
            last_ticket: 0,
            due_ns: u64::MAX,
        };
        let (sooner, moved) = (Notify::new(), Notify::new());
        Arc::new(Yard {
            shared,
            state: Mutex::new(state),
            sooner,
            moved,
            preparing: Semaphore::new(PREPARING_MAX),
            metrics: Book::default(),
        })
    }

    /// Looks at the time whenever something is due; for ever.
    pub async fn watch(self: Arc<Self>) {
        loop {
            let due_ns = {
                let mut state = self.lock();
                state.due_ns = state.fleet.wake_ns().unwrap_or(u64::MAX);
                state.due_ns
            };
            let left = Duration::from_nanos(due_ns.saturating_sub(clock::monotonic_ns()));
            tokio::select! {
                () = tokio::time::sleep(left.min(LOOK)) => {}
                () = self.sooner.notified() => {}
            }
            drop(self.tell(Input::Tick));
        }
    }

    pub fn deploy(&self, deployed: Deployed) -> Arc<Version> {
        let mut state = self.lock();
        let id = state.fleet.deploy(&deployed.spec.name, clock::monotonic_ns());
        let version = Version { id, deployed: Arc::new(deployed), retired: watch::Sender::new(false) };
        let version = Arc::new(version);
        state.versions.insert(id, Arc::clone(&version));
        version
    }

    /// Places an invocation. An error: it is not taken, and nothing has run.
    pub fn arrive(self: &Arc<Self>, waiting: Waiting) -> Result<(), Error> {
        let forced = waiting.arrival.call.forced.map(crate::call::Forced::rule).transpose()?;
        let asynchronous = waiting.arrival.call.asynchronous;
        let (version, now_ns) = (waiting.version.id, clock::monotonic_ns());
        let mut state = self.lock();
        state.last_ticket += 1;
        let ticket = Ticket(state.last_ticket);
        state.waiting.insert(ticket, waiting);
        let actions = state.fleet.step(now_ns, Input::Arrive { ticket, version, forced, asynchronous });
        let refusal = actions.iter().find_map(|action| match action {
            Action::Throttle(refused, reason) if *refused == ticket => Some(Error::Throttled(*reason)),
            Action::Fail(refused) if *refused == ticket => Some(Error::Stopped),
            _ => None,
        });
        drop(self.perform(&mut state, actions));
        if let Some(waiting) = state.waiting.get_mut(&ticket) {
            waiting.waited = true;
        }
        self.look_sooner(&mut state);
        refusal.map_or(Ok(()), Err)
    }

    /// Ends idle envs of a version.
    pub async fn expire(self: &Arc<Self>, version: VersionId, ttl: Duration) -> usize {
        let ends = self.tell(Input::Expire(version, ns(ttl)));
        let count = ends.len();
        for end in ends {
            end.await.ok();
        }
        count
    }

    /// Takes no more invocations of a version and ends its envs, waiting for busy ones no longer than `patience`.
    pub async fn retire(self: &Arc<Self>, version: &Version, patience: Duration) {
        version.retired.send_replace(true);
        drop(self.tell(Input::Retire(version.id)));
        self.until(patience, |fleet| fleet.count(version.id) == 0).await;
        self.lock().versions.remove(&version.id);
    }

    pub fn versions(&self) -> Vec<Arc<Version>> {
        self.lock().versions.values().cloned().collect()
    }

    /// Waits until something holds.
    pub async fn until(&self, patience: Duration, holds: impl Fn(&Fleet) -> bool) {
        let late = tokio::time::sleep(patience);
        tokio::pin!(late);
        loop {
            let moved = self.moved.notified();
            if holds(&self.lock().fleet) {
                return;
            }
            tokio::select! {
                () = moved => {}
                () = &mut late => return,
            }
        }
    }

    /// Tells a fact and does what follows from it. Returns the envs' ends.
    fn tell(self: &Arc<Self>, input: Input) -> Vec<JoinHandle<()>> {
        let mut state = self.lock();
        let actions = state.fleet.step(clock::monotonic_ns(), input);
        let ends = self.perform(&mut state, actions);
        self.look_sooner(&mut state);
        drop(state);
        self.moved.notify_waiters();
        ends
    }

    fn look_sooner(&self, state: &mut State) {
        if state.fleet.wake_ns().is_some_and(|wake_ns| wake_ns < state.due_ns) {
            self.sooner.notify_one();
        }
    }

    fn perform(self: &Arc<Self>, state: &mut State, actions: Vec<Action>) -> Vec<JoinHandle<()>> {
        let mut ends = Vec::new();
        for action in actions {
            match action {
                Action::Run { ticket, env, new, spillover } => self.run(state, ticket, env, new, spillover),
                Action::Prepare { env, version, initialization } => {
                    let version = state.versions.get(&version).cloned().expect("it has envs: it is deployed");
                    tokio::spawn(Arc::clone(self).prepare(version, env, initialization));
                }
                Action::Throttle(ticket, reason) => self.throttle(state, ticket, reason),
                // Whoever waits for the outcome sees that the sender is gone.
                Action::Fail(ticket) => drop(state.waiting.remove(&ticket)),
                Action::End(env, reason) => {
                    let env = state.resting.remove(&env).expect("only envs that rest end");
                    ends.push(tokio::spawn(Arc::clone(self).end(env, words(reason))));
                }
            }
        }
        ends
    }

    fn run(self: &Arc<Self>, state: &mut State, ticket: Ticket, env: EnvId, new: bool, spillover: bool) {
        let mut waiting = state.waiting.remove(&ticket).expect("an invocation runs once");
        let found = (!new).then(|| state.resting.remove(&env).expect("an env that serves rests before"));
        let provisioned = found
            .as_ref()
            .is_some_and(|env| env.initialization == InitializationType::ProvisionedConcurrency);
        let deployed = &waiting.version.deployed;
        let began = Began {
            provisioned,
            spillover,
            account: state.fleet.account(),
            function: state.fleet.held(&deployed.spec.name),
            version: state.fleet.held_by(waiting.version.id),
        };
        self.metrics.began(&metrics::subject(deployed, &waiting.arrival.call), &began);
        if waiting.waited {
            // It was asked to wait: that is no lateness.
            waiting.arrival.dispatched_ns = clock::monotonic_ns();
            waiting.arrival.call.intended_ns = waiting.arrival.dispatched_ns;
        }
        tokio::spawn(Arc::clone(self).serve(waiting, env, found));
    }

    async fn serve(self: Arc<Self>, waiting: Waiting, id: EnvId, found: Option<Env>) {
        let Waiting { version, arrival, answer, outcome: mut outcome_to, .. } = waiting;
        let mut retired = version.retired.subscribe();
        let subject = metrics::subject(&version.deployed, &arrival.call);
        let (env, outcome) = {
            let abandoned = pin!(async {
                outcome_to.closed().await;
                retired.wait_for(|retired| *retired).await.ok();
            });
            self.invoke(&version, id, found, arrival, answer, abandoned).await
        };
        if let Ok(outcome) = &outcome {
            self.metrics.ended(&subject, outcome);
        }
        match env {
            Some(env) => self.rest(env, Input::Freed(id)),
            None => drop(self.tell(Input::Lost(id))),
        }
        outcome_to.send(outcome).ok();
    }

    /// The env is returned if it is of further use.
    async fn invoke(
        &self,
        version: &Version,
        id: EnvId,
        found: Option<Env>,
        arrival: Arrival,
        answer: oneshot::Sender<Answer>,
        abandoned: Pin<&mut (dyn Future<Output = ()> + Send)>,
    ) -> (Option<Env>, Result<Outcome, Error>) {
        let from_ns = arrival.dispatched_ns;
        let created = match found {
            Some(env) => Ok((env, None)),
            None => self
                .create(version, id, InitializationType::OnDemand, from_ns)
                .await
                .map(|env| (env, Some(Span { from_ns, to_ns: clock::monotonic_ns() }))),
        };
        let (mut env, created) = match created {
            Ok(created) => created,
            Err(error) => return (None, Err(error)),
        };
        match invoke::serve(&mut env, arrival, created, answer, abandoned).await {
            Ok(outcome) => (Some(env), Ok(outcome)),
            Err(error) => {
                env.end("failure").await;
                (None, Err(error))
            }
        }
    }

    async fn create(
        &self,
        version: &Version,
        id: EnvId,
        initialization: InitializationType,
        at_ns: u64,
    ) -> Result<Env, Error> {
        let deployed = Arc::clone(&version.deployed);
        let variant = deployed.variant.clone();
        let env = Env::create(Arc::clone(&self.shared), deployed, id, initialization).await?;
        let what = EnvWhat::Creating { initialization };
        self.shared.recorder.record(Event::Env(EnvEvent { at_ns, env: id, variant, what }));
        Ok(env)
    }

    /// Makes and initialises an env ahead of any invocation.
    async fn prepare(self: Arc<Self>, version: Arc<Version>, id: EnvId, initialization: InitializationType) {
        let provisioned = initialization == InitializationType::ProvisionedConcurrency;
        let _permit = if provisioned { self.preparing.acquire().await.ok() } else { None };
        let mut retired = version.retired.subscribe();
        let created = self.create(&version, id, initialization, clock::monotonic_ns()).await;
        let Ok(mut env) = created.inspect_err(|error| self.unprepared(&version, error)) else {
            return drop(self.tell(Input::Lost(id)));
        };
        let abandoned = pin!(async { drop(retired.wait_for(|retired| *retired).await) });
        match invoke::prepare(&mut env, abandoned).await {
            Ok(failure) => {
                let failure = failure.map(status_reason);
                self.rest(env, Input::Prepared { env: id, failure });
            }
            Err(error) => {
                self.unprepared(&version, &error);
                env.end("failure").await;
                drop(self.tell(Input::Lost(id)));
            }
        }
    }

    /// Nobody waits for this env who could be told.
    fn unprepared(&self, version: &Version, error: &Error) {
        if !matches!(error, Error::Stopped) {
            let name = &version.deployed.spec.name;
            self.shared.caveat(format!("an environment of {name} could not be made ahead: {error}"));
        }
    }

    fn throttle(&self, state: &mut State, ticket: Ticket, reason: Throttle) {
        let waiting = state.waiting.remove(&ticket).expect("what is throttled has just arrived");
        let deployed = &waiting.version.deployed;
        self.metrics.throttled(&metrics::subject(deployed, &waiting.arrival.call));
        self.shared.recorder.record(Event::Refused(Refused {
            at_ns: waiting.arrival.dispatched_ns,
            variant: deployed.variant.clone(),
            index: waiting.arrival.call.index,
            reason: reason.to_string(),
        }));
    }

    fn rest(self: &Arc<Self>, env: Env, input: Input) {
        self.lock().resting.insert(env.id, env);
        drop(self.tell(input));
    }

    async fn end(self: Arc<Self>, env: Env, reason: &'static str) {
        let id = env.id;
        env.end(reason).await;
        drop(self.tell(Input::Lost(id)));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn status_reason(failure: Failure) -> StatusReason {
    match failure {
        Failure::Timeout => StatusReason::InitTimeout,
        _ => StatusReason::InitFailure,
    }
}

/// As the record has it.
fn words(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Spindown => "spindown",
        EndReason::Evicted => "evicted",
        EndReason::Surplus => "deprovisioned",
        EndReason::Retired => "run-end",
    }
}

/// A duration as ns; the longest is 584 years.
pub(crate) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
