//! One execution environment: a sandbox, a Runtime API session and a network card that freeze, thaw and die together.

use crate::deployed::Deployed;
use crate::log::{Log, Site};
use crate::shared::Shared;
use crate::spy::Spy;
use crate::{Error, ThawOrder, WhileFrozen, files, plan};
use danki_model::lifecycle::Lifecycle;
use danki_model::shutdown::ShutdownReason;
use danki_model::{EnvId, InitializationType, Runtime, environment, limits};
use danki_record::{EnvEvent, EnvWhat, Event, Span};
use danki_runtime_api::{Events, FunctionFacts, Limits, Profile, Session};
use danki_sys::{Sandbox, clock};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixDatagram;

mod processes;

use processes::Processes;
pub(crate) use processes::{Happening, Who};

/// An env and all that belongs to it.
pub(crate) struct Env {
    pub id: EnvId,
    pub shared: Arc<Shared>,
    pub function: Arc<Deployed>,
    pub log: Log,
    pub session: Session,
    pub lifecycle: Lifecycle,
    /// File names in `/opt/extensions`.
    pub extensions: Vec<String>,
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
    processes: Processes,
    /// The runtime's process, as this machine counts it.
    runtime_pid: Option<u32>,
    spy: Option<Spy>,
    _dns: Box<dyn Send + Sync>,
    _xray: Option<Box<dyn Send + Sync>>,
}

impl Env {
    /// Creates the sandbox, its network card, resolver and Runtime API. No process of the function runs yet.
    pub async fn create(
        shared: Arc<Shared>,
        function: Arc<Deployed>,
        id: EnvId,
        initialization: InitializationType,
    ) -> Result<Env, Error> {
        let site = log_site(&shared, &function, id);
        let log = Log::new(id, site, shared.recorder.clone(), shared.logs.clone());
        let extensions = files::extensions(function.extension_dirs());
        let env_plan = plan::env_plan(&shared, &function, id);
        let address = plan::address(id);
        let keeper = Arc::clone(&shared.keeper);
        let created = tokio::task::spawn_blocking(move || keeper.create(&env_plan));
        let mut sandbox = created.await.expect("creating a sandbox does not panic")?;
        let tun = sandbox.take_tun().expect("the plan asks for a TUN");
        shared.link.attach(id, address, tun)?;
        let mut sockets = sandbox.take_sockets();
        let daemon = sockets.split_off(2);
        let [api, dns] = <[OwnedFd; 2]>::try_from(sockets).expect("the plan asks for two sockets first");
        let profile = profile(&shared, &function, &extensions, id);
        let (session, events) = Session::start(TcpListener::from(api), Limits::default(), profile)?;
        let dns = (shared.dns)(id, UdpSocket::from(dns));
        let xray = shared.config.tracing.as_ref().map(|tracing| {
            let [udp, tcp] =
                <[OwnedFd; 2]>::try_from(daemon).expect("the plan asks for the daemon's sockets");
            (tracing.serve)(id, UdpSocket::from(udp), TcpListener::from(tcp))
        });
        let exits = UnixDatagram::from_std(sandbox.event_fd().try_clone_to_owned()?.into())?;
        let rng = SmallRng::seed_from_u64(shared.config.seed ^ (u64::from(id.0) << 32));
        let caveats = sandbox.caveats().to_vec();
        caveats.into_iter().for_each(|text| shared.caveat(text));
        Ok(Env {
            id,
            shared,
            function,
            log,
            session,
            lifecycle: Lifecycle::with_extensions(extensions.len()),
            extensions,
            initialization,
            init_untold_ms: None,
            rng,
            sandbox,
            exits,
            events,
            frozen: false,
            oom_kills: 0,
            processes: Processes::default(),
            runtime_pid: None,
            spy: None,
            _dns: dns,
            _xray: xray,
        })
    }

    /// Did the kernel kill a process of this env for its memory since this was asked last?
    pub fn out_of_memory(&mut self) -> bool {
        let (kills, alarms) = (self.sandbox.cgroup().oom_kills(), self.sandbox.cgroup().oom_alarms());
        std::mem::replace(&mut self.oom_kills, kills) < kills || alarms > 0
    }

    /// Has its Python runtime looked at from now on, where profiles are made; again for the same invocation does nothing.
    pub async fn spy_on(&mut self, request_id: &str) {
        let is_python = matches!(self.function.spec.runtime, Runtime::Python(_));
        let (Some(spies), Some(pid), None, true) =
            (&self.shared.spies, self.runtime_pid, &self.spy, is_python)
        else {
            return;
        };
        match spies.begin(pid, request_id).await {
            Ok(spy) => self.spy = spy,
            Err(error) => {
                self.shared.caveat(format!("an invocation of a Python function has no profile: {error}"));
            }
        }
    }

    /// Its profile is complete.
    pub async fn spied(&mut self) {
        if let Some(spy) = self.spy.take() {
            spy.end().await;
        }
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
        match self.function.thaw_order.unwrap_or(self.shared.config.thaw_order) {
            ThawOrder::NetworkFirst => false,
            ThawOrder::EventFirst => true,
            ThawOrder::Mixed(event_first) => self.rng.random_bool(event_first.clamp(0.0, 1.0)),
        }
    }

    /// The X-Ray trace header of a new trace; whether it is kept is drawn.
    pub fn next_trace_id(&mut self) -> String {
        let seconds = clock::epoch_ns() / 1_000_000_000;
        let (root, parent) = (self.rng.random::<u128>() >> 32, self.rng.random::<u64>());
        let sampling = self.shared.config.tracing.as_ref().map_or(0.0, |tracing| tracing.sampling);
        let sampled = u8::from(sampling > 0.0 && self.rng.random_bool(sampling.clamp(0.0, 1.0)));
        format!("Root=1-{seconds:08x}-{root:024x};Parent={parent:016x};Sampled={sampled}")
    }

    /// Ends the env: its processes, its network card, its files. Extensions are told before, unless the env is broken.
    pub async fn end(mut self, reason: &str) {
        if reason != "failure" && !self.lifecycle.crew().is_empty() {
            // An env that does not do as it is told is destroyed all the same.
            self.wind_down().await.ok();
        }
        self.happened(EnvWhat::Ended { reason: reason.to_owned() });
        self.shared.link.detach(self.id);
        self.shared.sampler.ended(self.id);
        // The session outlives the processes: a runtime whose `/next` broke off would complain in the log.
        let Env { sandbox, session, processes, .. } = self;
        let destroyed = tokio::task::spawn_blocking(move || sandbox.destroy()).await;
        drop((session, processes));
        destroyed.ok();
    }

    async fn wind_down(&mut self) -> Result<(), Error> {
        self.thaw_network_first()?;
        self.end_processes(ShutdownReason::Spindown).await
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

fn log_site(shared: &Shared, function: &Deployed, id: EnvId) -> Site {
    Site {
        function: function.spec.name.clone(),
        version: function.version.clone(),
        group: environment::log_group(&function.spec),
        stream: shared.log_stream(id, &function.version),
        logging: function.spec.logging.clone(),
    }
}

fn profile(shared: &Shared, function: &Deployed, extensions: &[String], id: EnvId) -> Profile {
    let arn = function.arn();
    let facts = FunctionFacts {
        function_name: function.spec.name.clone(),
        function_version: function.version.clone(),
        handler: function.spec.handler.clone(),
        account_id: arn.split(':').nth(4).map(str::to_owned),
    };
    let seed = shared.config.seed ^ (u64::from(id.0) << 32);
    Profile { function: facts, externals: extensions.to_vec(), seed }
}
