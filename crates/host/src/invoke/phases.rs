//! The phases of an env as the log and telemetry tell them: init, and the end of an invocation.

use super::Drive;
use crate::Error;
use crate::answer::{Answer, AnswerStream, StreamEnd};
use bytes::Bytes;
use danki_model::lifecycle::{Ending, Failure, Input, Phase};
use danki_model::log::FailureStatus;
use danki_model::telemetry::{InitEnd, InitStart, Platform, RuntimeDone};
use danki_model::{Exit, InitializationType, LogFormat, log, platform_error};
use danki_record::{EnvWhat, Span};
use danki_sys::clock;
use tokio::sync::{mpsc, oneshot};

impl Drive<'_> {
    fn begin_init(&mut self, phase: Phase) -> Result<(), Error> {
        if std::mem::replace(&mut self.init_begun, true) {
            return Ok(());
        }
        // Provisioned environments were seen to initialise at the speed of their memory size (M. Hart, 2019).
        let on_demand = self.env.initialization == InitializationType::OnDemand;
        self.env.set_boost(phase == Phase::Init && on_demand)?;
        self.env.log.telemetry().begin();
        let site = self.env.log.site();
        let start = InitStart {
            initialization: self.env.initialization,
            phase,
            runtime_version: log::runtime_version(self.env.function.spec.runtime),
            function: site.function.clone(),
            version: site.version.clone(),
            instance: site.stream.clone(),
            memory: self.env.function.spec.memory,
        };
        self.env.log.event(&Platform::InitStart(start));
        self.facts.init_started_ns = Some(clock::monotonic_ns());
        if phase == Phase::Invoke {
            self.facts.begin(clock::monotonic_ns());
        }
        Ok(())
    }

    pub(super) fn start_extensions(&mut self, phase: Phase) -> Result<Option<Input>, Error> {
        self.begin_init(phase)?;
        Ok((!self.env.start_extensions()?).then_some(Input::ExtensionNotLaunched))
    }

    pub(super) fn start_runtime(&mut self, phase: Phase) -> Result<Option<Input>, Error> {
        self.begin_init(phase)?;
        match self.env.start_runtime() {
            Ok(()) => Ok(None),
            Err(Error::Sys(danki_sys::Error::Exec { .. })) => Ok(Some(Input::ProcessExited(Exit::Code(127)))),
            Err(other) => Err(other),
        }
    }

    pub(super) fn init_ended(&mut self, phase: Phase, failure: Option<Failure>) -> Result<(), Error> {
        let from_ns = self.facts.init_started_ns.unwrap_or(self.arrival.dispatched_ns);
        let span = Span { from_ns, to_ns: clock::monotonic_ns() };
        self.facts.init = Some(span);
        (self.init, self.init_begun) = (None, false);
        let init_ms = span.len_ns() as f64 / 1e6;
        if phase == Phase::Init {
            self.env.set_boost(false)?;
        }
        self.init_failure = failure;
        let status = failure.map(|failure| self.facts.failure_status(failure));
        self.log_init(phase, init_ms, status);
        if failure.is_none() {
            self.env.session.init_is_over();
            self.env.log.telemetry().init_is_over();
            if phase == Phase::Init {
                self.facts.init_ms = Some(init_ms);
            }
        }
        let status = match failure {
            None => "success",
            Some(Failure::Timeout) => "timeout",
            Some(_) => "error",
        };
        let phase = if phase == Phase::Init { "init" } else { "invoke" };
        self.env.happened(EnvWhat::InitDone { span, phase: phase.to_owned(), status: status.to_owned() });
        Ok(())
    }

    fn log_init(&self, phase: Phase, duration_ms: f64, failure: Option<FailureStatus>) {
        let initialization = self.env.initialization;
        let end = InitEnd { initialization, phase, failure, duration_ms };
        self.env.log.event(&Platform::InitRuntimeDone(end.clone()));
        self.env.log_extensions();
        self.env.log.event(&Platform::InitReport(end));
    }

    /// The caller gets a stream; how it ends is told later.
    pub(super) fn stream_begun(
        &mut self,
        at_ns: u64,
        content_type: Option<String>,
        chunks: mpsc::Receiver<Bytes>,
    ) {
        let (end, ended) = oneshot::channel();
        self.stream_end = Some(end);
        self.facts.stream_begun(at_ns);
        let stream = Some(AnswerStream::new(chunks, ended, content_type.as_deref()));
        let payload = Bytes::new();
        self.send(Answer { payload, function_error: None, responded_ns: at_ns, content_type, stream });
    }

    pub(super) fn answer(&mut self, ending: Ending) {
        if let Ending::Failed(failure) = ending {
            let request = &self.arrival.request_id;
            let payload = platform_error::payload(failure, request, self.env.function.spec.timeout_ms);
            self.facts.failed(clock::monotonic_ns(), failure, payload);
        }
        if let Some(end) = self.stream_end.take() {
            let ended = match self.facts.error_type() {
                None => StreamEnd::Complete,
                Some(error_type) => StreamEnd::Failed { error_type, payload: self.facts.payload.clone() },
            };
            // Err: the caller is gone.
            let _ = end.send(ended);
            return;
        }
        self.send(Answer {
            payload: self.facts.payload.clone(),
            function_error: self.facts.function_error(),
            responded_ns: self.facts.responded_ns,
            content_type: self.facts.content_type.clone(),
            stream: None,
        });
    }

    fn send(&mut self, answer: Answer) {
        if let Some(to) = self.answer.take() {
            to.send(answer).ok();
            // The caller's span ends here; what the runtime does before its next `/next` is not in it.
            self.env.shared.sampler.mark(self.env.id);
        }
    }

    /// Everybody has asked for the next event: what they wrote is read, then the env is frozen.
    pub(super) async fn rest(&mut self) -> Result<(), Error> {
        self.facts.at_finish = Some(self.env.cgroup().cpu());
        self.env.flush_log().await;
        self.env.freeze()
    }

    /// The runtime has asked for the next event, or will not any more. Extensions wait for this.
    pub(super) fn runtime_done(&mut self, failure: Option<Failure>) {
        // A log in text has no line of it.
        let told =
            self.env.log.telemetry().is_active() || self.env.log.site().logging.format == LogFormat::Json;
        if std::mem::replace(&mut self.runtime_is_done, true) || !told {
            return;
        }
        let failure = match failure {
            Some(failure) => Some(self.facts.failure_status(failure)),
            None => self.facts.error_type().map(FailureStatus::Error),
        };
        let (duration_ms, spans) = self.facts.runtime_done(clock::monotonic_ns());
        self.env.log.event(&Platform::RuntimeDone(RuntimeDone {
            request: self.arrival.request_id.clone(),
            failure,
            duration_ms,
            produced_bytes: self.facts.response_bytes(),
            spans,
        }));
    }

    pub(super) async fn report(&mut self, ending: Ending) {
        let finished_ns = self.facts.finish(clock::monotonic_ns(), ending, self.timeout());
        self.facts.at_finish.get_or_insert_with(|| self.env.cgroup().cpu());
        let failure = match ending {
            Ending::Failed(failure) => Some(failure),
            _ => None,
        };
        self.runtime_done(failure);
        let (env, request) = (&self.env, &self.arrival.request_id);
        env.log.end();
        if let Some(failure) = failure {
            self.facts
                .failure_lines(env, request, failure, finished_ns)
                .iter()
                .for_each(|line| env.log.platform(line));
        }
        env.log.platform(&log::end(request));
        let report = self.facts.report(env, request, ending);
        let extension_overhead = self.facts.extension_overhead();
        env.log.event(&Platform::Report { report, extension_overhead });
        self.facts.reported = true;
    }
}
