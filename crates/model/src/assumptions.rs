//! Every mechanism danki stands on, with how sure it is: printed into `docs/validity.md` and named by reports whose
//! verdict leans on one.

use Status::{Assumed, Documented, MeasuredOnAws};
use std::fmt;

/// How sure a mechanism is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Somebody measured or recorded it on AWS.
    MeasuredOnAws,
    /// AWS's documentation or source says so.
    Documented,
    /// Inferred, or a guess; make it a knob and show what depends on it.
    Assumed,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MeasuredOnAws => "measured on AWS",
            Documented => "documented",
            Assumed => "assumed",
        })
    }
}

/// One mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// Short name, unique.
    pub mechanism: &'static str,
    /// Danki's default.
    pub value: &'static str,
    /// How sure it is.
    pub status: Status,
    /// Where it comes from.
    pub source: &'static str,
    /// What to know before leaning on it.
    pub note: &'static str,
}

const fn row(
    mechanism: &'static str,
    value: &'static str,
    status: Status,
    source: &'static str,
    note: &'static str,
) -> Assumption {
    Assumption { mechanism, value, status, source, note }
}

/// All of them, in the order of an invocation.
pub const ALL: &[Assumption] = &[
    row(
        "CPU share",
        "memory / 1,769 vCPU",
        Documented,
        "AWS docs, configuration-memory",
        "AWS itself was at 0.1325 instead of 0.1447 at 256 MB (pwrdrvr 2025-03)",
    ),
    row(
        "CPU period",
        "20 ms, quota 20,000 µs × memory / 1,769",
        MeasuredOnAws,
        "pwrdrvr/lambda-throttling, 2025-03",
        "the length of pauses also depends on the host kernel's tick (HZ) and throttling code; printed with results",
    ),
    row(
        "visible CPUs",
        "2 up to 3,008 MB, then 3, 4, 5, 6",
        MeasuredOnAws,
        "rwnx/lambda-cpuinfo; re-tested 2025-10",
        "the quota is shared by all of them",
    ),
    row(
        "CPU speed",
        "the host's core",
        Assumed,
        "danki calibrate",
        "a host core is not a Lambda vCPU; the factor is printed, --cpu-model scaled applies it where sound",
    ),
    row(
        "init boost",
        "1 vCPU during on-demand init, none in suppressed or provisioned init",
        MeasuredOnAws,
        "init flat in memory: cebert 2025-11, maxday 2026; M. Hart 2019",
        "how many vCPUs the boost gives is not known",
    ),
    row(
        "init limit",
        "10 s, then again inside the first invocation",
        Documented,
        "AWS docs, lambda-runtime-environment",
        "",
    ),
    row(
        "freeze",
        "all processes stop after the last /next",
        Documented,
        "AWS docs, lambda-runtime-environment",
        "clocks run on; done with the cgroup freezer",
    ),
    row(
        "network while frozen",
        "packets are held and delivered at thaw",
        Assumed,
        "Lambda pauses the whole virtual machine",
        "while_frozen = pass compares",
    ),
    row(
        "event after thaw",
        "held packets first in three of four thaws, then the event",
        Assumed,
        "field report S0: one of four dead connections was noticed late",
        "decides between a clean reconnect and a reset with retry; seeded",
    ),
    row(
        "network after an event that comes first",
        "held packets follow 10 ms after the thaw",
        Assumed,
        "field report S0: call 8 changed its port without a new socket being made",
        "long enough for a runtime at 128 MB to use a stale socket",
    ),
    row(
        "idle lifetime",
        "6 min",
        MeasuredOnAws,
        "mikhail.io, about 2021: 5 to 7 min",
        "earlier measurements: 10 to 60 min",
    ),
    row(
        "reset",
        "processes killed, /tmp kept, init inside the next invocation",
        MeasuredOnAws,
        "LocalStack snapshots recorded on AWS, 2025-11",
        "",
    ),
    row(
        "provisioned concurrency delay",
        "87 s",
        MeasuredOnAws,
        "field report S0, 2024-03: 87.06 and 86.85 s",
        "an upper bound: time from INIT_START to the first call after READY",
    ),
    row(
        "endpoint idle cut-off",
        "62.5 s for DynamoDB",
        MeasuredOnAws,
        "field report S0, 2024-03: 60.03 s kept, 65.6 s closed",
        "the true value lies between; others report about 60 and 90 s",
    ),
    row(
        "service time",
        "median 2 ms, p99 8 ms, below 10 ms",
        MeasuredOnAws,
        "field reports S0: SuccessfulRequestLatency under 10 ms; S3: 5.6 ms per read with SDK and round trip",
        "the distribution's shape is assumed",
    ),
    row(
        "first request on a connection",
        "extra service time, configurable",
        Assumed,
        "field report S1 names the per-connection key cache",
        "its size has not been published",
    ),
    row(
        "round trip to regional endpoints",
        "1 ms",
        Assumed,
        "published TCP connects of 0.7 ms (shinyaz.com 2026-03)",
        "differs by zone and service; per destination configurable",
    ),
    row(
        "certificate chain",
        "RSA-2048 leaf and intermediate",
        Assumed,
        "typical of AWS endpoints",
        "verification is CPU that a small function pays",
    ),
    row(
        "billing",
        "ceil(duration + init) ms",
        MeasuredOnAws,
        "AWS blog 2025-08-01; checked against recorded REPORT lines",
        "",
    ),
    row(
        "out-of-memory payload",
        "Runtime.OutOfMemory, signal: killed",
        Assumed,
        "the REPORT line's type is recorded, the payload's is not",
        "",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_mechanism_is_listed_once_with_value_and_source() {
        let names: BTreeSet<_> = ALL.iter().map(|a| a.mechanism).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|a| !a.value.is_empty() && !a.source.is_empty()));
    }
}
