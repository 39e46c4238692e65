//! One env and one region, each a sandbox with nothing but a network, and a link between them.

use danki_link::{Config, Link, Stats};
use danki_model::EnvId;
use danki_record::{Event, Recorder, Recording};
use danki_sys::plan::{CgroupPlan, NetPlan, TunPlan, UserPlan};
use danki_sys::{EnvPlan, Keeper, Sandbox};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::BTreeSet;
use std::fs::{File, read_to_string};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;

pub const ENV: EnvId = EnvId(1);
const ENV_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// All of it is the region's.
const REGION: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);
/// The region's own address on its TUN; never used by a service.
const REGION_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// All envs.
const ENVS: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 0, 0), 8);

/// A network namespace to work in.
#[derive(Clone)]
struct Network(Arc<File>);

pub struct Rig {
    pub link: Link,
    env: Network,
    region: Network,
    sandboxes: [Sandbox; 2],
    keeper: Keeper,
    recording: Recording,
}

impl Rig {
    /// Where there can be none, says that `what` is skipped.
    pub fn try_new(config: Config, what: &str) -> Option<Rig> {
        let tun = File::options().read(true).write(true).open("/dev/net/tun");
        if let (true, Ok(_)) = (rustix::process::geteuid().is_root(), &tun) {
            return Some(Rig::new(config));
        }
        println!("skipped: {what}: needs root and /dev/net/tun ({tun:?})");
        None
    }

    fn new(config: Config) -> Rig {
        let keeper = Keeper::start("link-test").unwrap();
        let make = |plan: EnvPlan| {
            let before = children(&keeper);
            let mut sandbox = keeper.create(&plan).unwrap();
            let pid =
                children(&keeper).difference(&before).next().cloned().expect("pid 1 is the keeper's child");
            let network = File::open(format!("/proc/{pid}/ns/net")).unwrap();
            let tun = sandbox.take_tun().expect("the plan has a tun");
            (sandbox, tun, Network(Arc::new(network)))
        };
        let (env_box, env_tun, env) = make(plan(1, ENV_ADDRESS, config.offload, None, REGION));
        let (region_box, region_tun, region) =
            make(plan(2, REGION_ADDRESS, config.offload, Some(REGION), ENVS));
        let (recorder, recording) = Recorder::bounded(100_000);
        let link = Link::start(config, region_tun, recorder).unwrap();
        link.handle().attach(ENV, ENV_ADDRESS, env_tun).unwrap();
        Rig { link, env, region, sandboxes: [env_box, region_box], keeper, recording }
    }

    /// Runs with the env's network.
    pub fn in_env<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        inside(self.env.clone(), work)
    }

    /// Runs with the region's network.
    pub fn in_region<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        inside(self.region.clone(), work)
    }

    /// Ends all; what was measured and recorded.
    pub fn stop(self) -> (Stats, Vec<Event>) {
        let stats = self.link.stop();
        self.sandboxes.into_iter().for_each(|sandbox| sandbox.destroy().unwrap());
        self.keeper.shutdown().unwrap();
        (stats, self.recording.collect())
    }
}

fn plan(
    id: u32,
    address: Ipv4Addr,
    offload: bool,
    local_any: Option<(Ipv4Addr, u8)>,
    route: (Ipv4Addr, u8),
) -> EnvPlan {
    EnvPlan {
        id,
        hostname: format!("link-{id}"),
        user: UserPlan { uid: 993, gid: 990 },
        rlimits: vec![],
        visible_cpus: 2,
        cgroup: CgroupPlan { cpu_period_us: 20_000, ..CgroupPlan::default() },
        net: NetPlan {
            tun: Some(TunPlan { address, prefix: 32, mtu: 1500, offload, default_route: false }),
            loopback: vec![],
            local_any,
            routes: vec![route],
            sockets: vec![],
        },
        root: None,
    }
}

/// Processes that the keeper has forked: the pid 1s of its sandboxes.
fn children(keeper: &Keeper) -> BTreeSet<String> {
    let pid = keeper.pid();
    let list = read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

fn inside<T: Send + 'static>(network: Network, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(move || {
        move_into_link_name_space(network.0.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        work()
    })
}
