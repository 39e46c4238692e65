//! Whatever ends danki, nothing is left: processes, cgroups, directories, mounts.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]

mod support;

use danki_sys::{Keeper, Sandbox};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::*;

/// The promise for a danki that is killed.
const SOON: Duration = Duration::from_secs(2);

/// Directories below the cgroup mounts whose name has this in it.
fn cgroups(of: &str) -> Vec<PathBuf> {
    fn walk(dir: &Path, of: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().contains(of) {
                    found.push(entry.path());
                }
                walk(&entry.path(), of, found);
            }
        }
    }
    let mut found = vec![];
    walk(Path::new("/sys/fs/cgroup"), of, &mut found);
    found
}

fn exists(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn mounts() -> BTreeSet<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.lines().map(str::to_owned).collect()
}

/// One env whose process spins, frozen or not. Returns the process's pid.
fn busy(keeper: &Keeper, id: u32, frozen: bool) -> (Sandbox, i32) {
    let sandbox = keeper.create(&plan(id)).unwrap();
    let spawned = sandbox.spawn(&sh("(trap '' TERM; while :; do :; done) & while :; do :; done")).unwrap();
    if frozen {
        sandbox.cgroup().freeze().unwrap();
    }
    assert!(spawned.pid > 0 && exists(spawned.pid), "the pid is one of ours");
    (sandbox, spawned.pid)
}

#[test]
fn shutdown_drop_and_destroy_leave_nothing() {
    if !is_root("nothing left") {
        return;
    }
    let before = mounts();
    let keeper = keeper("leave");
    let (dir, keeper_pid) = (keeper.dir().to_owned(), keeper.pid());
    let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(!cgroups(&name).is_empty());
    let (destroyed, first) = busy(&keeper, 1, true);
    destroyed.destroy().unwrap();
    assert!(!exists(first));
    let (dropped, second) = busy(&keeper, 2, false);
    drop(dropped);
    assert!(!exists(second));
    assert!(cgroups(&name).iter().all(|dir| !dir.join("env-1").exists() && !dir.join("env-2").exists()));
    let (left_alive, third) = busy(&keeper, 3, true);
    assert_eq!(mounts(), before, "mounts of envs are not seen outside");
    keeper.shutdown().unwrap();
    for pid in [first, second, third, keeper_pid] {
        assert!(!exists(pid), "{pid}");
    }
    assert_eq!(cgroups(&name), Vec::<PathBuf>::new());
    assert!(!dir.exists());
    assert!(left_alive.spawn(&sh("exit")).is_err());
    drop(left_alive);
    assert_eq!(mounts(), before);
}

/// A process like danki, with two busy envs, that does nothing but wait for its end.
struct Victim {
    pid: Pid,
    keeper: i32,
    processes: Vec<i32>,
    name: String,
}

impl Victim {
    fn start() -> Victim {
        let (read, write) = rustix::pipe::pipe().unwrap();
        // SAFETY: the child uses malloc, files and system calls; it prints nothing and never returns into the test harness.
        match unsafe { libc::fork() } {
            0 => {
                drop(read);
                let keeper = keeper("victim");
                let envs: Vec<_> = [true, false]
                    .into_iter()
                    .zip(1..)
                    .map(|(frozen, id)| busy(&keeper, id, frozen))
                    .collect();
                let name = keeper.dir().file_name().unwrap().to_str().unwrap().to_owned();
                writeln!(File::from(write), "{} {} {} {name}", keeper.pid(), envs[0].1, envs[1].1).unwrap();
                loop {
                    pause(100_000);
                }
            }
            pid => {
                drop(write);
                let mut line = String::new();
                BufReader::new(File::from(read)).read_line(&mut line).unwrap();
                let words: Vec<&str> = line.split_whitespace().collect();
                let number = |at: usize| words[at].parse().unwrap();
                let (keeper, processes) = (number(0), vec![number(1), number(2)]);
                Victim { pid: Pid::from_raw(pid).unwrap(), keeper, processes, name: words[3].to_owned() }
            }
        }
    }

    fn kill(&self) {
        kill_process(self.pid, Signal::KILL).unwrap();
        waitpid(Some(self.pid), WaitOptions::empty()).unwrap();
    }

    fn left(&self) -> Vec<String> {
        let pids = self
            .processes
            .iter()
            .chain([&self.keeper])
            .filter(|pid| exists(**pid))
            .map(|pid| format!("process {pid}"));
        let dir = Path::new("/tmp").join(&self.name);
        let dirs = cgroups(&self.name)
            .into_iter()
            .chain(dir.exists().then_some(dir))
            .map(|dir| dir.display().to_string());
        pids.chain(dirs).collect()
    }
}

#[test]
fn a_danki_that_is_killed_leaves_nothing() {
    if !is_root("nothing left") {
        return;
    }
    let victim = Victim::start();
    assert!(victim.left().len() > 4, "{:?}", victim.left());
    victim.kill();
    let clean = eventually(SOON, || victim.left().is_empty());
    assert!(clean, "{:?}", victim.left());
}

#[test]
fn a_keeper_that_is_killed_takes_its_envs_with_it() {
    if !is_root("nothing left") {
        return;
    }
    let keeper = keeper("killed");
    let (sandbox, process) = busy(&keeper, 1, false);
    kill_process(Pid::from_raw(keeper.pid()).unwrap(), Signal::KILL).unwrap();
    assert!(eventually(SOON, || !exists(process)));
    assert!(eventually(SOON, || matches!(
        sandbox.try_event(),
        Ok(Some(danki_sys::SandboxEvent::PidOneGone))
    )));
    assert!(matches!(keeper.create(&plan(2)), Err(danki_sys::Error::Gone { .. })));
    let name = keeper.dir().file_name().unwrap().to_str().unwrap().to_owned();
    drop(sandbox);
    drop(keeper);
    assert_eq!(cgroups(&name), Vec::<PathBuf>::new());
}

#[test]
fn sweep_removes_what_is_left_when_both_are_killed() {
    if !is_root("nothing left") {
        return;
    }
    let victim = Victim::start();
    let living = keeper("living");
    let (sandbox, process) = busy(&living, 1, true);
    kill_process(Pid::from_raw(victim.keeper).unwrap(), Signal::STOP).unwrap();
    victim.kill();
    kill_process(Pid::from_raw(victim.keeper).unwrap(), Signal::KILL).unwrap();
    pause(100);
    let found = danki_sys::leftovers();
    assert!(found.iter().any(|what| what.contains(&victim.name)), "{found:?}");
    let removed = danki_sys::sweep();
    assert!(removed.iter().any(|what| what.contains(&victim.name)), "{removed:?}");
    assert!(eventually(SOON, || victim.left().is_empty()), "{:?}", victim.left());
    assert!(!danki_sys::leftovers().iter().any(|what| what.contains(&victim.name)));
    assert!(exists(process), "what is alive is left alone");
    sandbox.cgroup().thaw().unwrap();
    assert!(sandbox.destroy().is_ok());
}
