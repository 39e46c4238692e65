//! What is learnt during one invocation, and the figures that follow from it.

use crate::env::Env;
use crate::invoke::Arrival;
use bytes::Bytes;
use danki_model::lifecycle::{Ending, Failure};
use danki_model::{InitializationType, RequestId, billing, log, platform_error, telemetry};
use danki_record::{Invocation, Span, Start, Status};
use danki_sys::{CpuCounters, clock};
use std::time::Duration;

/// Times, payload and counters of one invocation.
pub(crate) struct Facts {
    pub start: Start,
    pub env_wait: Option<Span>,
    pub init_started_ns: Option<u64>,
    pub init: Option<Span>,
    /// `Init Duration`: only an init phase that succeeded has one.
    pub init_ms: Option<f64>,
    pub init_error: Option<(String, Bytes)>,
    pub thaw: Option<Span>,
    pub delivered_ns: Option<u64>,
    pub responded_ns: u64,
    pub payload: Bytes,
    pub timed_out: bool,
    pub reported: bool,
    pub at_delivery: Option<CpuCounters>,
    pub at_finish: Option<CpuCounters>,
    /// Of the runtime's post.
    pub content_type: Option<String>,
    /// Length of a response that was streamed.
    pub streamed_bytes: Option<u64>,
    begun_ns: Option<u64>,
    /// The last time that the runtime asked for an event.
    runtime_ns: Option<u64>,
    /// … or anybody did.
    next_ns: Option<u64>,
    killed_ns: Option<u64>,
    stream_begun_ns: Option<u64>,
    posted_ns: Option<u64>,
    finished_ns: u64,
    duration_ms: f64,
    error_type: Option<String>,
}

impl Facts {
    pub fn new(dispatched_ns: u64, created: Option<Span>) -> Facts {
        Facts {
            start: Start::Warm,
            env_wait: created,
            init_started_ns: None,
            init: None,
            init_ms: None,
            init_error: None,
            thaw: None,
            delivered_ns: None,
            responded_ns: dispatched_ns,
            payload: Bytes::new(),
            timed_out: false,
            reported: false,
            at_delivery: None,
            at_finish: None,
            content_type: None,
            streamed_bytes: None,
            begun_ns: None,
            runtime_ns: None,
            next_ns: None,
            killed_ns: None,
            stream_begun_ns: None,
            posted_ns: None,
            finished_ns: dispatched_ns,
            duration_ms: 0.0,
            error_type: None,
        }
    }

    /// The invoke phase begins: `Duration` counts from here. A suppressed init is inside.
    pub fn begin(&mut self, at_ns: u64) {
        self.begun_ns.get_or_insert(at_ns);
    }

    pub fn runtime_asked(&mut self, at_ns: u64) {
        self.runtime_ns = Some(at_ns);
        self.extension_asked(at_ns);
    }

    pub fn extension_asked(&mut self, at_ns: u64) {
        self.next_ns = self.next_ns.max(Some(at_ns));
    }

    /// From here on the processes are ended.
    pub fn killed(&mut self, at_ns: u64) {
        self.killed_ns = Some(at_ns);
    }

    pub fn stream_begun(&mut self, at_ns: u64) {
        self.stream_begun_ns = Some(at_ns);
    }

    pub fn posted(&mut self, at_ns: u64, body: Bytes, error_type: Option<String>) {
        self.posted_ns = Some(at_ns);
        self.responded_ns = self.stream_begun_ns.unwrap_or(at_ns);
        (self.payload, self.error_type) = (body, error_type);
    }

    pub fn error_type(&self) -> Option<String> {
        self.error_type.clone()
    }

    pub fn response_bytes(&self) -> u64 {
        self.streamed_bytes.unwrap_or(self.payload.len() as u64)
    }

    /// How long the runtime took, and with what.
    pub fn runtime_done(&self, now_ns: u64) -> (f64, Vec<telemetry::Span>) {
        let begun_ns = self.begun_ns.unwrap_or(now_ns);
        let done_ns = self.runtime_ns.filter(|at| *at >= begun_ns).unwrap_or(now_ns);
        let first_ns = self.stream_begun_ns.or(self.posted_ns);
        let spans = first_ns.zip(self.posted_ns).map(|(first_ns, last_ns)| {
            vec![
                span("responseLatency", begun_ns, first_ns),
                span("responseDuration", first_ns, last_ns),
                span("runtimeOverhead", last_ns, done_ns),
            ]
        });
        (done_ns.saturating_sub(begun_ns) as f64 / 1e6, spans.unwrap_or_default())
    }

    /// What extensions did after the runtime was done.
    pub fn extension_overhead(&self) -> Option<telemetry::Span> {
        let from_ns = self.runtime_ns.filter(|from_ns| *from_ns < self.finished_ns)?;
        let begun_ns = self.begun_ns.unwrap_or(u64::MAX);
        (from_ns >= begun_ns).then(|| span("extensionOverhead", from_ns, self.finished_ns))
    }

    /// The platform answers in the function's place.
    pub fn failed(&mut self, at_ns: u64, failure: Failure, payload: Option<String>) {
        self.responded_ns = self.stream_begun_ns.unwrap_or(at_ns);
        self.error_type = Some(self.type_of(failure));
        self.payload = match (payload, &self.init_error) {
            (Some(payload), _) => Bytes::from(payload),
            (None, Some((_, body))) => body.clone(),
            (None, None) => Bytes::new(),
        };
    }

    pub fn function_error(&self) -> Option<String> {
        self.error_type.is_some().then(|| "Unhandled".to_owned())
    }

    fn type_of(&self, failure: Failure) -> String {
        match (platform_error::error_type(failure), &self.init_error) {
            (Some(kind), _) => kind.to_owned(),
            (None, Some((kind, _))) => kind.clone(),
            (None, None) => "Runtime.Unknown".to_owned(),
        }
    }

    /// How log lines name a failure.
    pub fn failure_status(&self, failure: Failure) -> log::FailureStatus {
        match failure {
            Failure::Timeout => log::FailureStatus::Timeout,
            other => log::FailureStatus::Error(self.type_of(other)),
        }
    }

    /// Fixes the end and `Duration`: until the runtime's next `/next`, or exactly the timeout when that was hit.
    pub fn finish(&mut self, now_ns: u64, ending: Ending, timeout: Duration) -> u64 {
        let begun_ns = self.begun_ns.unwrap_or(now_ns);
        self.finished_ns = match ending {
            // The end of the processes takes up to two seconds more if there are extensions; it is no part of the invocation.
            Ending::Failed(_) => self.killed_ns.unwrap_or(now_ns),
            _ => self.next_ns.unwrap_or(now_ns).max(self.responded_ns),
        };
        self.duration_ms = match ending {
            Ending::Failed(Failure::Timeout) => timeout.as_secs_f64() * 1e3,
            _ => self.finished_ns.saturating_sub(begun_ns) as f64 / 1e6,
        };
        self.finished_ns
    }

    /// The lines that precede END when the platform ended the invocation.
    pub fn failure_lines(&self, env: &Env, request: &RequestId, failure: Failure, at_ns: u64) -> Vec<String> {
        let timeout_ms = env.function.spec.timeout_ms;
        let epoch_ms = (at_ns + clock::epoch_offset_ns()) / 1_000_000;
        match failure {
            Failure::Timeout => vec![log::task_timed_out(epoch_ms, request, timeout_ms)],
            other => platform_error::message(other, timeout_ms)
                .map(|message| log::crash(request, &message, &self.type_of(other)))
                .into_iter()
                .collect(),
        }
    }

    /// The REPORT line's figures.
    pub fn report(&self, env: &Env, request: &RequestId, ending: Ending) -> log::Report {
        let failure = match ending {
            Ending::Failed(failure) => Some(self.failure_status(failure)),
            _ => None,
        };
        log::Report {
            request: request.clone(),
            duration_ms: self.duration_ms,
            billed_ms: self.billed_ms(env),
            memory: env.function.spec.memory,
            max_memory_used_mb: memory_mb(env),
            init_ms: self.init_ms,
            failure,
        }
    }

    /// The record of the finished invocation.
    pub fn invocation(&self, env: &Env, arrival: &Arrival) -> Invocation {
        let (from, to) = (self.at_delivery.unwrap_or_default(), self.at_finish.unwrap_or_default());
        let between = |a: u64, b: u64| if self.at_delivery.is_some() { b.saturating_sub(a) } else { 0 };
        Invocation {
            request_id: arrival.request_id.clone(),
            variant: env.function.variant.clone(),
            index: arrival.call.index,
            ping: arrival.call.ping,
            env: env.id,
            initialization: env.initialization,
            start: self.start,
            intended_ns: arrival.call.intended_ns,
            dispatched_ns: arrival.dispatched_ns,
            env_wait: self.env_wait,
            init: self.init,
            thaw: self.thaw,
            delivered_ns: self.delivered_ns,
            responded_ns: self.responded_ns,
            finished_ns: self.finished_ns,
            status: self.status(),
            duration_ms: self.duration_ms,
            billed_ms: self.billed_ms(env),
            init_ms: self.init_ms,
            max_memory_used_mb: memory_mb(env),
            cpu_us: between(from.usage_ns, to.usage_ns) / 1_000,
            throttled_us: between(from.throttled_ns, to.throttled_ns) / 1_000,
            throttled_periods: between(from.nr_throttled, to.nr_throttled),
            response_bytes: self.response_bytes(),
        }
    }

    /// The init of a provisioned env is part of what provisioned concurrency costs, not of its first invocation (S0's REPORT: Duration
    /// 1220.41 ms, Init Duration 2395.82 ms, Billed Duration 1221 ms).
    fn billed_ms(&self, env: &Env) -> u64 {
        let on_demand = env.initialization == InitializationType::OnDemand;
        billing::billed_ms(self.duration_ms, self.init_ms.filter(|_| on_demand))
    }

    fn status(&self) -> Status {
        match &self.error_type {
            _ if self.timed_out => Status::Timeout,
            Some(error_type) => Status::Error { error_type: error_type.clone() },
            None => Status::Ok,
        }
    }
}

fn span(name: &'static str, from_ns: u64, to_ns: u64) -> telemetry::Span {
    telemetry::Span {
        name,
        start_epoch_ms: (from_ns + clock::epoch_offset_ns()) / 1_000_000,
        duration_ms: to_ns.saturating_sub(from_ns) as f64 / 1e6,
    }
}

/// `Max Memory Used`: the peak of the whole env, at most its size, in MB rounded up.
fn memory_mb(env: &Env) -> u32 {
    let peak_mb = env.cgroup().memory_peak_bytes().div_ceil(1024 * 1024);
    u32::try_from(peak_mb).unwrap_or(u32::MAX).min(env.function.spec.memory.mb())
}
