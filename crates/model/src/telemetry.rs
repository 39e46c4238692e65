//! What the platform says of itself: one value per event, as a log line of either format and as a record of the Telemetry API
//! (`lambda-platform.md` §2.7, §5.4).

use crate::lifecycle::Phase;
use crate::log::{self, FailureStatus, Report};
use crate::time::iso;
use crate::{InitializationType, LogFormat, Logging, MemoryMb, RequestId, SystemLevel};
use serde_json::{Map, Value, json};

/// A `platform.…` event.
#[derive(Clone, Debug, PartialEq)]
pub enum Platform {
    /// Init begins.
    InitStart(InitStart),
    /// The runtime's part of init is over.
    InitRuntimeDone(InitEnd),
    /// Init is over.
    InitReport(InitEnd),
    /// An invocation begins.
    Start {
        /// The invocation.
        request: RequestId,
        /// The function's version.
        version: String,
        /// X-Ray's header.
        trace_id: Option<String>,
    },
    /// The runtime asked for the next event, or ended.
    RuntimeDone(RuntimeDone),
    /// An invocation is over.
    Report {
        /// Its figures.
        report: Report,
        /// Time after the runtime was done that extensions took, in ms.
        extension_overhead: Option<Span>,
    },
    /// How an extension came out of init.
    Extension {
        /// Its name.
        name: String,
        /// `Ready`, `InitError`, `LaunchError`…
        state: &'static str,
        /// What it registered for.
        events: Vec<&'static str>,
        /// Its own word for what went wrong.
        error_type: Option<String>,
    },
    /// An extension subscribed to telemetry.
    TelemetrySubscription {
        /// Its name.
        name: String,
        /// `platform`, `function`, `extension`.
        types: Vec<&'static str>,
    },
    /// Telemetry was lost because its reader was too slow.
    LogsDropped {
        /// Why.
        reason: String,
        /// Records.
        records: u64,
        /// Bytes.
        bytes: u64,
    },
}

/// See [`Platform::InitStart`].
#[derive(Clone, Debug, PartialEq)]
pub struct InitStart {
    /// Why the env exists.
    pub initialization: InitializationType,
    /// Which kind of init.
    pub phase: Phase,
    /// As [`log::runtime_version`] has them.
    pub runtime_version: (String, String),
    /// Function name.
    pub function: String,
    /// Function version.
    pub version: String,
    /// The log stream.
    pub instance: String,
    /// Its limit.
    pub memory: MemoryMb,
}

/// How an init ended.
#[derive(Clone, Debug, PartialEq)]
pub struct InitEnd {
    /// Why the env exists.
    pub initialization: InitializationType,
    /// Which kind of init.
    pub phase: Phase,
    /// Why it failed, if it did.
    pub failure: Option<FailureStatus>,
    /// How long it took, in ms.
    pub duration_ms: f64,
}

/// See [`Platform::RuntimeDone`].
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeDone {
    /// The invocation.
    pub request: RequestId,
    /// Why it failed, if it did; an error of the function's own counts.
    pub failure: Option<FailureStatus>,
    /// Until the runtime was done, in ms.
    pub duration_ms: f64,
    /// Size of the response.
    pub produced_bytes: u64,
    /// `responseLatency`, `responseDuration`, `runtimeOverhead`.
    pub spans: Vec<Span>,
}

/// A named stretch of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Its name.
    pub name: &'static str,
    /// Begin, milliseconds of the epoch.
    pub start_epoch_ms: u64,
    /// Length in ms.
    pub duration_ms: f64,
}

impl Platform {
    /// `platform.start`…
    pub fn kind(&self) -> &'static str {
        match self {
            Platform::InitStart(_) => "platform.initStart",
            Platform::InitRuntimeDone(_) => "platform.initRuntimeDone",
            Platform::InitReport(_) => "platform.initReport",
            Platform::Start { .. } => "platform.start",
            Platform::RuntimeDone(_) => "platform.runtimeDone",
            Platform::Report { .. } => "platform.report",
            Platform::Extension { .. } => "platform.extension",
            Platform::TelemetrySubscription { .. } => "platform.telemetrySubscription",
            Platform::LogsDropped { .. } => "platform.logsDropped",
        }
    }

    /// The level at which it appears in a log in JSON format.
    pub fn level(&self) -> SystemLevel {
        let unless_failed = |failed: bool, fine| if failed { SystemLevel::Warn } else { fine };
        match self {
            Platform::InitStart(_) | Platform::Start { .. } => SystemLevel::Info,
            Platform::Extension { .. } | Platform::TelemetrySubscription { .. } => SystemLevel::Info,
            Platform::InitRuntimeDone(end) => unless_failed(end.failure.is_some(), SystemLevel::Debug),
            Platform::InitReport(end) => {
                let fine = match end.initialization {
                    InitializationType::OnDemand => SystemLevel::Debug,
                    InitializationType::ProvisionedConcurrency => SystemLevel::Info,
                };
                unless_failed(end.failure.is_some(), fine)
            }
            Platform::RuntimeDone(done) => unless_failed(done.failure.is_some(), SystemLevel::Debug),
            Platform::Report { report, .. } => unless_failed(report.failure.is_some(), SystemLevel::Info),
            Platform::LogsDropped { .. } => SystemLevel::Warn,
        }
    }

    /// The line of a log in text format; some events have none.
    pub fn text(&self) -> Option<String> {
        match self {
            Platform::InitStart(start) => {
                Some(log::init_start(&start.runtime_version.0, &start.runtime_version.1))
            }
            Platform::InitReport(end) => {
                end.failure.as_ref().map(|failure| log::init_report(end.duration_ms, end.phase, failure))
            }
            Platform::Start { request, version, .. } => Some(log::start(request, version)),
            Platform::Report { report, .. } => Some(log::report(report)),
            Platform::Extension { name, state, events, error_type } => {
                Some(log::extension(name, state, events, error_type.as_deref()))
            }
            Platform::TelemetrySubscription { name, types } => Some(log::telemetry(name, types)),
            Platform::InitRuntimeDone(_) | Platform::RuntimeDone(_) | Platform::LogsDropped { .. } => None,
        }
    }

    /// The line of a log as it is configured; none where the level or the format has no room for it.
    pub fn line(&self, logging: &Logging, epoch_ms: u64) -> Option<String> {
        match logging.format {
            LogFormat::Text => self.text(),
            LogFormat::Json => (self.level() >= logging.system).then(|| self.json(epoch_ms)),
        }
    }

    /// `{"time":…,"type":…,"record":…}`
    pub fn json(&self, epoch_ms: u64) -> String {
        event(epoch_ms, self.kind(), &self.record())
    }

    /// The record alone.
    pub fn record(&self) -> Value {
        match self {
            Platform::InitStart(start) => json!({
                "initializationType": start.initialization.as_str(),
                "phase": phase(start.phase),
                "runtimeVersion": start.runtime_version.0,
                "runtimeVersionArn": start.runtime_version.1,
                "functionName": start.function,
                "functionVersion": start.version,
                "instanceId": start.instance,
                "instanceMaxMemory": start.memory.bytes(),
            }),
            Platform::InitRuntimeDone(end) => init_end(end, false),
            Platform::InitReport(end) => init_end(end, true),
            Platform::Start { request, version, trace_id } => {
                let mut record = json!({"requestId": request.0, "version": version});
                if let Some(value) = trace_id {
                    record["tracing"] = json!({"type": "X-Amzn-Trace-Id", "value": value});
                }
                record
            }
            Platform::RuntimeDone(done) => {
                let mut record = json!({
                    "requestId": done.request.0,
                    "metrics": {"durationMs": ms(done.duration_ms), "producedBytes": done.produced_bytes},
                });
                status(&mut record, done.failure.as_ref());
                spans(&mut record, &done.spans);
                record
            }
            Platform::Report { report, extension_overhead } => {
                let mut record = json!({"requestId": report.request.0, "metrics": metrics(report)});
                status(&mut record, report.failure.as_ref());
                spans(&mut record, extension_overhead.as_slice());
                record
            }
            Platform::Extension { name, state, events, error_type } => {
                let mut record = json!({"name": name, "state": state, "events": events});
                if let Some(kind) = error_type {
                    record["errorType"] = json!(kind);
                }
                record
            }
            Platform::TelemetrySubscription { name, types } => {
                json!({"name": name, "state": "Subscribed", "types": types})
            }
            Platform::LogsDropped { reason, records, bytes } => {
                json!({"reason": reason, "droppedRecords": records, "droppedBytes": bytes})
            }
        }
    }
}

/// An event as the Telemetry API sends it; `kind` is `function` or `extension` for log lines.
pub fn event(epoch_ms: u64, kind: &str, record: &Value) -> String {
    format!("{{\"time\":\"{}\",\"type\":\"{kind}\",\"record\":{record}}}", iso(epoch_ms))
}

fn init_end(end: &InitEnd, metrics: bool) -> Value {
    let mut record = json!({"initializationType": end.initialization.as_str(), "phase": phase(end.phase)});
    if metrics {
        record["metrics"] = json!({"durationMs": ms(end.duration_ms)});
    }
    status(&mut record, end.failure.as_ref());
    record
}

fn metrics(report: &Report) -> Value {
    let mut metrics = Map::new();
    metrics.insert("durationMs".to_owned(), json!(ms(report.duration_ms)));
    metrics.insert("billedDurationMs".to_owned(), json!(report.billed_ms));
    metrics.insert("memorySizeMB".to_owned(), json!(report.memory.mb()));
    metrics.insert("maxMemoryUsedMB".to_owned(), json!(report.max_memory_used_mb));
    if let Some(init) = report.init_ms {
        metrics.insert("initDurationMs".to_owned(), json!(ms(init)));
    }
    Value::Object(metrics)
}

/// `failure` is the platform's (`Sandbox.…`), `error` the function's, its runtime's or an extension's.
fn status(record: &mut Value, failure: Option<&FailureStatus>) {
    let (status, error_type) = match failure {
        None => ("success", None),
        Some(FailureStatus::Timeout) => ("timeout", None),
        Some(FailureStatus::Error(kind)) if kind.starts_with("Sandbox.") => ("failure", Some(kind)),
        Some(FailureStatus::Error(kind)) => ("error", Some(kind)),
    };
    record["status"] = json!(status);
    if let Some(kind) = error_type {
        record["errorType"] = json!(kind);
    }
}

fn spans(record: &mut Value, spans: &[Span]) {
    if spans.is_empty() {
        return;
    }
    let all = spans.iter().map(|span| {
        json!({"name": span.name, "start": iso(span.start_epoch_ms), "durationMs": ms(span.duration_ms)})
    });
    record["spans"] = all.collect();
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Init => "init",
        Phase::Invoke => "invoke",
    }
}

/// To the µs.
fn ms(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(failure: Option<FailureStatus>) -> Platform {
        let report = Report {
            request: RequestId("id".to_owned()),
            duration_ms: 1_233.960_4,
            billed_ms: 1_698,
            memory: MemoryMb::try_from(256).expect("in range"),
            max_memory_used_mb: 95,
            init_ms: Some(463.512),
            failure,
        };
        let span = Span { name: "extensionOverhead", start_epoch_ms: 0, duration_ms: 2.5 };
        Platform::Report { report, extension_overhead: Some(span) }
    }

    fn end(failure: Option<FailureStatus>, initialization: InitializationType) -> Platform {
        Platform::InitReport(InitEnd { initialization, phase: Phase::Init, failure, duration_ms: 1.0 })
    }

    #[test]
    fn records_have_aws_s_shape() {
        let check = |event: Platform, expect: Value| {
            let got: Value = serde_json::from_str(&event.json(0)).expect("JSON");
            let time = "1970-01-01T00:00:00.000Z";
            assert_eq!(got, json!({"time": time, "type": event.kind(), "record": expect}));
        };
        check(
            report(None),
            json!({"requestId": "id", "status": "success", "metrics": {
                "durationMs": 1233.96, "billedDurationMs": 1698, "memorySizeMB": 256, "maxMemoryUsedMB": 95,
                "initDurationMs": 463.512},
                "spans": [{"name": "extensionOverhead", "start": "1970-01-01T00:00:00.000Z", "durationMs": 2.5}]}),
        );
        let crash = Some(FailureStatus::Error("Extension.Crash".to_owned()));
        check(
            end(crash, InitializationType::OnDemand),
            json!({"initializationType": "on-demand", "phase": "init", "status": "error",
                "errorType": "Extension.Crash", "metrics": {"durationMs": 1.0}}),
        );
        check(
            Platform::TelemetrySubscription { name: "x".to_owned(), types: vec!["platform"] },
            json!({"name": "x", "state": "Subscribed", "types": ["platform"]}),
        );
        check(
            Platform::LogsDropped { reason: "slow".to_owned(), records: 3, bytes: 99 },
            json!({"reason": "slow", "droppedRecords": 3, "droppedBytes": 99}),
        );
    }

    #[test]
    fn a_log_in_json_shows_what_its_level_allows() {
        let check = |event: &Platform, shown: [bool; 3]| {
            let levels = [SystemLevel::Debug, SystemLevel::Info, SystemLevel::Warn];
            let got = levels.map(|system| {
                let logging = Logging { format: LogFormat::Json, system, ..Logging::default() };
                event.line(&logging, 0).is_some()
            });
            assert_eq!(got, shown, "{event:?}");
        };
        check(&report(None), [true, true, false]);
        check(&report(Some(FailureStatus::Timeout)), [true; 3]);
        check(&end(None, InitializationType::OnDemand), [true, false, false]);
        check(&end(None, InitializationType::ProvisionedConcurrency), [true, true, false]);
        check(&end(Some(FailureStatus::Timeout), InitializationType::OnDemand), [true; 3]);
        let text = report(None).line(&Logging::default(), 0).expect("a line");
        assert!(text.starts_with("REPORT RequestId: id\tDuration: 1233.96 ms"), "{text}");
        assert_eq!(end(None, InitializationType::OnDemand).line(&Logging::default(), 0), None);
    }

    #[test]
    fn extensions_have_lines_of_their_own() {
        let ready = Platform::Extension {
            name: "agent".to_owned(),
            state: "Ready",
            events: vec!["INVOKE", "SHUTDOWN"],
            error_type: None,
        };
        let line = "EXTENSION\tName: agent\tState: Ready\tEvents: [INVOKE, SHUTDOWN]";
        assert_eq!(ready.text().as_deref(), Some(line));
        let failed = Platform::Extension {
            name: "agent".to_owned(),
            state: "InitError",
            events: vec![],
            error_type: Some("Extension.NoKey".to_owned()),
        };
        let line = "EXTENSION\tName: agent\tState: InitError\tEvents: []\tError Type: Extension.NoKey";
        assert_eq!(failed.text().as_deref(), Some(line));
        let telemetry =
            Platform::TelemetrySubscription { name: "agent".to_owned(), types: vec!["platform", "function"] };
        let line = "TELEMETRY\tName: agent\tState: Subscribed\tTypes: [Platform, Function]";
        assert_eq!(telemetry.text().as_deref(), Some(line));
    }
}
