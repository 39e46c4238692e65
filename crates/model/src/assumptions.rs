//! Every mechanism danki stands on, with how sure it is. Reports name those that their verdict leans on; `docs/validity.md` is
//! [`validity`], printed by `danki validate --assumptions`.

mod page;

pub use page::validity;

use Part::{Cpu, Environment, Network};
use Status::{Assumed, Documented, MeasuredOnAws};
use std::fmt;

/// What a mechanism is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// CPU time and its lattice.
    Cpu,
    /// The life of an execution environment, and what it costs.
    Environment,
    /// The way to the region, and the region's services.
    Network,
}

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
    /// What it is part of.
    pub part: Part,
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
    part: Part,
    mechanism: &'static str,
    value: &'static str,
    status: Status,
    source: &'static str,
    note: &'static str,
) -> Assumption {
    Assumption { part, mechanism, value, status, source, note }
}

/// All of them, in the order of an invocation.
pub const ALL: &[Assumption] = &[
    row(
        Cpu,
        "CPU share",
        "memory / 1,769 vCPU",
        Documented,
        "AWS docs, configuration-memory; T1 measured .0723, .1325, .2899, .5805 at 128, 256, 512, 1,024 MB",
        "at 256 MB AWS itself was 8 % below its own rule",
    ),
    row(
        Cpu,
        "CPU period",
        "20 ms, quota 20,000 µs × memory / 1,769",
        MeasuredOnAws,
        "T1: wall times of small pieces of work lie on multiples of 20 ms",
        "",
    ),
    row(
        Cpu,
        "refill of the quota",
        "on a scheduler's tick of 4 ms",
        MeasuredOnAws,
        "T1, one run: estimated from 128 MB alone it explains 256, 512 and 1,024 MB (decisions/2026-11-21-quota-and-tick-are-in-phase.md)",
        "decides how long a burst between two pauses is. Were it drawn for each environment, the 20 ms histogram of T1's loop would be 0.22 \
         away from AWS's on average and 0.35 at most at 128 MB, instead of 0.13; quota_phase = drawn compares. Depends on this kernel's tick: \
         danki doctor",
    ),
    row(
        Cpu,
        "visible CPUs",
        "2 up to 3,008 MB, then 3, 4, 5, 6",
        MeasuredOnAws,
        "T17: rwnx/lambda-cpuinfo; re-tested 2025-10",
        "the quota is shared by all of them",
    ),
    row(
        Cpu,
        "CPU speed",
        "the host's core",
        Assumed,
        "danki calibrate",
        "a host core is not a Lambda vCPU; the factor is printed, --cpu-model scaled applies it where sound",
    ),
    row(
        Cpu,
        "init boost",
        "1 vCPU during on-demand init, none in suppressed or provisioned init",
        MeasuredOnAws,
        "init flat in memory: cebert 2025-11, maxday 2026; M. Hart 2019",
        "how many vCPUs the boost gives is not known",
    ),
    row(
        Environment,
        "init limit",
        "10 s, then again inside the first invocation",
        Documented,
        "AWS docs, lambda-runtime-environment",
        "",
    ),
    row(
        Environment,
        "freeze",
        "all processes stop after the last /next",
        Documented,
        "AWS docs, lambda-runtime-environment",
        "clocks run on; done with the cgroup freezer",
    ),
    row(
        Environment,
        "network while frozen",
        "packets are held and delivered at thaw",
        Assumed,
        "Lambda pauses the whole virtual machine",
        "bare acknowledgments pass, so that keep-alive timers, which a paused machine would not run, end no connection; while_frozen = pass \
         compares",
    ),
    row(
        Environment,
        "event after thaw",
        "held packets first in three of four thaws, then the event",
        Assumed,
        "field report S0: one of four dead connections was noticed late",
        "decides between a clean reconnect and a reset with retry; seeded",
    ),
    row(
        Environment,
        "network after an event that comes first",
        "held packets follow 10 ms after the thaw",
        Assumed,
        "field report S0: call 8 changed its port without a new socket being made",
        "long enough for a runtime at 128 MB to use a stale socket",
    ),
    row(
        Environment,
        "trusted roots that a function loads",
        "all of this machine's, and danki's own",
        Assumed,
        "nothing is published",
        "S3 takes a fifth: OpenSSL 3.0 loads them about 5 times slower than the 1.1.1 of 2020 (cpython issue 95031)",
    ),
    row(
        Environment,
        "idle lifetime",
        "6 min",
        MeasuredOnAws,
        "mikhail.io, about 2021: 5 to 7 min",
        "earlier measurements: 10 to 60 min",
    ),
    row(
        Environment,
        "reset",
        "processes killed, /tmp kept, init inside the next invocation",
        MeasuredOnAws,
        "LocalStack snapshots recorded on AWS, 2025-11",
        "",
    ),
    row(
        Environment,
        "provisioned concurrency delay",
        "READY 84.6 s after the last init",
        MeasuredOnAws,
        "field report S0, 2024-03: 87.06 - 2.40 and 86.85 - 2.23 s",
        "an upper bound: S0 has INIT_START, Init Duration and the first call after READY; time scales it",
    ),
    row(
        Environment,
        "age of provisioned environments",
        "replaced after 1 h, the new one is ready before the old one goes",
        MeasuredOnAws,
        "M. Hart 2019: inits about hourly",
        "AWS documents only that they are replaced",
    ),
    row(
        Environment,
        "claim of provisioned concurrency",
        "the requested amount counts from the request on",
        Assumed,
        "AWS docs say that it counts, not since when",
        "other versions of a function with as much reserved concurrency throttle during allocation too",
    ),
    row(
        Environment,
        "a function that grows too fast",
        "1,000 environments, then 100 per second; throttles with ConcurrentInvocationLimitExceeded",
        Documented,
        "AWS docs, scaling-behavior",
        "the reason of that throttle is assumed",
    ),
    row(
        Network,
        "endpoint idle cut-off",
        "62.5 s for DynamoDB",
        MeasuredOnAws,
        "field report S0, 2024-03: 60.03 s kept, 65.6 s closed",
        "the true value lies between; others report about 60 and 90 s",
    ),
    row(
        Network,
        "service time",
        "log-normal, median 2 ms, p99 8 ms, at most 9 ms",
        MeasuredOnAws,
        "field reports S0: SuccessfulRequestLatency under 10 ms; S3: 5.6 ms per read with SDK and round trip",
        "the distribution's shape is assumed",
    ),
    row(
        Network,
        "first request on a connection",
        "a call to KMS more, 5 ms at the median, within the service time's bound; configurable",
        Assumed,
        "a table's key is kept per connection (S1; fhir-works-on-aws-deployment#639, aws-sdk-go-v2#2129); 6.45 ms for a call to KMS from Lambda (AJ Stuyvenberg, 2024), less the round trip",
        "S0 bounds the sum below 10 ms; what a call inside of AWS takes is not published",
    ),
    row(
        Network,
        "round trip to regional endpoints",
        "1 ms",
        Assumed,
        "published TCP connects of 0.7 ms (shinyaz.com 2026-03); T3's warm pairs of DynamoDB calls in 7 to 10 ms leave room for no more",
        "differs by zone and service; per destination configurable",
    ),
    row(
        Network,
        "certificate chain",
        "RSA-2048 leaf and intermediate",
        Assumed,
        "typical of AWS endpoints",
        "verification is CPU that a small function pays",
    ),
    row(
        Environment,
        "billing",
        "ceil(duration + init) ms",
        MeasuredOnAws,
        "AWS blog 2025-08-01; checked against recorded REPORT lines",
        "",
    ),
    row(
        Environment,
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
