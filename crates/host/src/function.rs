//! A deployed function and its environments: which one serves an invocation, and when one is created or ended.

use crate::Error;
use crate::answer::{Answer, Wants};
use crate::deployed::Deployed;
use crate::env::Env;
use crate::invoke::{self, Arrival, Outcome};
use crate::shared::Shared;
use bytes::Bytes;
use danki_model::{InitializationType, RequestId};
use danki_record::{EnvEvent, EnvWhat, Event, Span};
use danki_sys::clock;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};

/// An invocation as the caller wants it.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The event.
    pub payload: Bytes,
    /// Ordinal within the variant.
    pub index: u32,
    /// When the schedule wanted it sent, ns of the monotonic clock.
    pub intended_ns: u64,
    /// What the caller says of itself.
    pub caller: Caller,
    /// How the caller takes the answer.
    pub wants: Wants,
}

/// What an invocation's caller says besides the event; all of it may be absent.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The id it has already: retries of an asynchronous invocation keep theirs.
    pub request_id: Option<RequestId>,
    /// The ARN that was invoked, with its qualifier; the function's own if absent.
    pub function_arn: Option<String>,
    /// `X-Amzn-Trace-Id`; one that is not sampled if absent.
    pub trace_id: Option<String>,
    /// The client context, JSON.
    pub client_context: Option<String>,
    /// The Cognito identity, JSON.
    pub cognito_identity: Option<String>,
}

/// An invocation under way: the answer comes first, the outcome when the env is free again.
pub struct Pending {
    /// What the caller gets.
    pub answer: oneshot::Receiver<Answer>,
    /// All that is known when the invocation is finished.
    pub outcome: oneshot::Receiver<Result<Outcome, Error>>,
}

/// A deployed function; cheap to clone.
#[derive(Clone)]
pub struct Function {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    deployed: Arc<Deployed>,
    /// Idle envs, most recently used last.
    idle: Mutex<Vec<Env>>,
    /// Envs that exist, idle or busy.
    count: AtomicUsize,
    retired: watch::Sender<bool>,
    /// An env is gone.
    gone: Notify,
    ids: Mutex<SmallRng>,
}

impl Function {
    pub(crate) fn new(shared: Arc<Shared>, deployed: Deployed) -> Function {
        let ids = Mutex::new(SmallRng::seed_from_u64(shared.next_seed()));
        let inner = Inner {
            shared,
            deployed: Arc::new(deployed),
            idle: Mutex::default(),
            count: AtomicUsize::new(0),
            retired: watch::Sender::new(false),
            gone: Notify::new(),
            ids,
        };
        Function { inner: Arc::new(inner) }
    }

    /// What was deployed.
    pub fn deployed(&self) -> &Deployed {
        &self.inner.deployed
    }

    /// Invokes and waits until the env is free again.
    pub async fn invoke(&self, call: Call) -> Result<Outcome, Error> {
        let pending = self.begin(call)?;
        pending.outcome.await.map_err(|_| Error::Stopped)?
    }

    /// Invokes; the most recently used idle env serves, or a new one. Dropping the result does not end the invocation,
    /// unless the function retires.
    pub fn begin(&self, call: Call) -> Result<Pending, Error> {
        let dispatched_ns = clock::monotonic_ns();
        if *self.inner.retired.borrow() {
            return Err(Error::Stopped);
        }
        let idle = self.inner.idle().pop();
        if idle.is_none() {
            self.inner.reserve()?;
        }
        let (answer_to, answer) = oneshot::channel();
        let (mut outcome_to, outcome) = oneshot::channel();
        let inner = Arc::clone(&self.inner);
        let request_id = call.caller.request_id.clone().unwrap_or_else(|| inner.next_request_id());
        let arrival = Arrival { request_id, call, dispatched_ns };
        tokio::spawn(async move {
            let mut retired = inner.retired.subscribe();
            let outcome = {
                let abandoned = pin!(async {
                    outcome_to.closed().await;
                    retired.wait_for(|retired| *retired).await.ok();
                });
                inner.serve(idle, arrival, answer_to, abandoned).await
            };
            outcome_to.send(outcome).ok();
        });
        Ok(Pending { answer, outcome })
    }

    /// Ends idle envs that have been idle for longer than `ttl`; returns how many.
    pub async fn expire(&self, ttl: Duration) -> usize {
        let oldest = clock::monotonic_ns().saturating_sub(u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX));
        let expired: Vec<Env> = {
            let mut idle = self.inner.idle();
            let (keep, expired) = idle.drain(..).partition(|env| env.idle_since_ns > oldest);
            *idle = keep;
            expired
        };
        let count = expired.len();
        self.inner.end_all(expired, "spindown").await;
        count
    }

    /// Takes no more invocations and ends all envs. Waits at most 15 s for those that are busy; does not wait for those whose caller
    /// has dropped the result.
    pub async fn retire(&self) {
        self.inner.retired.send_replace(true);
        let patience = tokio::time::sleep(Duration::from_secs(15));
        tokio::pin!(patience);
        loop {
            let gone = self.inner.gone.notified();
            let idle = std::mem::take(&mut *self.inner.idle());
            self.inner.end_all(idle, "run-end").await;
            if self.inner.count.load(Ordering::Acquire) == 0 {
                return;
            }
            tokio::select! {
                () = gone => {}
                () = &mut patience => return,
            }
        }
    }

    /// Envs that exist now.
    pub fn envs(&self) -> usize {
        self.inner.count.load(Ordering::Acquire)
    }
}

impl Inner {
    fn idle(&self) -> MutexGuard<'_, Vec<Env>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one env more, unless as many as allowed exist.
    fn reserve(&self) -> Result<(), Error> {
        let max = self.shared.config.max_envs;
        let more = |count: usize| (count < max).then_some(count + 1);
        self.count
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .map(drop)
            .map_err(|_| Error::Throttled(max))
    }

    fn next_request_id(&self) -> RequestId {
        RequestId::from_bits(self.ids.lock().unwrap_or_else(PoisonError::into_inner).random())
    }

    async fn serve(
        self: &Arc<Self>,
        idle: Option<Env>,
        arrival: Arrival,
        answer: oneshot::Sender<Answer>,
        abandoned: Pin<&mut (dyn Future<Output = ()> + Send)>,
    ) -> Result<Outcome, Error> {
        let (mut env, created) = match idle {
            Some(env) => (env, None),
            None => self.create(arrival.dispatched_ns).await?,
        };
        let served = invoke::serve(&mut env, arrival, created, answer, abandoned).await;
        match served {
            Ok(outcome) => {
                self.park(env).await;
                Ok(outcome)
            }
            Err(error) => {
                self.end_all(vec![env], "failure").await;
                Err(error)
            }
        }
    }

    async fn create(&self, dispatched_ns: u64) -> Result<(Env, Option<Span>), Error> {
        let initialization = InitializationType::OnDemand;
        let id = self.shared.next_env();
        let created =
            Env::create(Arc::clone(&self.shared), Arc::clone(&self.deployed), id, initialization).await;
        let env = created.inspect_err(|_| self.one_gone())?;
        let what = EnvWhat::Creating { initialization };
        let variant = self.deployed.variant.clone();
        self.shared.recorder.record(Event::Env(EnvEvent {
            at_ns: dispatched_ns,
            env: env.id,
            variant,
            what,
        }));
        Ok((env, Some(Span { from_ns: dispatched_ns, to_ns: clock::monotonic_ns() })))
    }

    /// Makes an env available again, or ends it if the function is retired.
    async fn park(&self, mut env: Env) {
        env.idle_since_ns = clock::monotonic_ns();
        if *self.retired.borrow() {
            return self.end_all(vec![env], "run-end").await;
        }
        self.idle().push(env);
        self.gone.notify_waiters();
    }

    /// Ends envs side by side: each waits for the kernel more than for a CPU.
    async fn end_all(&self, envs: Vec<Env>, reason: &'static str) {
        let ends: Vec<_> = envs.into_iter().map(|env| tokio::spawn(env.end(reason))).collect();
        for end in ends {
            end.await.ok();
            self.one_gone();
        }
    }

    fn one_gone(&self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        self.gone.notify_waiters();
    }
}
