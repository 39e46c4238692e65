//! How environments behave: the knobs of `host`, each with Lambda's value as its default.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use danki_model::{CpuModel, EnvId};

/// Serves DNS on an env's resolver socket until the returned guard is dropped.
pub type DnsServer = Arc<dyn Fn(EnvId, UdpSocket) -> Box<dyn Send + Sync> + Send + Sync>;

/// Serves as the X-Ray daemon of an env on its two sockets until the returned guard is dropped.
pub type XRayServer = Arc<dyn Fn(EnvId, UdpSocket, TcpListener) -> Box<dyn Send + Sync> + Send + Sync>;

/// Active tracing: a daemon beside each env, and traces that are kept.
#[derive(Clone)]
pub struct Tracing {
    /// Share of invocations whose header says `Sampled=1`, 0 to 1.
    pub sampling: f64,
    /// The daemon.
    pub serve: XRayServer,
}

impl fmt::Debug for Tracing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tracing {{ sampling: {} }}", self.sampling)
    }
}

/// What happens to packets of an env that is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhileFrozen {
    /// The link keeps them until the thaw: Lambda pauses a whole virtual machine, its TCP stack included.
    Hold,
    /// They pass, so that the kernel acknowledges them: what a bare cgroup freezer would do.
    Pass,
}

/// What a thawed runtime sees first: packets that came while it was frozen (a FIN, say), or the event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThawOrder {
    /// Held packets first: a stale socket is noticed, the client connects anew.
    NetworkFirst,
    /// The event first: a stale socket may be reused, reset and retried.
    EventFirst,
    /// Drawn for each thaw: the event is first with this probability.
    Mixed(f64),
}

/// When within a scheduler's tick the CPU quota is refilled: decides how long a burst between two pauses is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuotaPhase {
    /// On a tick, as it is on Lambda: `docs/decisions/2026-11-21-quota-and-tick-are-in-phase.md`.
    #[default]
    Aws,
    /// As this machine's kernel draws it for each env.
    Drawn,
}

/// How all envs of a run behave.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Name of the run; part of host names and log streams.
    pub run: String,
    /// Freeze envs between invocations.
    pub freezer: bool,
    /// Packets of a frozen env.
    pub while_frozen: WhileFrozen,
    /// What a thawed runtime sees first. S0's stale socket in one of four dead connections suggests 0.25 (assumed).
    pub thaw_order: ThawOrder,
    /// How long after the thaw held packets follow, when the event comes first: a runtime needs milliseconds from event to first request.
    pub network_after_event: Duration,
    /// On-demand init runs at one full vCPU whatever the memory size (published tables T2–T4: init is flat in memory).
    pub init_boost: bool,
    /// Limit of an on-demand init.
    pub init_limit: Duration,
    /// An env that was idle this long is ended (mikhail.io: 5–7 min).
    pub idle_ttl: Duration,
    /// Envs that may exist at once on this machine; an idle one makes room.
    pub max_envs: usize,
    /// Invocations that may run at once in the account.
    pub account_limit: u32,
    /// Time between the last init of provisioned concurrency and READY. S0's two runs: 87.06 - 2.40 s and 86.85 - 2.23 s.
    pub pc_settle: Duration,
    /// A provisioned env is replaced at this age (M. Hart 2019 saw inits about hourly).
    pub pc_max_age: Duration,
    /// Divides `idle_ttl`, `pc_settle` and `pc_max_age`.
    pub time_scale: f64,
    /// Whether CPU quotas follow Lambda's numbers or this host's speed.
    pub cpu_model: CpuModel,
    /// When CPU quotas are refilled.
    pub quota_phase: QuotaPhase,
    /// Seed of all draws.
    pub seed: u64,
    /// Root certificate of the run's CA, PEM.
    pub ca_root_pem: String,
    /// How many of the system's trusted roots functions load; all if absent.
    pub roots: Option<usize>,
    /// CPU profiles of Node functions go to this directory, one per invocation; they cost CPU. It must exist, for all to write.
    pub profiles: Option<PathBuf>,
    /// Where `node` and `python3` are looked for.
    pub search_path: Vec<PathBuf>,
    /// Segmentation offload of the envs' network cards; must be what the link is configured for.
    pub offload: bool,
    /// Active tracing; without it no daemon listens and no trace is kept.
    pub tracing: Option<Tracing>,
    /// Interval of CPU counter samples while an env is busy; zero reads them at the ends only.
    pub cpu_sample_interval: Duration,
}

impl Default for HostConfig {
    fn default() -> Self {
        HostConfig {
            run: "run".to_owned(),
            freezer: true,
            while_frozen: WhileFrozen::Hold,
            thaw_order: ThawOrder::Mixed(0.25),
            network_after_event: Duration::from_millis(10),
            init_boost: true,
            init_limit: Duration::from_secs(10),
            idle_ttl: Duration::from_secs(6 * 60),
            max_envs: 1_000,
            account_limit: danki_model::concurrency::ACCOUNT_LIMIT,
            pc_settle: Duration::from_millis(84_600),
            pc_max_age: Duration::from_secs(3_600),
            time_scale: 1.0,
            cpu_model: CpuModel::Host,
            quota_phase: QuotaPhase::Aws,
            seed: 1,
            ca_root_pem: String::new(),
            roots: None,
            profiles: None,
            search_path: ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from).to_vec(),
            offload: true,
            tracing: None,
            cpu_sample_interval: Duration::from_millis(1),
        }
    }
}
