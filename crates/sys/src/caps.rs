//! What this machine offers, found out by trying. What is missing is said with its consequence and the next step.

use crate::cgroup::tree::Tree;
use crate::cgroup::{Controller, Version, remove};
use crate::plan::{CgroupPlan, EnvPlan, MountPlan, NetPlan, RootPlan, TunPlan, UserPlan};
use crate::{Keeper, clock, priority};
use serde::Serialize;
use std::fs;
use std::net::Ipv4Addr;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Capabilities {
    /// danki runs as root.
    pub root: bool,
    /// Release of the kernel.
    pub kernel: String,
    /// CPUs that danki may use.
    pub cpus: usize,
    /// Memory of the machine in MiB.
    pub memory_mb: u64,
    /// Ticks per second (`CONFIG_HZ`), where the kernel tells; the shape of throttling depends on it.
    pub hz: Option<u32>,
    /// What the kernel reads the time from.
    pub clocksource: Option<String>,
    /// Resolution of the clock in ns.
    pub clock_resolution_ns: u64,
    /// Control groups, one entry per controller.
    pub cgroups: Vec<CgroupState>,
    /// Namespaces: without them there are no envs.
    pub namespaces: Trial,
    /// A TUN device in a network namespace.
    pub tun: Trial,
    /// ext4 on a loop device.
    pub disk: Trial,
    /// overlayfs, for several layers.
    pub overlay: Trial,
    /// SCHED_FIFO.
    pub realtime: Trial,
}

/// One controller.
#[derive(Clone, Debug, Serialize)]
pub struct CgroupState {
    /// Which.
    pub controller: Controller,
    /// Usable in this version.
    pub version: Option<Version>,
    /// Why it is not usable.
    pub why: Option<String>,
}

/// The outcome of trying something.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// It works.
    pub works: bool,
    /// Why not.
    pub why: Option<String>,
}

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// What, and why.
    pub what: String,
    /// What danki does without it.
    pub consequence: String,
    /// The next step.
    pub hint: String,
    /// Nothing runs without it.
    pub essential: bool,
}

/// Tries everything; takes some ten milliseconds and leaves nothing behind.
pub fn probe() -> Capabilities {
    let uname = rustix::system::uname();
    let keeper = Keeper::start("probe");
    let trial = |plan: EnvPlan| match &keeper {
        Ok(keeper) => Trial::of(keeper.create(&plan).and_then(crate::Sandbox::destroy)),
        Err(error) => Trial { works: false, why: Some(error.to_string()) },
    };
    let disk = match &keeper {
        Ok(keeper) => Trial::of(keeper.disks().make(PROBE_MB)),
        Err(error) => Trial { works: false, why: Some(error.to_string()) },
    };
    Capabilities {
        root: rustix::process::geteuid().is_root(),
        kernel: uname.release().to_string_lossy().into_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        memory_mb: memory_mb(),
        hz: hz(&uname.release().to_string_lossy()),
        clocksource: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_resolution_ns: clock::resolution_ns(),
        cgroups: cgroups(),
        namespaces: trial(plan(None, vec![])),
        tun: trial(plan(Some(TUN), vec![])),
        overlay: trial(plan(None, overlay())),
        disk,
        realtime: std::thread::spawn(|| Trial::of(priority::raise_priority()))
            .join()
            .unwrap_or(Trial { works: false, why: None }),
    }
}

/// Size of the disk that is tried.
const PROBE_MB: u32 = 16;

const TUN: TunPlan = TunPlan {
    address: Ipv4Addr::new(10, 255, 255, 254),
    prefix: 32,
    mtu: 1_500,
    offload: true,
    default_route: true,
};

fn plan(tun: Option<TunPlan>, mounts: Vec<MountPlan>) -> EnvPlan {
    EnvPlan {
        id: 0,
        hostname: "probe".to_owned(),
        user: UserPlan { uid: 1_000, gid: 1_000 },
        rlimits: vec![],
        visible_cpus: 1,
        cgroup: CgroupPlan::default(),
        net: NetPlan { tun, ..NetPlan::default() },
        root: Some(RootPlan { mounts }),
    }
}

fn overlay() -> Vec<MountPlan> {
    let lower = vec!["/usr/bin".into(), "/usr/lib".into()];
    vec![MountPlan::Overlay { target: "/opt".into(), lower }]
}

impl Trial {
    fn of<T, E: std::fmt::Display>(result: Result<T, E>) -> Trial {
        Trial { works: result.is_ok(), why: result.err().map(|error| error.to_string()) }
    }
}

fn cgroups() -> Vec<CgroupState> {
    let run = crate::run::label("probe-cgroups");
    let tree = Tree::create(&run);
    let state = |controller| CgroupState {
        controller,
        version: tree.branches.iter().find(|b| b.controller == controller).map(|b| b.version),
        why: tree.refused.iter().find(|(refused, _)| *refused == controller).map(|(_, why)| why.clone()),
    };
    let states = Controller::ALL.into_iter().map(state).collect();
    remove::dirs(&tree.dirs());
    states
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn memory_mb() -> u64 {
    let meminfo = text("/proc/meminfo").unwrap_or_default();
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}

/// From the kernel's configuration, where it is readable. `/proc/config.gz` is read with the system's own `gzip`.
fn hz(release: &str) -> Option<u32> {
    let packed = || {
        let mut gzip = std::process::Command::new("gzip");
        let output = gzip.env("PATH", "/usr/bin:/bin").args(["-dc", "/proc/config.gz"]).output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let config = text(&format!("/boot/config-{release}")).or_else(packed)?;
    config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok())
}

impl Capabilities {
    /// What is missing, worst first.
    pub fn missing(&self) -> Vec<Missing> {
        let trials = [
            (&self.namespaces, NAMESPACES),
            (&self.tun, TUN_DEVICE),
            (&self.disk, DISK),
            (&self.overlay, OVERLAY),
            (&self.realtime, REALTIME),
        ];
        let trials = trials.into_iter().filter(|(trial, _)| !trial.works);
        let trials = trials.map(|(trial, words)| words.missing(&trial.why));
        let cgroups = self.cgroups.iter().filter(|state| state.version.is_none()).map(|state| {
            let what = format!("{} cgroup", state.controller.name());
            Words { what: &what, consequence: without(state.controller), hint: DELEGATE, essential: false }
                .missing(&state.why)
        });
        trials.chain(cgroups).collect()
    }
}

/// A [`Missing`] without its reason.
struct Words<'a> {
    what: &'a str,
    consequence: &'a str,
    hint: &'a str,
    essential: bool,
}

const NAMESPACES: Words<'_> = Words {
    what: "namespaces",
    consequence: "no function can run",
    hint: "run danki as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)",
    essential: true,
};
const TUN_DEVICE: Words<'_> = Words {
    what: "TUN device",
    consequence: "no function can run: it would have no network",
    hint: "make /dev/net/tun accessible (modprobe tun)",
    essential: true,
};
const DISK: Words<'_> = Words {
    what: "loop device with ext4",
    consequence: "/tmp of functions is memory and counts as theirs",
    hint: "run danki as root with mkfs.ext4 (e2fsprogs) and /dev/loop-control",
    essential: false,
};
const OVERLAY: Words<'_> = Words {
    what: "overlayfs",
    consequence: "functions with several layers cannot run",
    hint: "load the overlay module (modprobe overlay)",
    essential: false,
};
const REALTIME: Words<'_> = Words {
    what: "real-time priority",
    consequence: "packets are released less exactly; every run states how exactly",
    hint: "run danki as root, or raise `ulimit -r`",
    essential: false,
};
const DELEGATE: &str =
    "run danki as root, or in a delegated scope (systemd-run --user --scope -p Delegate=yes)";

impl Words<'_> {
    fn missing(&self, why: &Option<String>) -> Missing {
        let what = match why {
            Some(why) => format!("{}: {why}", self.what),
            None => self.what.to_owned(),
        };
        let (consequence, hint) = (self.consequence.to_owned(), self.hint.to_owned());
        Missing { what, consequence, hint, essential: self.essential }
    }
}

fn without(controller: Controller) -> &'static str {
    match controller {
        Controller::Cpu => "the CPU share of a memory size is not imposed",
        Controller::Cpuacct => "CPU time of invocations is not known",
        Controller::Memory => "memory is not limited and Max Memory Used is not known",
        Controller::Freezer => "idle envs are not frozen",
        Controller::Pids => "the number of processes is not limited",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_consequence_and_hint() {
        let works = || Trial { works: true, why: None };
        let found = Capabilities {
            root: false,
            kernel: "6.1".to_owned(),
            cpus: 2,
            memory_mb: 1,
            hz: None,
            clocksource: None,
            clock_resolution_ns: 1,
            cgroups: vec![CgroupState {
                controller: Controller::Cpu,
                version: None,
                why: Some("no".to_owned()),
            }],
            namespaces: works(),
            tun: Trial { works: false, why: Some("permission denied".to_owned()) },
            disk: works(),
            overlay: works(),
            realtime: works(),
        };
        let missing = found.missing();
        assert_eq!(missing.len(), 2);
        assert_eq!(missing[0].what, "TUN device: permission denied");
        assert_eq!(missing[1].what, "cpu cgroup: no");
        assert_eq!((missing[0].essential, missing[1].essential), (true, false));
        assert!(missing.iter().all(|m| !m.consequence.is_empty() && !m.hint.is_empty()));
    }

    #[test]
    fn probing_tells_facts() {
        let found = probe();
        assert!(found.cpus > 0 && found.memory_mb > 0 && !found.kernel.is_empty());
        assert_eq!(found.cgroups.len(), Controller::ALL.len());
        if !found.missing().is_empty() {
            println!("missing here: {:?}", found.missing());
        }
    }
}
