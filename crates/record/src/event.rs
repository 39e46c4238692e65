//! What can be recorded: one line of `events.jsonl` each.

use danki_model::{ConnId, EnvId, InitializationType, RequestId};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// One recorded fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Something happened to an execution environment (written by `host`).
    Env(EnvEvent),
    /// One line of the function's log: platform lines and the function's own output (written by `host`).
    Log(LogLine),
    /// One invocation, written when it is finished (written by `host`).
    Invocation(Invocation),
    /// An invocation that was not taken (written by `host`).
    Refused(Refused),
    /// CPU accounting of an env during one invocation or init (written by `host`).
    Cpu(CpuSeries),
    /// How long an env's runtime was ready to run and did not, during one invocation or init (written by `host`).
    CpuWait(CpuWaitSeries),
    /// One DNS query answered beside the env (written by `region`).
    Dns(DnsQuery),
    /// One TCP connection, written when it ends or when the run ends (written by `link`).
    Connection(Connection),
    /// A stretch of time in which the link held at least one packet of a connection (written by `link`).
    Flight(Flight),
    /// One request served by an endpoint of the region (written by `region`).
    Request(Request),
    /// What happened at a proxy before a database of the region (written by `database`).
    Database(DatabaseEvent),
    /// The tracing header that an invocation was delivered with (written by `host`).
    Trace(TraceHeader),
    /// One X-Ray segment document that a function sent to the daemon (written by `region`).
    Segment(SegmentDocument),
    /// Something that a reader of the results must know.
    Caveat {
        /// One sentence.
        text: String,
    },
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Begin, ns.
    pub from_ns: u64,
    /// End, ns; never before the begin.
    pub to_ns: u64,
}

impl Span {
    /// Length in ns.
    pub fn len_ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// A change in an env's life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvEvent {
    /// When.
    pub at_ns: u64,
    /// Which env.
    pub env: EnvId,
    /// The variant it belongs to.
    pub variant: String,
    /// What happened.
    #[serde(flatten)]
    pub what: EnvWhat,
}

/// What happened to an env.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum EnvWhat {
    /// The decision to create it.
    Creating {
        /// Why it is created.
        initialization: InitializationType,
    },
    /// The runtime's process was executed.
    Started,
    /// Its init phase ended.
    InitDone {
        /// Begin and end of init.
        span: Span,
        /// `init`, or `invoke` when suppressed.
        phase: String,
        /// `success`, `error` or `timeout`.
        status: String,
    },
    /// It was frozen.
    Frozen,
    /// It was thawed.
    Thawed,
    /// Its processes were killed; `/tmp` was kept.
    Reset {
        /// `timeout` or `failure`.
        reason: String,
    },
    /// It is gone.
    Ended {
        /// `spindown`, `failure`, `run-end`…
        reason: String,
    },
}

/// One line of a function's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// When danki read it.
    pub at_ns: u64,
    /// Which env.
    pub env: EnvId,
    /// `platform`, `stdout`, `stderr` or `extension`.
    pub source: String,
    /// The line, without its newline.
    pub line: String,
}

/// How an invocation found its env.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// An env was created and initialised for it.
    Cold,
    /// An initialised env was idle.
    Warm,
    /// The env had been reset: it initialised again inside the invocation.
    Suppressed,
}

/// How an invocation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// The function answered.
    Ok,
    /// The function reported an error, or the platform did for it.
    Error {
        /// `errorType` of the payload, e.g. `Runtime.ExitError`.
        error_type: String,
    },
    /// The function's timeout passed.
    Timeout,
}

/// One invocation. Times that were not reached are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// Its id.
    pub request_id: RequestId,
    /// The variant it belongs to.
    pub variant: String,
    /// Ordinal within the variant, from 0.
    pub index: u32,
    /// It only kept its env from idling, and counts as none of the variant's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ping: bool,
    /// The env that served it.
    pub env: EnvId,
    /// Why that env exists.
    #[serde(default)]
    pub initialization: InitializationType,
    /// How it found its env.
    pub start: Start,
    /// When the load's schedule wanted it sent.
    pub intended_ns: u64,
    /// When it was sent: its span begins here.
    pub dispatched_ns: u64,
    /// Waiting for an env to exist or become free, up to the start of its init or thaw.
    pub env_wait: Option<Span>,
    /// Init on the caller's path.
    pub init: Option<Span>,
    /// Thaw on the caller's path.
    pub thaw: Option<Span>,
    /// When the event was handed to the runtime (its `/next` was answered).
    pub delivered_ns: Option<u64>,
    /// When the answer was there: its span ends here.
    pub responded_ns: u64,
    /// When the runtime asked for the next event, or was killed.
    pub finished_ns: u64,
    /// How it ended.
    #[serde(flatten)]
    pub status: Status,
    /// `Duration` of the REPORT line.
    pub duration_ms: f64,
    /// `Billed Duration` of the REPORT line.
    pub billed_ms: u64,
    /// `Init Duration` of the REPORT line.
    pub init_ms: Option<f64>,
    /// `Max Memory Used` of the REPORT line.
    pub max_memory_used_mb: u32,
    /// CPU time used between delivery and finish, µs.
    pub cpu_us: u64,
    /// Time throttled between delivery and finish, µs, as the kernel accounts it (summed over CPUs).
    pub throttled_us: u64,
    /// CPU bandwidth periods in which the env was throttled.
    pub throttled_periods: u64,
    /// Size of the response in bytes.
    pub response_bytes: u64,
}

/// An invocation that was throttled: nothing of it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// When.
    pub at_ns: u64,
    /// The variant it belongs to.
    pub variant: String,
    /// Ordinal within the variant, from 0.
    pub index: u32,
    /// The `Reason` of a 429 answer, e.g. `ReservedFunctionConcurrentInvocationLimitExceeded`.
    pub reason: String,
}

/// CPU accounting of an env, sampled; first and last samples are exact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuSeries {
    /// Which env.
    pub env: EnvId,
    /// Samples in order of time; counters are cumulative.
    pub samples: Vec<CpuSample>,
}

/// Cumulative CPU counters of an env at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSample {
    /// When they were read.
    pub at_ns: u64,
    /// CPU time used, ns.
    pub usage_ns: u64,
    /// Time throttled, ns, booked by the kernel when a throttle *ends*, summed over CPUs.
    pub throttled_ns: u64,
}

/// Samples of how long CPU time was not to be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuWaitSeries {
    /// Which env.
    pub env: EnvId,
    /// Who counted.
    #[serde(default)]
    pub counted: CpuWaitCounted,
    /// In order of time.
    pub samples: Vec<CpuWaitSample>,
}

/// What the samples of a [`CpuWaitSeries`] count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuWaitCounted {
    /// Time in which the first thread of the env's runtime was ready to run and did not. Throttled time is part of it.
    #[default]
    Ready,
    /// Time in which the hypervisor had taken a CPU of this machine.
    Stolen,
}

/// A cumulative counter at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuWaitSample {
    /// When it was read.
    pub at_ns: u64,
    /// Time without a CPU so far, ns, booked by the kernel when a wait *ends*.
    pub waited_ns: u64,
}

/// One DNS query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DnsQuery {
    /// Which env asked.
    pub env: EnvId,
    /// The name asked for.
    pub name: String,
    /// `A`, `AAAA`…
    pub qtype: String,
    /// From question to answer.
    #[serde(flatten)]
    pub span: Span,
    /// Response code, e.g. `NOERROR`.
    pub rcode: String,
}

/// Who ended a connection first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedBy {
    /// The env sent the first FIN.
    Client,
    /// The endpoint sent the first FIN.
    Server,
    /// The env sent RST before any FIN.
    ClientReset,
    /// The endpoint sent RST before any FIN.
    ServerReset,
}

/// One TCP connection between an env and the region, as the link saw it at the env's edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Its id.
    pub conn: ConnId,
    /// The env that opened it.
    pub env: EnvId,
    /// The env's address and port.
    pub client: SocketAddr,
    /// The endpoint's address and port.
    pub server: SocketAddr,
    /// When the first SYN left the env.
    pub syn_ns: u64,
    /// When the SYN-ACK reached the env. Absent: never established.
    pub established_ns: Option<u64>,
    /// When the ACK of the SYN-ACK left the env.
    pub acked_ns: Option<u64>,
    /// First payload byte in either direction.
    pub first_byte_ns: Option<u64>,
    /// Last payload byte in either direction.
    pub last_byte_ns: Option<u64>,
    /// A TLS ClientHello was seen.
    pub client_hello_ns: Option<u64>,
    /// Payload bytes from the env.
    pub bytes_up: u64,
    /// Payload bytes to the env.
    pub bytes_down: u64,
    /// Segments whose payload had been seen before.
    pub retransmits: u32,
    /// Stretches of at least 1 ms without a payload byte that were followed by payload from the env.
    pub idle: Vec<Idle>,
    /// Who ended it; absent while open.
    pub closed_by: Option<ClosedBy>,
    /// When the first FIN or RST was seen.
    pub closed_ns: Option<u64>,
    /// When that FIN or RST reached the env, if the endpoint sent it (later, if the env was frozen).
    pub close_delivered_ns: Option<u64>,
}

/// A pause on a connection that ended with its reuse.
pub type Idle = Span;

/// A stretch of time in which at least one packet of this connection was inside the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flight {
    /// Which connection.
    pub conn: ConnId,
    /// Which env.
    pub env: EnvId,
    /// From the first packet's entry to the last packet's release.
    #[serde(flatten)]
    pub span: Span,
    /// The first packet brought bytes from the endpoint: what passed since the flight before was the endpoint's time.
    #[serde(default)]
    pub answers: bool,
}

/// TLS handshake of a connection, as the endpoint saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// From accept to handshake complete.
    #[serde(flatten)]
    pub span: Span,
    /// A session was resumed.
    pub resumed: bool,
    /// `TLSv1.3`…
    pub version: String,
    /// Server name asked for.
    pub server_name: Option<String>,
}

/// One request at an endpoint of the region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// `dynamodb`, `secretsmanager`…
    pub service: String,
    /// `GetItem`…
    pub operation: String,
    /// The client's address and port: joins with [`Connection::client`].
    pub client: SocketAddr,
    /// 1 for the first request on its connection.
    pub ordinal: u32,
    /// The connection's handshake; only with the first request.
    pub tls: Option<Tls>,
    /// First byte of the request read, to the whole request read.
    pub received: Span,
    /// Whole request read, to the response handed to the socket: the service's own time.
    pub service_time: Span,
    /// HTTP status.
    pub status: u16,
    /// The fault that was injected, if any.
    pub fault: Option<String>,
    /// Which attempt of the same call it is, from 1, as AWS's SDKs say in `amz-sdk-request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// Something that happened at a proxy before a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatabaseEvent {
    /// When.
    pub at_ns: u64,
    /// The proxy's name.
    pub proxy: String,
    /// Where the proxy listens.
    pub server: SocketAddr,
    /// The client's address and port: joins with [`Connection::client`].
    pub client: Option<SocketAddr>,
    /// What happened.
    #[serde(flatten)]
    pub what: DatabaseWhat,
}

/// What happened at a proxy. Connections to the database are numbered by the proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum DatabaseWhat {
    /// It has opened a connection to the database.
    Opened {
        /// Which.
        conn: u64,
    },
    /// A connection to the database has ended.
    Closed {
        /// Which.
        conn: u64,
    },
    /// A client has got a connection to the database.
    Borrowed {
        /// Which.
        conn: u64,
        /// How long it had waited, ns.
        waited_ns: u64,
    },
    /// A client has waited for a connection in vain.
    TimedOut {
        /// How long, ns.
        waited_ns: u64,
    },
    /// A statement is answered.
    Answered {
        /// From its last byte to the last of the reply, ns.
        took_ns: u64,
    },
    /// A client has tied its connection to the database to itself for as long as it lives.
    Pinned {
        /// Why, in RDS Proxy's words.
        reason: String,
        /// The statement, without its values.
        digest: String,
    },
}

/// The tracing header of one invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// When it was delivered.
    pub at_ns: u64,
    /// Which env.
    pub env: EnvId,
    /// Whose.
    pub request_id: RequestId,
    /// `Root=1-…;Parent=…;Sampled=1`
    pub header: String,
}

/// A segment or subsegment as an X-Ray SDK sent it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentDocument {
    /// When its datagram arrived.
    pub at_ns: u64,
    /// Which env sent it.
    pub env: EnvId,
    /// The document: one JSON object of at most 64 kB.
    pub document: serde_json::Value,
}
