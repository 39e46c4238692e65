//! Takes cgroups away, whatever is in them. Version 1 delivers SIGKILL to a frozen process only when it is thawed; killing comes first
//! nevertheless, so that it does not run in between.

use super::tree::LEAF;
use crate::wait;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Killed processes leave their cgroup within milliseconds; one that waits for a slow disk may take longer.
const DEADLINE: Duration = Duration::from_secs(2);

/// Removes these directories, each with its children. Returns those that are gone now.
pub(crate) fn dirs(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let all: Vec<PathBuf> = dirs.iter().flat_map(|dir| with_children(dir)).collect();
    // The usual case: everything is empty already.
    let busy: Vec<&PathBuf> = all.iter().filter(|dir| !gone(dir)).collect();
    if !busy.is_empty() {
        busy.iter().for_each(|dir| kill(dir));
        busy.iter().for_each(|dir| thaw(dir));
        wait::until(DEADLINE, || {
            busy.iter().for_each(|dir| kill(dir));
            busy.iter().all(|dir| gone(dir))
        });
    }
    all.into_iter().filter(|dir| !dir.exists()).collect()
}

/// Version 2: processes that were moved out of the way go back, unless another run still needs that.
pub(crate) fn leave_leaf(base: &Path) {
    let leaf = base.join(LEAF);
    let is_run = |name: &std::ffi::OsStr| name != LEAF && name.to_string_lossy().starts_with("danki-");
    if fs::read_dir(base).into_iter().flatten().flatten().any(|entry| is_run(&entry.file_name())) {
        return;
    }
    let Ok(procs) = fs::read_to_string(leaf.join("cgroup.procs")) else { return };
    let on = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
    let off: Vec<String> = on.split_whitespace().map(|name| format!("-{name}")).collect();
    fs::write(base.join("cgroup.subtree_control"), off.join(" ")).ok();
    for pid in procs.lines() {
        fs::write(base.join("cgroup.procs"), pid).ok();
    }
    gone(&leaf);
}

/// Children first.
fn with_children(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let children = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut dirs: Vec<PathBuf> = children.flat_map(|entry| with_children(&entry.path())).collect();
    dirs.push(dir.to_owned());
    dirs
}

fn gone(dir: &Path) -> bool {
    match rustix::fs::rmdir(dir) {
        Ok(()) | Err(Errno::NOENT) => true,
        Err(_) => false,
    }
}

fn thaw(dir: &Path) {
    let v1 = dir.join("freezer.state");
    if v1.exists() {
        fs::write(v1, "THAWED").ok();
    }
    if dir.join("cgroup.freeze").exists() {
        fs::write(dir.join("cgroup.freeze"), "0").ok();
    }
}

fn kill(dir: &Path) {
    let Ok(procs) = fs::read_to_string(dir.join("cgroup.procs")) else { return };
    for pid in procs.lines().filter_map(|line| line.parse().ok()).filter_map(Pid::from_raw) {
        kill_process(pid, Signal::KILL).ok();
    }
}
