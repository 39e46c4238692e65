//! The closed list of causes.

use danki_record::Level;
use serde::Serialize;

/// What was found. Closed: a reader, and a gate, can act on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Several calls per invocation, and nearly each opened a connection: the client is made anew for each call.
    ClientRecreated,
    /// Invocations open a connection although an earlier one is still open: the client is made in the handler.
    ClientPerInvocation,
    /// Connections are closed by the client right after use.
    KeepAliveOff,
    /// Nearly all calls used a connection that was there.
    ConnectionsKept,
    /// Endpoints closed connections that had been idle.
    ClosedWhileIdle,
    /// The client's own idle timer dropped connections between invocations.
    DroppedByClient,
    /// A connection made during init was dead before the first request used it.
    InitConnectionDead,
    /// A connection that the endpoint had closed was written to, reset, and the call made again.
    StaleSocketReset,
    /// DNS is asked for about every call.
    DnsPerCall,
    /// TLS handshakes start from nothing although a session could be resumed.
    TlsNotResumed,
    /// A good part of the time the quota held the function back.
    Throttled,
    /// Invocations that waited for an env to initialise.
    ColdStarts,
    /// Init itself is long, mostly its own CPU.
    InitHeavy,
    /// Envs initialised again inside an invocation, after a failure.
    InitRepeated,
    /// The first call after init does work that later ones do not.
    LazyFirstCall,
    /// A secret or parameter is fetched in each invocation.
    SecretPerInvocation,
    /// Each call to an extension waits for whole quota periods.
    ExtensionHitPeriods,
    /// Clients of a database's proxy waited for one of its connections.
    DbPoolWait,
    /// Sessions were tied to a connection of a database's proxy.
    DbPin,
    /// Each invocation opened a connection to the database of its own.
    DbConnectionStorm,
    /// Calls given up by the client before their answer, and made again.
    SdkTimeout,
    /// Endpoints answered with faults, and calls were made again.
    RetriesAfterFault,
    /// The env works on after its response.
    PostResponseWork,
    /// Invocations were refused with 429.
    ConcurrencyThrottled,
    /// On-demand cold starts beside provisioned envs.
    PcSpillover,
    /// The service itself takes the time.
    ServiceSlow,
    /// This machine was too busy: not the function's fault.
    HostSaturated,
    /// Invocations failed.
    FunctionErrors,
    /// Memory is nearly used up.
    MemoryNearLimit,
    /// The mean is made by a few stragglers.
    StragglerMean,
    /// Percentiles over too few samples.
    FewSamples,
    /// The difference between variants is within the noise.
    NoiseOverEffect,
}

impl Cause {
    /// What it means for the reader.
    pub fn level(self) -> Level {
        match self {
            Cause::ConnectionsKept => Level::Good,
            Cause::ColdStarts
            | Cause::TlsNotResumed
            | Cause::HostSaturated
            | Cause::StragglerMean
            | Cause::FewSamples
            | Cause::NoiseOverEffect => Level::Note,
            _ => Level::Problem,
        }
    }

    /// As in files: `keep_alive_off`.
    pub fn id(self) -> String {
        let words = format!("{self:?}");
        let mut id = String::new();
        for (at, c) in words.char_indices() {
            if c.is_ascii_uppercase() && at > 0 {
                id.push('_');
            }
            id.push(c.to_ascii_lowercase());
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_serialised() {
        for cause in [Cause::KeepAliveOff, Cause::DnsPerCall, Cause::Throttled, Cause::PcSpillover] {
            let json = format!("{:?}", cause.id());
            assert_eq!(serde_json::to_string(&cause).expect("a word"), json);
        }
    }
}
