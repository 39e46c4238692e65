//! What the tests of this crate share: a plan like a function's, and how to watch it.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test code, but clippy knows only test functions"
)]

use danki_sys::plan::*;
use danki_sys::{ExitStatus, Keeper, Sandbox, SandboxEvent, Spawned, clock};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait of a test for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const UID: u32 = 1993;
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const BESIDE: Ipv4Addr = Ipv4Addr::new(169, 254, 100, 1);

/// Root, or a line that says what is skipped.
pub fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: {what}: needs root");
    }
    root
}

pub fn keeper(name: &str) -> Keeper {
    Keeper::start(&format!("test-{name}")).unwrap()
}

/// A function's env: the system's programs, a TUN, two sockets beside it, 2 CPUs, 256 MiB and a `/tmp` of 64 MiB.
pub fn plan(id: u32) -> EnvPlan {
    EnvPlan {
        id,
        hostname: "169.254.100.1".to_owned(),
        user: UserPlan { uid: UID, gid: UID },
        rlimits: vec![RlimitPlan { name: "NOFILE".to_owned(), soft: 1_024, hard: 1_024 }],
        visible_cpus: 2,
        cgroup: CgroupPlan {
            cpu_quota_us: Some(20_000),
            cpu_period_us: 20_000,
            cpu_refill: Refill::AtTick,
            memory_bytes: Some(256 << 20),
            pids_max: Some(256),
        },
        net: NetPlan {
            tun: Some(TunPlan {
                address: ADDRESS,
                prefix: 32,
                mtu: 1_500,
                offload: true,
                default_route: true,
            }),
            loopback: vec![BESIDE],
            local_any: None,
            routes: vec![],
            sockets: vec![
                SocketPlan::Tcp { addr: SocketAddr::from((BESIDE, 9_001)), backlog: 16 },
                SocketPlan::Udp { addr: SocketAddr::from((BESIDE, 53)) },
            ],
        },
        root: Some(RootPlan { mounts: mounts() }),
    }
}

fn mounts() -> Vec<MountPlan> {
    let mut mounts = vec![bind("/usr", "/usr")];
    for dir in ["/bin", "/sbin", "/lib", "/lib64"] {
        match std::fs::read_link(dir) {
            Ok(to) => mounts.push(MountPlan::Symlink { target: dir.into(), to }),
            Err(_) if Path::new(dir).is_dir() => mounts.push(bind(dir, dir)),
            Err(_) => {}
        }
    }
    mounts.extend(
        ["/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl"].into_iter().map(|path| bind(path, path)),
    );
    let text = "root:x:0:0:root:/root:/sbin/nologin\n".to_owned();
    mounts.push(MountPlan::File { target: "/etc/passwd".into(), content: text, mode: 0o644 });
    mounts.push(MountPlan::Proc { target: "/proc".into() });
    mounts.push(MountPlan::Dev { target: "/dev".into() });
    mounts.push(MountPlan::Disk { target: "/tmp".into(), size_mb: 64, mode: 0o1777 });
    mounts
}

pub fn bind(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> MountPlan {
    MountPlan::Bind { source: source.into(), target: target.into(), read_only: true }
}

/// A shell command.
pub fn sh(script: &str) -> ProcessPlan {
    program(&["/bin/sh", "-c", script])
}

pub fn program(argv: &[&str]) -> ProcessPlan {
    let env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    ProcessPlan { argv: argv.iter().map(|a| (*a).to_owned()).collect(), env, cwd: "/tmp".into() }
}

/// Runs a process to its end: status, stdout, stderr.
pub fn output(sandbox: &Sandbox, plan: &ProcessPlan) -> (ExitStatus, String, String) {
    let Spawned { inner_pid, stdout, stderr, .. } = sandbox.spawn(plan).unwrap();
    let read = |fd| {
        let mut bytes = vec![];
        File::from(fd).read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (out, err) = (read(stdout), read(stderr));
    (exit_of(sandbox, inner_pid), out, err)
}

/// Waits for the end of a process.
pub fn exit_of(sandbox: &Sandbox, wanted: i32) -> ExitStatus {
    let until = clock::monotonic_ns() + PATIENCE.as_nanos() as u64;
    while clock::monotonic_ns() < until {
        match sandbox.try_event().unwrap() {
            Some(SandboxEvent::Exited { inner_pid, status }) if inner_pid == wanted => return status,
            Some(SandboxEvent::PidOneGone) => panic!("pid 1 has ended"),
            Some(_) => {}
            None => {
                readable(sandbox.event_fd(), Duration::from_millis(100));
            }
        }
    }
    panic!("process {wanted} did not end");
}

/// Waits until a descriptor is readable.
pub fn readable(fd: impl rustix::fd::AsFd, wait: Duration) -> bool {
    let timeout =
        rustix::fs::Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).unwrap() > 0
}

/// Sleeps without the clock bans of the product.
pub fn pause(ms: u64) {
    let request =
        rustix::time::Timespec { tv_sec: (ms / 1_000) as i64, tv_nsec: (ms % 1_000 * 1_000_000) as i64 };
    let _ = rustix::thread::nanosleep(&request);
}

/// Waits for something to become true.
pub fn eventually(wait: Duration, mut is: impl FnMut() -> bool) -> bool {
    let until = clock::monotonic_ns() + wait.as_nanos() as u64;
    loop {
        if is() {
            return true;
        }
        if clock::monotonic_ns() > until {
            return false;
        }
        pause(5);
    }
}
