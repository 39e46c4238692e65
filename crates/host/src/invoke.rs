//! Drives an env through one invocation: `model::lifecycle` decides, this performs and reports back.

mod phases;

use crate::Error;
use crate::answer::{Answer, StreamEnd, Wants};
use crate::call::Call;
use crate::env::{Env, Happening, Who};
use crate::facts::Facts;
use bytes::Bytes;
use danki_model::lifecycle::{Action, Failure, Input, State, Timer};
use danki_model::shutdown::ShutdownReason;
use danki_model::telemetry::Platform;
use danki_model::{Exit, RequestId, limits};
use danki_record::{Event, Invocation, Span, Start, TraceHeader};
use danki_runtime_api::{ExtensionWhat, Invoke, RuntimeEvent};
use danki_sys::{ExitStatus, clock};
use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Writing an event to a socket buffer takes microseconds; a frozen runtime that has no `/next` pending gets it later.
const HAND_OVER: Duration = Duration::from_millis(5);

/// A finished invocation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All times and figures.
    pub invocation: Invocation,
    /// What the caller got.
    pub payload: Bytes,
    /// `Unhandled` when the function or the platform failed.
    pub function_error: Option<String>,
    /// The last 4 KB of the invocation's log.
    pub log_tail: Vec<String>,
    /// What extensions did after the runtime was done, where there are some.
    pub extensions_ms: Option<f64>,
}

/// A call that has been given its id.
pub(crate) struct Arrival {
    pub request_id: RequestId,
    pub call: Call,
    pub dispatched_ns: u64,
}

/// Serves one invocation on an env that is free. `created` is set for a new env. `abandoned` resolves when nobody wants the outcome
/// any more. An error means that the env is unusable.
pub(crate) async fn serve(
    env: &mut Env,
    arrival: Arrival,
    created: Option<Span>,
    answer: oneshot::Sender<Answer>,
    abandoned: Pin<&mut (dyn Future<Output = ()> + Send)>,
) -> Result<Outcome, Error> {
    // Before anything is timed, if its runtime is there already.
    if created.is_none() {
        env.spy_on(&arrival.request_id.0).await;
    }
    let sampler_env = env.id;
    env.shared.sampler.watch(sampler_env, env.cgroup());
    env.log.begin(Some(arrival.request_id.clone()));
    // Only what happens from here on counts for this invocation.
    env.out_of_memory();
    let mut facts = Facts::new(arrival.dispatched_ns, created);
    facts.init_ms = env.init_untold_ms.take();
    let mut drive = Drive::new(env, arrival, facts, Some(answer));
    let driven = drive.run(created.is_some(), abandoned).await;
    let facts = drive.facts;
    let arrival = drive.arrival;
    env.spied().await;
    env.shared.sampler.unwatch(sampler_env);
    driven?;
    let invocation = facts.invocation(env, &arrival);
    env.shared.recorder.record(Event::Invocation(invocation.clone()));
    let (payload, function_error) = (facts.payload.clone(), facts.function_error());
    let overhead = facts.extension_overhead().filter(|_| !env.lifecycle.crew().is_empty());
    let extensions_ms = overhead.map(|span| span.duration_ms);
    Ok(Outcome { invocation, payload, function_error, log_tail: env.log.tail(), extensions_ms })
}

/// Initialises a new env that no invocation waits for, and freezes it. Tells why its init failed, if it did. An error means that the
/// env is unusable.
pub(crate) async fn prepare(
    env: &mut Env,
    abandoned: Pin<&mut (dyn Future<Output = ()> + Send)>,
) -> Result<Option<Failure>, Error> {
    env.shared.sampler.watch(env.id, env.cgroup());
    env.log.begin(None);
    let dispatched_ns = clock::monotonic_ns();
    let arrival = Arrival { request_id: RequestId::from_bits(0), call: Call::default(), dispatched_ns };
    let mut drive = Drive::new(env, arrival, Facts::new(dispatched_ns, None), None);
    drive.ahead = true;
    let driven = drive.run(true, abandoned).await;
    let (failure, init_ms) = (drive.init_failure, drive.facts.init_ms);
    env.shared.sampler.unwatch(env.id);
    driven?;
    env.init_untold_ms = init_ms;
    Ok(failure)
}

/// An invocation under way on its env, or the init of an env that none waits for.
struct Drive<'a> {
    env: &'a mut Env,
    arrival: Arrival,
    facts: Facts,
    answer: Option<oneshot::Sender<Answer>>,
    /// The event goes first: the thaw waits for the delivery.
    deferred_thaw: bool,
    init: Option<Instant>,
    invoke: Option<Instant>,
    /// No invocation: the env is initialised and rests.
    ahead: bool,
    init_failure: Option<Failure>,
    /// INIT_START is in the log, and the end of init is not.
    init_begun: bool,
    /// Telemetry knows that the runtime is done with this invocation.
    runtime_is_done: bool,
    /// The caller has a stream and waits for its end.
    stream_end: Option<oneshot::Sender<StreamEnd>>,
}

impl<'a> Drive<'a> {
    fn new(
        env: &'a mut Env,
        arrival: Arrival,
        facts: Facts,
        answer: Option<oneshot::Sender<Answer>>,
    ) -> Drive<'a> {
        let (init, invoke) = (None, None);
        Drive {
            env,
            arrival,
            facts,
            answer,
            deferred_thaw: false,
            init,
            invoke,
            ahead: false,
            init_failure: None,
            init_begun: false,
            runtime_is_done: false,
            stream_end: None,
        }
    }

    /// Dispatches, then turns what happens into actions until the invocation is reported and the env rests.
    async fn run(
        &mut self,
        fresh: bool,
        mut abandoned: Pin<&mut (dyn Future<Output = ()> + Send)>,
    ) -> Result<(), Error> {
        let mut actions = VecDeque::new();
        self.facts.start = match (fresh, self.env.lifecycle.state()) {
            (true, _) => Start::Cold,
            (false, State::Down) => Start::Suppressed,
            (false, _) => Start::Warm,
        };
        if !self.ahead {
            actions.extend(self.env.lifecycle.step(Input::Dispatch(self.arrival.request_id.clone())));
        }
        if fresh {
            actions.extend(self.env.lifecycle.step(Input::Created));
        }
        loop {
            while let Some(action) = actions.pop_front() {
                let input = self.perform(action).await?;
                actions.extend(input.into_iter().flat_map(|input| self.env.lifecycle.step(input)));
            }
            if self.facts.reported || self.ahead && self.env.lifecycle.is_free() {
                return Ok(());
            }
            let input = tokio::select! {
                biased;
                input = self.wait() => input,
                () = &mut abandoned => return Err(Error::Stopped),
            };
            actions.extend(input.into_iter().flat_map(|input| self.env.lifecycle.step(input)));
        }
    }

    async fn perform(&mut self, action: Action) -> Result<Option<Input>, Error> {
        match action {
            Action::StartExtensions(phase) => return self.start_extensions(phase),
            Action::StartRuntime(phase) => return self.start_runtime(phase),
            Action::Arm(Timer::Init) => self.init = Some(Instant::now() + self.env.init_limit()),
            Action::Arm(Timer::Invoke(_)) => self.invoke = Some(Instant::now() + self.timeout()),
            Action::InitEnded { phase, failure } => self.init_ended(phase, failure)?,
            Action::Thaw => self.thaw()?,
            Action::Begin(request) => self.begin(request),
            Action::Deliver(request) => self.deliver(request).await?,
            Action::AnswerCaller(_, ending) => self.answer(ending),
            Action::Kill => {
                let reason = match self.facts.timed_out {
                    true => ShutdownReason::Timeout,
                    false => ShutdownReason::Failure,
                };
                self.facts.killed(clock::monotonic_ns());
                self.env.reset(reason).await?;
                return Ok(Some(Input::ProcessesGone));
            }
            Action::Freeze => self.rest().await?,
            Action::Report(_, ending) => self.report(ending).await,
            Action::Refuse(_) | Action::Destroy(_) => return Err(Error::Stopped),
        }
        Ok(None)
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.env.function.spec.timeout_ms)
    }

    fn begin(&mut self, request: RequestId) {
        let trace_id = self.arrival.call.caller.trace_id.clone().unwrap_or_else(|| self.env.next_trace_id());
        self.arrival.call.caller.trace_id = Some(trace_id.clone());
        let version = self.env.function.version.clone();
        self.env.log.event(&Platform::Start { request, version, trace_id: Some(trace_id) });
    }

    fn thaw(&mut self) -> Result<(), Error> {
        if self.env.event_first() {
            self.deferred_thaw = true;
            return Ok(());
        }
        self.facts.thaw = self.env.thaw_network_first()?;
        Ok(())
    }

    async fn deliver(&mut self, request_id: RequestId) -> Result<(), Error> {
        self.env.spy_on(&request_id.0).await;
        self.facts.begin(clock::monotonic_ns());
        self.facts.at_delivery = Some(self.env.cgroup().cpu());
        let call = self.arrival.call.clone();
        let trace_id = call.caller.trace_id.unwrap_or_default();
        self.env.shared.recorder.record(Event::Trace(TraceHeader {
            at_ns: clock::monotonic_ns(),
            env: self.env.id,
            request_id: request_id.clone(),
            header: trace_id.clone(),
        }));
        let invoke = Invoke {
            request_id,
            deadline_epoch_ms: clock::epoch_ns() / 1_000_000 + self.env.function.spec.timeout_ms,
            function_arn: call.caller.function_arn.unwrap_or_else(|| self.env.function.arn()),
            trace_id: Some(trace_id),
            client_context: call.caller.client_context,
            cognito_identity: call.caller.cognito_identity,
            payload: call.payload,
            stream: call.wants == Wants::Stream,
        };
        self.env.session.deliver(invoke)?;
        if std::mem::take(&mut self.deferred_thaw) {
            self.handed_over().await;
            self.facts.thaw = self.env.thaw_event_first()?;
        }
        Ok(())
    }

    /// Waits until the event lies in the frozen runtime's socket.
    async fn handed_over(&mut self) {
        if let Happening::Runtime(event) = self.env.happening(Instant::now() + HAND_OVER).await {
            self.runtime_event(event);
        }
    }

    /// Waits for the next fact, under whichever clock runs.
    async fn wait(&mut self) -> Option<Input> {
        let far = || Instant::now() + Duration::from_millis(*limits::TIMEOUT_MS.end());
        let deadline = [self.init, self.invoke].into_iter().flatten().min().unwrap_or_else(far);
        match self.env.happening(deadline).await {
            Happening::Runtime(event) => self.runtime_event(event),
            Happening::Exited(..) if self.env.out_of_memory() => Some(Input::OutOfMemory),
            Happening::Exited(who, status) => {
                let exit = match status {
                    ExitStatus::Code(code) => Exit::Code(code),
                    ExitStatus::Signal(signal) => Exit::Signal(signal),
                };
                Some(match who {
                    Who::Runtime => Input::ProcessExited(exit),
                    Who::Extension(_) => Input::ExtensionExited(exit),
                })
            }
            Happening::Deadline if self.init.is_some_and(|at| at <= Instant::now()) => {
                self.init = None;
                Some(Input::InitTimeout)
            }
            Happening::Deadline => {
                self.facts.timed_out = true;
                Some(Input::InvokeTimeout(self.arrival.request_id.clone()))
            }
        }
    }

    fn runtime_event(&mut self, event: RuntimeEvent) -> Option<Input> {
        match event {
            RuntimeEvent::NextRequested { at_ns } => {
                self.facts.runtime_asked(at_ns);
                if matches!(self.env.lifecycle.state(), State::Busy { answered: Some(_), .. }) {
                    self.runtime_done(None);
                }
                Some(Input::NextRequested)
            }
            RuntimeEvent::Delivered { at_ns, .. } => {
                self.facts.delivered_ns.get_or_insert(at_ns);
                None
            }
            RuntimeEvent::StreamBegun { at_ns, content_type, chunks, .. } => {
                self.stream_begun(at_ns, content_type, chunks);
                None
            }
            RuntimeEvent::Response { request_id, at_ns, body, content_type, streaming } => {
                self.facts.posted(at_ns, body, None);
                self.facts.content_type = content_type;
                self.facts.streamed_bytes = streaming.map(|streaming| streaming.bytes);
                Some(Input::Response(request_id))
            }
            RuntimeEvent::Error { request_id, at_ns, error_type, body } => {
                self.facts.posted(at_ns, body, Some(error_type));
                Some(Input::Error(request_id))
            }
            RuntimeEvent::Extension(call) => {
                if call.what == ExtensionWhat::NextRequested {
                    self.facts.extension_asked(call.at_ns);
                }
                self.env.extension_called(call)
            }
            RuntimeEvent::InitError { error_type, body, .. } => {
                self.facts.init_error = Some((error_type, body));
                Some(Input::InitError)
            }
        }
    }
}
