//! Drives an env through one invocation: `model::lifecycle` decides, this performs and reports back.

use crate::Error;
use crate::answer::Answer;
use crate::call::Call;
use crate::env::{Env, Happening};
use crate::facts::Facts;
use bytes::Bytes;
use danki_model::lifecycle::{Action, Ending, Failure, Input, Phase, State, Timer};
use danki_model::{Exit, InitializationType, RequestId, limits, log, platform_error};
use danki_record::{EnvWhat, Event, Invocation, Span, Start};
use danki_runtime_api::{Invoke, RuntimeEvent};
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
    let sampler_env = env.id;
    env.shared.sampler.watch(sampler_env, env.cgroup());
    env.log.begin();
    // Only what happens from here on counts for this invocation.
    env.out_of_memory();
    let mut facts = Facts::new(arrival.dispatched_ns, created);
    facts.init_ms = env.init_untold_ms.take();
    let mut drive = Drive::new(env, arrival, facts, Some(answer));
    let driven = drive.run(created.is_some(), abandoned).await;
    let facts = drive.facts;
    let arrival = drive.arrival;
    let series = env.shared.sampler.unwatch(sampler_env);
    env.shared.recorder.record(Event::Cpu(series));
    driven?;
    let invocation = facts.invocation(env, &arrival);
    env.shared.recorder.record(Event::Invocation(invocation.clone()));
    let (payload, function_error) = (facts.payload.clone(), facts.function_error());
    Ok(Outcome { invocation, payload, function_error, log_tail: env.log.tail() })
}

/// Initialises a new env that no invocation waits for, and freezes it. Tells why its init failed, if it did. An error means that the
/// env is unusable.
pub(crate) async fn prepare(
    env: &mut Env,
    abandoned: Pin<&mut (dyn Future<Output = ()> + Send)>,
) -> Result<Option<Failure>, Error> {
    env.shared.sampler.watch(env.id, env.cgroup());
    env.log.begin();
    let dispatched_ns = clock::monotonic_ns();
    let arrival = Arrival { request_id: RequestId::from_bits(0), call: Call::default(), dispatched_ns };
    let mut drive = Drive::new(env, arrival, Facts::new(dispatched_ns, None), None);
    drive.ahead = true;
    let driven = drive.run(true, abandoned).await;
    let (failure, init_ms) = (drive.init_failure, drive.facts.init_ms);
    let series = env.shared.sampler.unwatch(env.id);
    env.shared.recorder.record(Event::Cpu(series));
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
            Action::StartExtensions(phase) | Action::StartRuntime(phase) => return self.start_runtime(phase),
            Action::Arm(Timer::Init) => self.init = Some(Instant::now() + self.env.init_limit()),
            Action::Arm(Timer::Invoke(_)) => self.invoke = Some(Instant::now() + self.timeout()),
            Action::InitEnded { phase, failure } => self.init_ended(phase, failure)?,
            Action::Thaw => self.thaw()?,
            Action::Begin(request) => {
                self.env.log.platform(&log::start(&request, &self.env.function.version))
            }
            Action::Deliver(request) => self.deliver(request).await?,
            Action::AnswerCaller(_, ending) => self.answer(ending),
            Action::Kill => {
                let reason = if self.facts.timed_out { "timeout" } else { "failure" };
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

    fn start_runtime(&mut self, phase: Phase) -> Result<Option<Input>, Error> {
        // Provisioned environments were seen to initialise at the speed of their memory size (M. Hart, 2019).
        let on_demand = self.env.initialization == InitializationType::OnDemand;
        self.env.set_boost(phase == Phase::Init && on_demand)?;
        let (version, arn) = log::runtime_version(self.env.function.spec.runtime);
        self.env.log.platform(&log::init_start(&version, &arn));
        self.facts.init_started_ns = Some(clock::monotonic_ns());
        if phase == Phase::Invoke {
            self.facts.begin(clock::monotonic_ns());
        }
        match self.env.start_runtime() {
            Ok(()) => Ok(None),
            Err(Error::Sys(danki_sys::Error::Exec { .. })) => Ok(Some(Input::ProcessExited(Exit::Code(127)))),
            Err(other) => Err(other),
        }
    }

    fn init_ended(&mut self, phase: Phase, failure: Option<Failure>) -> Result<(), Error> {
        let from_ns = self.facts.init_started_ns.unwrap_or(self.arrival.dispatched_ns);
        let span = Span { from_ns, to_ns: clock::monotonic_ns() };
        self.facts.init = Some(span);
        self.init = None;
        let init_ms = span.len_ns() as f64 / 1e6;
        if phase == Phase::Init {
            self.env.set_boost(false)?;
        }
        self.init_failure = failure;
        if let Some(failure) = failure {
            let status = self.facts.failure_status(failure);
            self.env.log.platform(&log::init_report(init_ms, phase, &status));
        } else if phase == Phase::Init {
            self.facts.init_ms = Some(init_ms);
        }
        let words = |phase| if phase == Phase::Init { "init" } else { "invoke" };
        let status = match failure {
            None => "success",
            Some(Failure::Timeout) => "timeout",
            Some(_) => "error",
        };
        self.env.happened(EnvWhat::InitDone {
            span,
            phase: words(phase).to_owned(),
            status: status.to_owned(),
        });
        Ok(())
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
        self.facts.begin(clock::monotonic_ns());
        self.facts.at_delivery = Some(self.env.cgroup().cpu());
        let call = self.arrival.call.clone();
        let trace_id = call.caller.trace_id.unwrap_or_else(|| self.env.next_trace_id());
        let invoke = Invoke {
            request_id,
            deadline_epoch_ms: clock::epoch_ns() / 1_000_000 + self.env.function.spec.timeout_ms,
            function_arn: call.caller.function_arn.unwrap_or_else(|| self.env.function.arn()),
            trace_id: Some(trace_id),
            client_context: call.caller.client_context,
            cognito_identity: call.caller.cognito_identity,
            payload: call.payload,
            stream: call.wants == crate::answer::Wants::Stream,
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
            Happening::Exited(_) if self.env.out_of_memory() => Some(Input::OutOfMemory),
            Happening::Exited(ExitStatus::Code(code)) => Some(Input::ProcessExited(Exit::Code(code))),
            Happening::Exited(ExitStatus::Signal(signal)) => Some(Input::ProcessExited(Exit::Signal(signal))),
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
                self.facts.next_requested(at_ns);
                Some(Input::NextRequested)
            }
            RuntimeEvent::Delivered { at_ns, .. } => {
                self.facts.delivered_ns.get_or_insert(at_ns);
                None
            }
            RuntimeEvent::Response { request_id, at_ns, body, .. } => {
                self.facts.posted(at_ns, body, None);
                Some(Input::Response(request_id))
            }
            RuntimeEvent::Error { request_id, at_ns, error_type, body } => {
                self.facts.posted(at_ns, body, Some(error_type));
                Some(Input::Error(request_id))
            }
            RuntimeEvent::StreamBegun { .. } | RuntimeEvent::Extension(_) => None,
            RuntimeEvent::InitError { error_type, body, .. } => {
                self.facts.init_error = Some((error_type, body));
                Some(Input::InitError)
            }
        }
    }

    fn answer(&mut self, ending: Ending) {
        if let Ending::Failed(failure) = ending {
            let request = &self.arrival.request_id;
            let payload = platform_error::payload(failure, request, self.env.function.spec.timeout_ms);
            self.facts.failed(clock::monotonic_ns(), failure, payload);
        }
        let answer = Answer {
            payload: self.facts.payload.clone(),
            function_error: self.facts.function_error(),
            responded_ns: self.facts.responded_ns,
            content_type: None,
            stream: None,
        };
        if let Some(to) = self.answer.take() {
            to.send(answer).ok();
        }
    }

    /// The runtime has asked for the next event: what it wrote is read, then the env is frozen.
    async fn rest(&mut self) -> Result<(), Error> {
        self.facts.at_finish = Some(self.env.cgroup().cpu());
        self.env.flush_log().await;
        self.env.freeze()
    }

    async fn report(&mut self, ending: Ending) {
        let finished_ns = self.facts.finish(clock::monotonic_ns(), ending, self.timeout());
        self.facts.at_finish.get_or_insert_with(|| self.env.cgroup().cpu());
        let (env, request) = (&self.env, &self.arrival.request_id);
        env.log.end();
        if let Ending::Failed(failure) = ending {
            self.facts
                .failure_lines(env, request, failure, finished_ns)
                .iter()
                .for_each(|line| env.log.platform(line));
        }
        env.log.platform(&log::end(request));
        let report = self.facts.report(env, request, ending);
        env.log.platform(&log::report(&report));
        self.facts.reported = true;
    }
}
