//! The world around a function: region in a network namespace of its own, link, host. Started and ended together.

use crate::demand;
use crate::error::{Error, file};
use crate::experiment::Experiment;
use crate::runner::Setup;
use danki_database::{Certificate, Config as DatabaseConfig, Database, Files};
use danki_host::{DnsServer, Host, HostConfig, ThawOrder, Tracing, XRayServer};
use danki_link::{Config as LinkConfig, Link, Stats};
use danki_record::{Connection, Event, Recorder};
use danki_region::{Config as RegionConfig, Region, Sockets};
use danki_sys::plan::{CgroupPlan, EnvPlan, NetPlan, RootPlan, SocketPlan, TunPlan, UserPlan};
use danki_sys::{Keeper, Sandbox};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// All addresses of services: RFC 2544's net for benchmarks, never routed on the internet.
const SERVICES: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);
/// All addresses of envs.
const ENVS: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 0, 0), 8);
/// The region's own end of its TUN; no service lives there.
const GATEWAY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Ethernet's, as between a function and an endpoint.
const MTU: u32 = 1_500;
/// Waiting connections: more than envs that may exist.
const BACKLOG: i32 = 1_024;

/// The region, for host's resolvers and for those who watch over it.
type SharedRegion = Arc<Mutex<Region>>;

/// Directory of CPU profiles in a run directory.
pub const PROFILES: &str = "profiles";

/// Env 0's number: below those of all envs (see `host::plan`).
const DATABASE_USER: UserPlan = UserPlan { uid: 100_000, gid: 100_000 };

/// How often it is looked whether the region still lives.
const WATCH: Duration = Duration::from_millis(200);

/// A running world.
pub struct World {
    /// Deploys and invokes. Others may hold it too; once stopped it invokes no more.
    pub host: Arc<Host>,
    region: SharedRegion,
    link: Link,
    sandbox: Sandbox,
    database: Option<Arc<Database>>,
}

impl World {
    /// Starts region, link and host, in this order. `pcap`: where packets are captured, if they are.
    pub async fn start(
        experiment: &Experiment,
        setup: &Setup,
        recorder: &Recorder,
        pcap: Option<&Path>,
    ) -> Result<World, Error> {
        World::start_with(experiment, setup, recorder, pcap, |_| {}).await
    }

    /// As [`World::start`], with the host's knobs that no experiment has.
    pub async fn start_with(
        experiment: &Experiment,
        setup: &Setup,
        recorder: &Recorder,
        pcap: Option<&Path>,
        adjust: impl FnOnce(&mut HostConfig),
    ) -> Result<World, Error> {
        let link_config = link_config(experiment, pcap)?;
        let offload = link_config.offload;
        let database = experiment.region.database.as_ref();
        let files = database.map(|_| Files::create(setup.keeper.dir())).transpose()?;
        let root = database
            .zip(files.as_ref())
            .map(|(config, files)| danki_database::root(config, files, DATABASE_USER.uid));
        let root = root.transpose()?;
        let mut sandbox = create(Arc::clone(&setup.keeper), region_plan(offload, root)).await?;
        let tun = sandbox.take_tun().ok_or(Error::Broken("the region's sandbox has no TUN"))?;
        let socket =
            sandbox.take_sockets().pop().ok_or(Error::Broken("the region's sandbox has no socket"))?;
        let sockets = Sockets { https: TcpListener::from(socket) };
        let region = Region::start(region_config(experiment, setup), sockets, recorder.clone()).await?;
        let (sandbox, database) = match (&experiment.region.database, files) {
            (Some(config), Some(files)) => {
                let certificates = certificates(config, &experiment.region.name, &region)?;
                let (sandbox, database) =
                    start_database(config.clone(), files, certificates, sandbox, recorder.clone()).await?;
                (sandbox, Some(Arc::new(database)))
            }
            _ => (sandbox, None),
        };
        let root_pem = region.root_pem().to_owned();
        let region = Arc::new(Mutex::new(region));
        let link = Link::start(link_config, tun, recorder.clone())?;
        let mut host_config = host_config(experiment, setup, &root_pem, offload);
        host_config.cpu_model = demand::cpu_model(experiment, setup.calibration.cpu_factor)?;
        host_config.tracing = experiment.xray_sampling.map(|sampling| tracing(sampling, &region, recorder));
        adjust(&mut host_config);
        if let Some(dir) = &host_config.profiles {
            make_profiles(dir)?;
        }
        let dns = dns_server(&region);
        let host = Host::start(host_config, Arc::clone(&setup.keeper), link.handle(), recorder.clone(), dns)?;
        Ok(World { host: Arc::new(host), region, link, sandbox, database })
    }

    /// The link's figures so far.
    pub fn link_stats(&self) -> Stats {
        self.link.handle().stats()
    }

    /// Asks for the connections that are open.
    pub fn open_connections(&self) -> impl Fn() -> Vec<Connection> + Send + Sync + use<> {
        let link = self.link.handle();
        move || link.open()
    }

    /// TLS settings for a listener of this machine itself, with certificates of the region's CA.
    pub fn front_tls(&self) -> Result<Arc<rustls::ServerConfig>, Error> {
        let region = self.region.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(region.front_tls()?)
    }

    /// The root certificate of the region's CA.
    pub fn root_pem(&self) -> String {
        self.region.lock().unwrap_or_else(PoisonError::into_inner).root_pem().to_owned()
    }

    /// Resolves only if the region or its database dies although nobody stopped it.
    pub fn region_died(&self) -> impl Future<Output = Error> + Send + use<> {
        let (region, database) = (Arc::clone(&self.region), self.database.clone());
        async move {
            loop {
                tokio::time::sleep(WATCH).await;
                if let Some(error) = death(&region) {
                    return error.into();
                }
                if let Some(error) = database.as_deref().and_then(Database::death) {
                    return error.into();
                }
            }
        }
    }

    /// Ends everything and returns the link's figures. Nothing is left behind.
    pub async fn stop(self) -> Result<Stats, Error> {
        let World { host, region, link, sandbox, database } = self;
        host.stop().await;
        match Arc::try_unwrap(region) {
            Ok(region) => region.into_inner().unwrap_or_else(PoisonError::into_inner).stop().await,
            // An env that could not be ended in time still holds its resolver; dropping ends the region at once.
            Err(shared) => drop(shared),
        }
        let end = move || -> Result<Stats, Error> {
            // Whoever still watches it lets its proxies end with the last look.
            if let Some(database) = database.and_then(Arc::into_inner) {
                database.stop();
            }
            let stats = link.stop();
            sandbox.destroy()?;
            Ok(stats)
        };
        tokio::task::spawn_blocking(end)
            .await
            .map_err(|_| Error::Broken("the end of the run has panicked"))?
    }
}

async fn create(keeper: Arc<Keeper>, plan: EnvPlan) -> Result<Sandbox, Error> {
    let created = tokio::task::spawn_blocking(move || keeper.create(&plan)).await;
    Ok(created.map_err(|_| Error::Broken("the creation of the region's sandbox has panicked"))??)
}

/// The database's, then one for each proxy.
fn certificates(config: &DatabaseConfig, name: &str, region: &Region) -> Result<Vec<Certificate>, Error> {
    let one = |(host, _): (String, Ipv4Addr)| {
        let (chain, key) = region.certificate_pem(&host)?;
        Ok(Certificate { chain, key })
    };
    config.hosts(name).into_iter().map(one).collect()
}

async fn start_database(
    config: DatabaseConfig,
    files: Files,
    certificates: Vec<Certificate>,
    sandbox: Sandbox,
    recorder: Recorder,
) -> Result<(Sandbox, Database), Error> {
    let start = move || {
        let database = Database::start(&config, files, &certificates, &sandbox, &recorder)?;
        Ok((sandbox, database))
    };
    let started = tokio::task::spawn_blocking(start).await;
    started.map_err(|_| Error::Broken("the start of the database has panicked"))?
}

fn dns_server(region: &SharedRegion) -> DnsServer {
    let region = Arc::clone(region);
    Arc::new(move |env, socket| Box::new(lock(&region).serve_dns(env, socket)))
}

/// A daemon that cannot be served is told once per env; its function's documents are lost, as datagrams may be.
fn tracing(sampling: f64, region: &SharedRegion, recorder: &Recorder) -> Tracing {
    let (region, recorder) = (Arc::clone(region), recorder.clone());
    let serve: XRayServer = Arc::new(move |env, udp, tcp| match lock(&region).serve_xray(env, udp, tcp) {
        Ok(guard) => Box::new(guard),
        Err(error) => {
            recorder.record(Event::Caveat { text: format!("{env} has no X-Ray daemon: {error}") });
            Box::new(())
        }
    });
    Tracing { sampling, serve }
}

/// Every env writes here, each as a user of its own.
fn make_profiles(dir: &Path) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(file("create", dir))?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o1777)).map_err(file("open for all", dir))
}

/// Why the region is dead; none while it lives. Looks once: the lock is held for no longer.
fn death(region: &SharedRegion) -> Option<danki_region::Error> {
    let mut region = lock(region);
    match pin!(region.died()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(error) => Some(error),
        Poll::Pending => None,
    }
}

fn lock(region: &SharedRegion) -> MutexGuard<'_, Region> {
    region.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Mostly only a network, but for a database's processes: every service address is local, envs are reached through the TUN.
fn region_plan(offload: bool, root: Option<RootPlan>) -> EnvPlan {
    let https = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 443));
    EnvPlan {
        id: 0,
        hostname: "region".to_owned(),
        user: if root.is_some() { DATABASE_USER } else { UserPlan { uid: 0, gid: 0 } },
        rlimits: Vec::new(),
        visible_cpus: if root.is_some() { crate::cpus() } else { 1 },
        cgroup: CgroupPlan { cpu_period_us: danki_model::PERIOD_US, ..CgroupPlan::default() },
        net: NetPlan {
            tun: Some(TunPlan { address: GATEWAY, prefix: 32, mtu: MTU, offload, default_route: false }),
            loopback: Vec::new(),
            local_any: Some(SERVICES),
            routes: vec![ENVS],
            sockets: vec![SocketPlan::Tcp { addr: https, backlog: BACKLOG }],
        },
        root,
    }
}

fn link_config(experiment: &Experiment, pcap: Option<&Path>) -> Result<LinkConfig, Error> {
    let region = &experiment.region;
    let own = |(service, path): (&String, &danki_link::Path)| {
        let addresses = match service.as_str() {
            "database" => {
                region.database.iter().flat_map(|d| d.hosts("")).map(|(_, address)| address).collect()
            }
            service => Vec::from_iter(Region::service_address(service)),
        };
        addresses.into_iter().map(|address| (address, path.clone())).collect::<Vec<_>>()
    };
    let mut config = LinkConfig {
        default_path: region.path.clone(),
        paths: region.paths.iter().flat_map(own).collect(),
        seed: experiment.seed,
        pcap: pcap.map(Path::to_path_buf),
        ..LinkConfig::default()
    };
    config.offload = !config.needs_offload_off();
    Ok(config)
}

fn region_config(experiment: &Experiment, setup: &Setup) -> RegionConfig {
    RegionConfig {
        region_name: experiment.region.name.clone(),
        dynamodb: experiment.region.dynamodb.clone(),
        secretsmanager: experiment.region.secretsmanager.clone(),
        ssm: experiment.region.ssm.clone(),
        hosts: experiment.region.database.iter().flat_map(|d| d.hosts(&experiment.region.name)).collect(),
        seed: experiment.seed,
        time_scale: experiment.time_scale,
        ca_dir: setup.ca_dir.clone(),
    }
}

fn host_config(experiment: &Experiment, setup: &Setup, root_pem: &str, offload: bool) -> HostConfig {
    let (keys, default) = (&experiment.host, HostConfig::default());
    HostConfig {
        run: experiment.name.clone(),
        freezer: keys.freezer.unwrap_or(default.freezer),
        while_frozen: keys.while_frozen.unwrap_or(default.while_frozen),
        thaw_order: keys.event_first.map_or(default.thaw_order, ThawOrder::Mixed),
        init_boost: keys.init_boost.unwrap_or(default.init_boost),
        roots: keys.roots,
        profiles: keys.profile.unwrap_or(false).then(|| setup.dir.join(PROFILES)),
        quota_phase: keys.quota_phase.unwrap_or(default.quota_phase),
        idle_ttl: keys.idle_ttl_s.map_or(default.idle_ttl, Duration::from_secs_f64),
        pc_settle: keys.pc_ready_after_init_s.map_or(default.pc_settle, Duration::from_secs_f64),
        account_limit: keys.account_limit.unwrap_or(default.account_limit),
        time_scale: experiment.time_scale,
        seed: experiment.seed,
        ca_root_pem: root_pem.to_owned(),
        search_path: setup.search_path.clone(),
        offload,
        ..default
    }
}
