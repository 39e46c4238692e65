//! Lambda's log lines, to the character (`lambda-platform.md` §5: recorded on AWS 2025–26 and AWS docs).
//!
//! Each function returns one log record without its final newline. A record may hold a newline inside
//! (`Task timed out` is followed by an empty line; a crash names its type on a second line).

use crate::lifecycle::Phase;
use crate::time::{civil, iso};
use crate::{MemoryMb, RequestId, Runtime, platform_error};

/// The version of a function that has not been published.
pub const LATEST: &str = "$LATEST";

/// `INIT_START Runtime Version: …`.
pub fn init_start(runtime_version: &str, runtime_version_arn: &str) -> String {
    format!("INIT_START Runtime Version: {runtime_version}\tRuntime Version ARN: {runtime_version_arn}")
}

/// A runtime's version as INIT_START prints it, and an ARN of AWS's form. AWS numbers its builds and hashes them; ours has number 0,
/// and a hash of its name stands for the build.
pub fn runtime_version(runtime: Runtime) -> (String, String) {
    let name = match runtime {
        Runtime::NodeJs(major) => format!("nodejs:{major}.v0"),
        Runtime::Python(minor) => format!("python:3.{minor}.v0"),
        Runtime::Php(_) | Runtime::Provided => "provided:al2023.v0".to_owned(),
    };
    // FNV-1a, 64 bits.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let arn = format!("arn:aws:lambda:us-east-1::runtime:{hash:064x}");
    (name, arn)
}

/// `START RequestId: …`.
pub fn start(request: &RequestId, version: &str) -> String {
    format!("START RequestId: {request} Version: {version}")
}

/// `END RequestId: …`.
pub fn end(request: &RequestId) -> String {
    format!("END RequestId: {request}")
}

/// How REPORT and INIT_REPORT name a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureStatus {
    /// `Status: timeout`
    Timeout,
    /// `Status: error`, with its `Error Type`.
    Error(String),
}

impl FailureStatus {
    fn suffix(&self) -> String {
        match self {
            FailureStatus::Timeout => "\tStatus: timeout".to_owned(),
            FailureStatus::Error(kind) => format!("\tStatus: error\tError Type: {kind}"),
        }
    }
}

/// What a REPORT line says.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The invocation.
    pub request: RequestId,
    /// Duration in ms, without init of the init phase.
    pub duration_ms: f64,
    /// Billed duration in ms.
    pub billed_ms: u64,
    /// The function's memory size.
    pub memory: MemoryMb,
    /// Peak of the env's memory in MB.
    pub max_memory_used_mb: u32,
    /// Duration of the init phase in ms; only with the first invocation of an env whose init phase succeeded.
    pub init_ms: Option<f64>,
    /// Present when the platform ended the invocation.
    pub failure: Option<FailureStatus>,
}

/// `REPORT RequestId: …`: ends with a tab unless a failure status follows.
pub fn report(r: &Report) -> String {
    let init = r.init_ms.map(|ms| format!("\tInit Duration: {ms:.2} ms")).unwrap_or_default();
    let end = r.failure.as_ref().map_or_else(|| "\t".to_owned(), FailureStatus::suffix);
    format!(
        "REPORT RequestId: {}\tDuration: {:.2} ms\tBilled Duration: {} ms\tMemory Size: {}\tMax Memory Used: {} MB{init}{end}",
        r.request, r.duration_ms, r.billed_ms, r.memory, r.max_memory_used_mb
    )
}

/// `INIT_REPORT Init Duration: …`: written only when an on-demand init failed.
pub fn init_report(init_ms: f64, phase: Phase, failure: &FailureStatus) -> String {
    let phase = match phase {
        Phase::Init => "init",
        Phase::Invoke => "invoke",
    };
    format!("INIT_REPORT Init Duration: {init_ms:.2} ms\tPhase: {phase}{}", failure.suffix())
}

/// `2025-… <uuid> Task timed out after 3.00 seconds`, with the empty line that follows it.
pub fn task_timed_out(epoch_ms: u64, request: &RequestId, timeout_ms: u64) -> String {
    format!("{} {request} {}\n", iso(epoch_ms), platform_error::timed_out(timeout_ms))
}

/// `RequestId: … Error: Runtime exited with error: exit status 1`, then the type.
pub fn crash(request: &RequestId, message: &str, error_type: &str) -> String {
    format!("RequestId: {request} Error: {message}\n{error_type}")
}

/// `EXTENSION Name: …`, written when init ends.
pub fn extension(name: &str, state: &str, events: &[&str], error_type: Option<&str>) -> String {
    let error = error_type.map(|kind| format!("\tError Type: {kind}")).unwrap_or_default();
    format!("EXTENSION\tName: {name}\tState: {state}\tEvents: [{}]{error}", events.join(", "))
}

/// `TELEMETRY Name: …`, written when an extension subscribes.
pub fn telemetry(name: &str, types: &[&str]) -> String {
    let capital = |word: &&str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    };
    let types: Vec<String> = types.iter().map(capital).collect();
    format!("TELEMETRY\tName: {name}\tState: Subscribed\tTypes: [{}]", types.join(", "))
}

/// `/aws/lambda/<function>`.
pub fn group_name(function: &str) -> String {
    format!("/aws/lambda/{function}")
}

/// `YYYY/MM/DD/[$LATEST]<32 hex>`, from the env's creation time and 128 random bits.
pub fn stream_name(epoch_ms: u64, version: &str, bits: u128) -> String {
    let t = civil(epoch_ms);
    format!("{:04}/{:02}/{:02}/[{version}]{bits:032x}", t.year, t.month, t.day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_has_a_version_and_an_arn() {
        let (name, arn) = runtime_version(Runtime::NodeJs(20));
        assert_eq!(name, "nodejs:20.v0");
        let hash = arn.strip_prefix("arn:aws:lambda:us-east-1::runtime:").expect("AWS's form");
        assert!(hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{hash}");
        assert_ne!(runtime_version(Runtime::Python(11)).1, runtime_version(Runtime::Python(12)).1);
    }

    fn id() -> RequestId {
        RequestId("8f507cfc-0000-4697-b07a-ac58fc914c95".to_owned())
    }

    #[test]
    fn lines_are_as_recorded() {
        assert_eq!(
            start(&id(), LATEST),
            "START RequestId: 8f507cfc-0000-4697-b07a-ac58fc914c95 Version: $LATEST"
        );
        assert_eq!(end(&id()), "END RequestId: 8f507cfc-0000-4697-b07a-ac58fc914c95");
        assert_eq!(
            init_start("python:3.13.v30", "arn:x"),
            "INIT_START Runtime Version: python:3.13.v30\tRuntime Version ARN: arn:x"
        );
        assert_eq!(
            init_report(10_009.92, Phase::Init, &FailureStatus::Timeout),
            "INIT_REPORT Init Duration: 10009.92 ms\tPhase: init\tStatus: timeout"
        );
        assert_eq!(
            init_report(87.28, Phase::Invoke, &FailureStatus::Error("Runtime.ImportModuleError".to_owned())),
            "INIT_REPORT Init Duration: 87.28 ms\tPhase: invoke\tStatus: error\tError Type: Runtime.ImportModuleError"
        );
        assert_eq!(
            task_timed_out(0, &id(), 3_000),
            "1970-01-01T00:00:00.000Z 8f507cfc-0000-4697-b07a-ac58fc914c95 Task timed out after 3.00 seconds\n"
        );
        assert_eq!(
            crash(&id(), "Runtime exited with error: exit status 1", "Runtime.ExitError"),
            "RequestId: 8f507cfc-0000-4697-b07a-ac58fc914c95 Error: Runtime exited with error: exit status 1\nRuntime.ExitError"
        );
        assert_eq!(
            stream_name(951_782_400_000, LATEST, 0xabc),
            format!("2000/02/29/[$LATEST]{:032x}", 0xabc)
        );
    }

    #[test]
    fn report_lines() {
        let check = |init_ms, failure, tail: &str| {
            let memory = MemoryMb::try_from(2_048).expect("in range");
            let r = Report {
                request: id(),
                duration_ms: 3.1,
                billed_ms: 546,
                memory,
                max_memory_used_mb: 95,
                init_ms,
                failure,
            };
            let head = "REPORT RequestId: 8f507cfc-0000-4697-b07a-ac58fc914c95\tDuration: 3.10 ms\tBilled Duration: 546 ms\tMemory Size: 2048 MB\tMax Memory Used: 95 MB";
            assert_eq!(report(&r), format!("{head}{tail}"));
        };
        check(Some(542.01), None, "\tInit Duration: 542.01 ms\t");
        check(None, None, "\t");
        check(None, Some(FailureStatus::Timeout), "\tStatus: timeout");
        let oom = FailureStatus::Error("Runtime.OutOfMemory".to_owned());
        check(
            Some(1.0),
            Some(oom),
            "\tInit Duration: 1.00 ms\tStatus: error\tError Type: Runtime.OutOfMemory",
        );
    }
}
