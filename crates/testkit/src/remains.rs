//! What a run has on the machine, seen from outside: processes, cgroups, directories, mounts, loop devices.

use danki_sys::clock;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A process, for all time: its start tells it from a later one with its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it was started, in clock ticks since boot.
    pub start: u64,
}

impl Process {
    /// The process with this number, if there is one that is not a corpse.
    pub fn find(pid: i32) -> Option<Process> {
        let (_, process) = parent_of(pid)?;
        Some(process)
    }

    /// It still exists.
    pub fn lives(&self) -> bool {
        Process::find(self.pid).as_ref() == Some(self)
    }

    /// Its arguments, joined by blanks.
    pub fn command(&self) -> String {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    }
}

/// Fields 3, 4 and 22 of proc(5): state, parent, start. A corpse is none.
fn parent_of(pid: i32) -> Option<(i32, Process)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some((parent, Process { pid, start }))
}

/// All processes below this one, in whatever pid namespace.
pub fn descendants(pid: i32) -> BTreeSet<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let all: Vec<(i32, Process)> = pids.filter_map(parent_of).collect();
    let mut found = BTreeSet::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for (_, child) in all.iter().filter(|(p, _)| *p == parent) {
            if found.insert(child.clone()) {
                parents.push(child.pid);
            }
        }
    }
    found
}

/// Cgroups, directories below `/tmp`, mounts and loop devices whose name holds `name`, in words.
pub fn traces(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    cgroups(Path::new("/sys/fs/cgroup"), name, &mut found);
    let holds = |path: &Path| path.to_string_lossy().contains(name);
    let below = |dir: &str| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    found
        .extend(below("/tmp").filter(|path| holds(path)).map(|path| format!("directory {}", path.display())));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    found.extend(mounts.lines().filter(|line| line.contains(name)).map(|line| format!("mount {line}")));
    for device in below("/sys/block") {
        let file = fs::read_to_string(device.join("loop/backing_file")).unwrap_or_default();
        if file.contains(name) {
            found.push(format!("{} on {}", device.display(), file.trim_end()));
        }
    }
    found
}

fn cgroups(dir: &Path, name: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        match entry.file_name().to_string_lossy().contains(name) {
            true => found.push(format!("cgroup {}", entry.path().display())),
            false => cgroups(&entry.path(), name, found),
        }
    }
}

/// Waits until something becomes true; false if it does not within `limit`.
pub fn eventually(limit: Duration, mut is: impl FnMut() -> bool) -> bool {
    let end_ns = clock::monotonic_ns() + u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX / 2);
    loop {
        if is() {
            return true;
        }
        if clock::monotonic_ns() > end_ns {
            return false;
        }
        thread::park_timeout(Duration::from_millis(5));
    }
}
