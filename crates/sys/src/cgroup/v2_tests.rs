//! Version 2 on the real kernel, as far as a machine goes whose controllers are elsewhere: freezer, birth in a cgroup, leaf.

use super::env::EnvCgroup;
use super::remove;
use super::tree::{Branch, LEAF, switch_on};
use super::words::{Controller, Version};
use crate::plan::CgroupPlan;
use crate::process::{self, Fork};
use crate::wait;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

/// A directory of version 2 that may be used, or a line that says what is skipped.
fn top(what: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point =
        mounts.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
    let dir = point.map(|point| Path::new(point).join(crate::run::label(what)));
    match dir {
        Some(dir) if fs::create_dir(&dir).is_ok() => Some(dir),
        _ => {
            println!("skipped: {what} with cgroups of version 2: none may be made here");
            None
        }
    }
}

/// A child in the cgroup that spins for some seconds at most, and not longer than the test.
struct Spinning(Pid);

impl Spinning {
    fn start(dir: &Path) -> Spinning {
        let cgroup = fs::File::open(dir).unwrap();
        // SAFETY: the child makes system calls only.
        match unsafe { process::fork(0, Some(cgroup.as_fd())) }.unwrap() {
            Fork::Child => {
                let end = crate::clock::monotonic_ns() + PATIENCE.as_nanos() as u64;
                while crate::clock::monotonic_ns() < end {}
                process::end(0)
            }
            Fork::Parent { child, .. } => Spinning(child),
        }
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        kill_process(self.0, Signal::KILL).unwrap();
        waitpid(Some(self.0), WaitOptions::empty()).unwrap();
    }
}

/// CPU time of a process in ticks.
fn ticks(pid: Pid) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(11).unwrap().parse().unwrap()
}

#[test]
fn processes_are_born_in_it_and_freeze() {
    let Some(dir) = top("freezer") else { return };
    let branch = Branch { controller: Controller::Freezer, version: Version::V2, dir: dir.join("env-1") };
    let env = EnvCgroup::create(vec![branch], &CgroupPlan::default()).unwrap();
    assert_eq!((env.doors().unwrap().len(), env.unified().unwrap().is_some()), (0, true));
    let child = Spinning::start(&dir.join("env-1"));
    assert_eq!(env.process_count(), 1);
    assert!(wait::until(PATIENCE, || ticks(child.0) > 2));
    env.freeze().unwrap();
    let before = ticks(child.0);
    wait::nap(Duration::from_millis(100));
    assert_eq!(ticks(child.0), before);
    env.thaw().unwrap();
    assert!(wait::until(PATIENCE, || ticks(child.0) > before));
    env.freeze().unwrap();
    drop(child);
    env.remove();
    remove::dirs(std::slice::from_ref(&dir));
    assert!(!dir.exists());
}

#[test]
fn processes_that_are_in_the_way_go_to_a_leaf_and_back() {
    let Some(dir) = top("leaf") else { return };
    let offered = fs::read_to_string(dir.join("cgroup.controllers")).unwrap();
    let child = Spinning::start(&dir);
    // As runs do it: a controller that would tolerate processes comes first.
    let wanted: Vec<&str> = ["cpu", "memory"].into_iter().filter(|name| offered.contains(name)).collect();
    if wanted.is_empty() {
        println!("skipped: leaf with cgroups of version 2: no controller is switched on at the top");
    } else {
        wanted.iter().for_each(|controller| switch_on(&dir, controller).unwrap());
        let is_in_leaf = fs::read_to_string(dir.join(LEAF).join("cgroup.procs")).unwrap();
        assert_eq!(is_in_leaf, format!("{}\n", child.0.as_raw_pid()));
        fs::create_dir(dir.join("env")).unwrap();
        drop(Spinning::start(&dir.join("env")));
        fs::remove_dir(dir.join("env")).unwrap();
        remove::leave_leaf(&dir);
        assert!(!dir.join(LEAF).exists());
        assert_eq!(fs::read_to_string(dir.join("cgroup.type")).unwrap(), "domain\n");
    }
    assert_eq!(fs::read_to_string(dir.join("cgroup.procs")).unwrap(), format!("{}\n", child.0.as_raw_pid()));
    drop(child);
    remove::dirs(std::slice::from_ref(&dir));
    assert!(!dir.exists());
}
