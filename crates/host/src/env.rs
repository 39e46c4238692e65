//! One execution environment: a sandbox, a Runtime API session and a network card that freeze, thaw and die together.

use crate::deployed::Deployed;
use crate::log::{Capture, Log};
use crate::shared::Shared;
use crate::{Error, ThawOrder, WhileFrozen, plan};
use danki_model::lifecycle::Lifecycle;
use danki_model::{EnvId, InitializationType, limits};
use danki_record::{EnvEvent, EnvWhat, Event, Span};
use danki_runtime_api::{Events, Limits, Profile, RuntimeEvent, Session};
use danki_sys::{ExitStatus, ProcessPlan, Sandbox, SandboxEvent, clock};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::task::block_in_place;
use tokio::time::{Instant, timeout_at};

/// After a runtime's exit, what it had posted before is still read for this long.
const AFTER_EXIT: Duration = Duration::from_millis(20);

const SIGKILL: i32 = 9;

/// An env and all that belongs to it.
pub(crate) struct Env {
    pub id: EnvId,
    pub shared: Arc<Shared>,
    pub function: Arc<Deployed>,
    pub log: Log,
    /// The runtime's process, once started and until it is known dead.
    pub runtime: Option<Runtime>,
    pub session: Session,
    pub lifecycle: Lifecycle,
    /// Why it exists.
    pub initialization: InitializationType,
    /// Init Duration of an init that no invocation waited for; the next REPORT tells it.
    pub init_untold_ms: Option<f64>,
    rng: SmallRng,
    sandbox: Sandbox,
    /// Readable when a process has exited; a socket only so that tokio can wait for it.
    exits: UnixDatagram,
    events: Events,
    frozen: bool,
    oom_kills: u64,
    /// The runtime has exited, but what it posted before is not yet dealt with.
    dead: Option<ExitStatus>,
    _dns: Box<dyn Send + Sync>,
}

/// The runtime's process.
pub(crate) struct Runtime {
    inner_pid: i32,
    pub capture: Capture,
}

/// What the driver of an env waits for.
pub(crate) enum Happening {
    Runtime(RuntimeEvent),
    Exited(ExitStatus),
    Deadline,
}

impl Env {
    /// Creates the sandbox, its network card, resolver and Runtime API. No process of the function runs yet.
    pub async fn create(
        shared: Arc<Shared>,
        function: Arc<Deployed>,
        id: EnvId,
        initialization: InitializationType,
    ) -> Result<Env, Error> {
        let log = Log::new(id, shared.recorder.clone());
        let env_plan = plan::env_plan(&shared, &function, id);
        let address = plan::address(id);
        let keeper = Arc::clone(&shared.keeper);
        let created = tokio::task::spawn_blocking(move || keeper.create(&env_plan));
        let mut sandbox = created.await.expect("creating a sandbox does not panic")?;
        let tun = sandbox.take_tun().expect("the plan asks for a TUN");
        shared.link.attach(id, address, tun)?;
        let [api, dns] =
            <[OwnedFd; 2]>::try_from(sandbox.take_sockets()).expect("the plan asks for two sockets");
        let (session, events) = Session::start(TcpListener::from(api), Limits::default(), Profile::default())?;
        let dns = (shared.dns)(id, UdpSocket::from(dns));
        let exits = UnixDatagram::from_std(sandbox.event_fd().try_clone_to_owned()?.into())?;
        let rng = SmallRng::seed_from_u64(shared.config.seed ^ (u64::from(id.0) << 32));
        let caveats = sandbox.caveats().to_vec();
        caveats.into_iter().for_each(|text| shared.caveat(text));
        Ok(Env {
            id,
            shared,
            function,
            log,
            runtime: None,
            session,
            lifecycle: Lifecycle::new(),
            initialization,
            init_untold_ms: None,
            rng,
            sandbox,
            exits,
            events,
            frozen: false,
            oom_kills: 0,
            dead: None,
            _dns: dns,
        })
    }

    /// Executes the runtime's process.
    pub fn start_runtime(&mut self) -> Result<(), Error> {
        let process: ProcessPlan = plan::process(&self.shared, &self.function, self.id, self.initialization);
        let spawned = block_in_place(|| self.sandbox.spawn(&process))?;
        let capture = Capture::start(self.log.clone(), spawned.stdout, spawned.stderr)?;
        self.runtime = Some(Runtime { inner_pid: spawned.inner_pid, capture });
        self.happened(EnvWhat::Started);
        Ok(())
    }

    /// Waits for the next thing that the runtime does, until the deadline.
    pub async fn happening(&mut self, deadline: Instant) -> Happening {
        if let Some(status) = self.dead {
            return match self.events.try_next() {
                Some(event) => Happening::Runtime(event),
                None => self.met_death(status).await,
            };
        }
        loop {
            let waited = timeout_at(deadline, async {
                tokio::select! {
                    biased;
                    event = self.events.next() => Happened::Event(event),
                    _ = self.exits.readable() => Happened::MaybeExit,
                }
            });
            match waited.await {
                Err(_) => return Happening::Deadline,
                Ok(Happened::Event(Some(event))) => return Happening::Runtime(event),
                Ok(Happened::Event(None)) => return Happening::Exited(ExitStatus::Code(0)),
                Ok(Happened::MaybeExit) => {
                    if let Some(happening) = self.runtime_exit().await {
                        return happening;
                    }
                }
            }
        }
    }

    /// Reads exits; the runtime's own counts, but only after what it posted before.
    async fn runtime_exit(&mut self) -> Option<Happening> {
        let runtime = self.runtime.as_ref()?.inner_pid;
        let mut exited = None;
        while let (None, Some(event)) = (exited, self.next_exit()) {
            match event {
                SandboxEvent::Exited { inner_pid, status } if inner_pid == runtime => exited = Some(status),
                SandboxEvent::Exited { .. } => {}
                SandboxEvent::PidOneGone => exited = Some(ExitStatus::Signal(SIGKILL)),
            }
        }
        let status = exited?;
        self.dead = Some(status);
        let posted = timeout_at(Instant::now() + AFTER_EXIT, self.events.next()).await;
        Some(match posted {
            Ok(Some(event)) => Happening::Runtime(event),
            _ => self.met_death(status).await,
        })
    }

    /// The next exit that is there already; tells tokio when there is none.
    fn next_exit(&self) -> Option<SandboxEvent> {
        let read =
            || self.sandbox.try_event().map_err(io::Error::other)?.ok_or(io::ErrorKind::WouldBlock.into());
        self.exits.try_io(Interest::READABLE, read).ok()
    }

    async fn met_death(&mut self, status: ExitStatus) -> Happening {
        self.dead = None;
        self.runtime_is_dead().await;
        Happening::Exited(status)
    }

    async fn runtime_is_dead(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.capture.flush().await;
        }
    }

    /// The runtime answered or not: what it wrote so far is in the log.
    pub async fn flush_log(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.capture.flush().await;
        }
    }

    /// Did the kernel kill a process of this env for its memory since this was asked last?
    pub fn out_of_memory(&mut self) -> bool {
        let (kills, alarms) = (self.sandbox.cgroup().oom_kills(), self.sandbox.cgroup().oom_alarms());
        std::mem::replace(&mut self.oom_kills, kills) < kills || alarms > 0
    }

    /// CPU as the memory size buys it, or one full vCPU.
    pub fn set_boost(&self, boost: bool) -> Result<(), Error> {
        let function = &self.function;
        let quota = if boost { self.shared.boosted_quota_us(function) } else { function.quota_us };
        Ok(self.sandbox.cgroup().set_cpu_quota(Some(quota), danki_model::PERIOD_US)?)
    }

    /// How long an init may take that no invocation's timeout bounds.
    pub fn init_limit(&self) -> Duration {
        match self.initialization {
            InitializationType::OnDemand => self.shared.config.init_limit,
            InitializationType::ProvisionedConcurrency => {
                Duration::from_millis(limits::provisioned_init_limit_ms(self.function.spec.timeout_ms))
            }
        }
    }

    /// Counters of the env's CPU, memory and processes.
    pub fn cgroup(&self) -> &danki_sys::EnvCgroup {
        self.sandbox.cgroup()
    }

    /// Kills every process of the function; `/tmp` stays.
    pub async fn reset(&mut self, reason: &str) -> Result<(), Error> {
        block_in_place(|| self.sandbox.kill_processes(SIGKILL))?;
        self.runtime_is_dead().await;
        self.dead = None;
        while let Some(SandboxEvent::Exited { .. }) = self.next_exit() {}
        self.session.reset();
        while self.events.try_next().is_some() {}
        self.happened(EnvWhat::Reset { reason: reason.to_owned() });
        Ok(())
    }

    /// Pauses all processes, then the network: nothing in a paused virtual machine answers.
    pub fn freeze(&mut self) -> Result<(), Error> {
        if self.frozen || !self.shared.config.freezer {
            return Ok(());
        }
        self.sandbox.cgroup().freeze()?;
        if self.shared.config.while_frozen == WhileFrozen::Hold {
            self.shared.link.hold(self.id);
        }
        self.frozen = true;
        self.happened(EnvWhat::Frozen);
        Ok(())
    }

    /// Held packets reach the env, then its processes go on: a socket that died meanwhile is noticed before the event comes.
    pub fn thaw_network_first(&mut self) -> Result<Option<Span>, Error> {
        if !std::mem::take(&mut self.frozen) {
            return Ok(None);
        }
        let from_ns = clock::monotonic_ns();
        self.shared.link.release(self.id);
        self.sandbox.cgroup().thaw()?;
        self.happened(EnvWhat::Thawed);
        Ok(Some(Span { from_ns, to_ns: clock::monotonic_ns() }))
    }

    /// Processes go on, then held packets reach the env: the event that was delivered before may be served on a dead socket. Without a
    /// head start it never would be: the network is far quicker than a runtime.
    pub fn thaw_event_first(&mut self) -> Result<Option<Span>, Error> {
        if !std::mem::take(&mut self.frozen) {
            return Ok(None);
        }
        let from_ns = clock::monotonic_ns();
        self.sandbox.cgroup().thaw()?;
        self.shared.link.release_after(self.id, self.shared.config.network_after_event);
        self.happened(EnvWhat::Thawed);
        Ok(Some(Span { from_ns, to_ns: clock::monotonic_ns() }))
    }

    /// Draws what a thawed runtime sees first.
    pub fn event_first(&mut self) -> bool {
        match self.shared.config.thaw_order {
            ThawOrder::NetworkFirst => false,
            ThawOrder::EventFirst => true,
            ThawOrder::Mixed(event_first) => self.rng.random_bool(event_first.clamp(0.0, 1.0)),
        }
    }

    /// An X-Ray trace header of an invocation that is not sampled.
    pub fn next_trace_id(&mut self) -> String {
        let seconds = clock::epoch_ns() / 1_000_000_000;
        let (root, parent) = (self.rng.random::<u128>() >> 32, self.rng.random::<u64>());
        format!("Root=1-{seconds:08x}-{root:024x};Parent={parent:016x};Sampled=0")
    }

    /// Ends the env: its network card, its processes, its files.
    pub async fn end(self, reason: &str) {
        self.happened(EnvWhat::Ended { reason: reason.to_owned() });
        self.shared.link.detach(self.id);
        // The session outlives the processes: a runtime whose `/next` broke off would complain in the log.
        let Env { sandbox, session, runtime, .. } = self;
        let destroyed = tokio::task::spawn_blocking(move || sandbox.destroy()).await;
        drop((session, runtime));
        destroyed.ok();
    }

    pub fn happened(&self, what: EnvWhat) {
        self.shared.recorder.record(Event::Env(EnvEvent {
            at_ns: clock::monotonic_ns(),
            env: self.id,
            variant: self.function.variant.clone(),
            what,
        }));
    }
}

enum Happened {
    Event(Option<RuntimeEvent>),
    MaybeExit,
}
