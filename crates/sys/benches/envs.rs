//! What an env costs: creation until its program runs, and destruction. `cargo bench -p danki-sys` (root).
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark: it prints, and a failure is its end"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use danki_sys::clock::monotonic_ns;
use danki_sys::plan::{EnvPlan, MountPlan};
use danki_sys::{Keeper, Sandbox};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const ROUNDS: u32 = 200;
const ALIVE: u32 = 300;

fn main() {
    if !support::is_root("bench envs") {
        return;
    }
    let keeper = Keeper::start("bench").unwrap();
    for (name, disk) in [("/tmp on tmpfs", false), ("/tmp on a disk", true)] {
        println!("{name}");
        sequential(&keeper, disk);
    }
    std::thread::spawn(crun).join().unwrap();
    many(&keeper);
    keeper.shutdown().unwrap();
}

fn plan(id: u32, disk: bool) -> EnvPlan {
    let mut plan = support::plan(id);
    for mount in plan.root.iter_mut().flat_map(|root| &mut root.mounts) {
        if let (false, MountPlan::Disk { target, size_mb, mode }) = (disk, mount.clone()) {
            *mount = MountPlan::Tmpfs { target, size_mb, mode };
        }
    }
    plan
}

fn sequential(keeper: &Keeper, disk: bool) {
    let (mut create, mut spawn, mut both, mut destroy) = (vec![], vec![], vec![], vec![]);
    let mut quiet = 0;
    for id in 0..ROUNDS {
        quiet += u32::from(wait_for_quiet());
        let start = monotonic_ns();
        let sandbox = keeper.create(&plan(id, disk)).unwrap();
        let created = monotonic_ns();
        sandbox.spawn(&support::program(&["/bin/true"])).unwrap();
        let spawned = monotonic_ns();
        support::pause(20);
        let before = monotonic_ns();
        sandbox.destroy().unwrap();
        destroy.push(monotonic_ns() - before);
        create.push(created - start);
        spawn.push(spawned - created);
        both.push(spawned - start);
    }
    println!("  one after the other, {ROUNDS} rounds, {quiet} of them on a machine that was idle before");
    for (name, times) in [("create", create), ("spawn", spawn), ("create+spawn", both), ("destroy", destroy)]
    {
        show(name, times);
    }
}

/// Other people's work spoils the numbers: waits until nine tenths of the CPUs have been idle for 20 ms, 2 s at most.
fn wait_for_quiet() -> bool {
    (0..100).any(|_| {
        let before = idle_ticks();
        support::pause(20);
        // Ticks are 10 ms.
        idle_ticks() - before >= 2 * std::thread::available_parallelism().unwrap().get() as u64 - 1
    })
}

fn idle_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    stat.split_whitespace().nth(4).unwrap().parse().unwrap()
}

/// The yardstick, where it is installed: `crun run` of the same program over the same system directories, until it has ended. That has
/// an exit and a removal more than `create+spawn`, and a TUN and a disk less.
fn crun() {
    hide_second_hierarchy();
    let bundle = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut crun = Command::new("crun");
        crun.args(arguments).current_dir(&bundle).stdout(Stdio::null()).stderr(Stdio::piped()).output()
    };
    if run(&["spec"]).is_err() {
        println!("crun is not installed: no comparison");
        return;
    }
    let path = bundle.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["process"]["terminal"] = json!(false);
    config["process"]["args"] = json!(["/bin/true"]);
    std::fs::create_dir(bundle.path().join("rootfs")).unwrap();
    let mounts = config["mounts"].as_array_mut().unwrap();
    for dir in ["/usr", "/bin", "/lib", "/lib64"] {
        mounts.push(json!({"destination": dir, "source": dir, "type": "bind", "options": ["bind", "ro"]}));
    }
    std::fs::write(&path, config.to_string()).unwrap();
    for manager in ["cgroupfs", "disabled"] {
        let mut times = vec![];
        for round in 0..ROUNDS {
            wait_for_quiet();
            let start = monotonic_ns();
            let output = run(&["--cgroup-manager", manager, "run", &format!("danki-bench-{round}")]).unwrap();
            times.push(monotonic_ns() - start);
            if !output.status.success() {
                println!("crun does not run here: {}", String::from_utf8_lossy(&output.stderr).trim());
                return;
            }
        }
        println!("crun run /bin/true, {ROUNDS} rounds, cgroup manager {manager}");
        show("crun", times);
    }
}

/// crun refuses machines that have cgroups of both versions: it and this thread do not see the second.
fn hide_second_hierarchy() {
    use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    // SAFETY: this thread keeps no path of its former mount namespace.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }.unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    unmount("/sys/fs/cgroup/unified", UnmountFlags::DETACH).ok();
}

fn many(keeper: &Keeper) {
    let start = monotonic_ns();
    let sandboxes: Vec<Sandbox> = (0..ALIVE)
        .map(|id| {
            let sandbox = keeper.create(&support::plan(10_000 + id)).unwrap();
            sandbox.spawn(&support::program(&["/bin/sleep", "1000"])).unwrap();
            sandbox.cgroup().freeze().unwrap();
            sandbox
        })
        .collect();
    println!("{ALIVE} envs created and frozen in {} ms", (monotonic_ns() - start) / 1_000_000);
    let start = monotonic_ns();
    let halves: Vec<Vec<Sandbox>> = split(sandboxes, 8);
    std::thread::scope(|scope| {
        for half in halves {
            scope.spawn(move || half.into_iter().for_each(|sandbox| sandbox.destroy().unwrap()));
        }
    });
    println!("{ALIVE} frozen envs destroyed by 8 threads in {} ms", (monotonic_ns() - start) / 1_000_000);
}

fn split(mut all: Vec<Sandbox>, parts: usize) -> Vec<Vec<Sandbox>> {
    let size = all.len().div_ceil(parts);
    let mut halves = vec![];
    while !all.is_empty() {
        halves.push(all.split_off(all.len().saturating_sub(size)));
    }
    halves
}

fn show(name: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let at = |share: f64| {
        times[((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1] as f64 / 1e6
    };
    println!("  {name:<14} p50 {:.2} ms  p90 {:.2}  p99 {:.2}", at(0.5), at(0.9), at(0.99));
}
