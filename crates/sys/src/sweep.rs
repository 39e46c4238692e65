//! What runs left whose danki *and* keeper were killed. Whose run it was says its name; see `run`.

use crate::cgroup::{remove, tree};
use crate::run;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories of runs are looked for here.
pub(crate) const BASE: &str = "/tmp";

/// Removes what dead runs left: cgroups with the processes in them, and directories. Returns what is gone, in words.
pub fn sweep() -> Vec<String> {
    sweep_in(Path::new(BASE))
}

/// As [`sweep`], for runs whose directories were made below `base`.
pub fn sweep_in(base: &Path) -> Vec<String> {
    let cgroups = dead_cgroups();
    // All at once: a process that is frozen in one hierarchy cannot be killed in another.
    remove::dirs(&cgroups);
    let gone = cgroups.iter().filter(|dir| !dir.exists());
    let mut removed: Vec<String> = gone.map(|dir| format!("cgroup {}", dir.display())).collect();
    for dir in dead_below(base) {
        if fs::remove_dir_all(&dir).is_ok() {
            removed.push(format!("directory {}", dir.display()));
        }
    }
    removed
}

/// Finds what [`sweep`] would remove, and removes nothing.
pub fn leftovers() -> Vec<String> {
    let cgroups = dead_cgroups().into_iter().map(|dir| format!("cgroup {}", dir.display()));
    let dirs = dead_below(Path::new(BASE)).into_iter().map(|dir| format!("directory {}", dir.display()));
    cgroups.chain(dirs).collect()
}

/// Anywhere in the hierarchies: the cgroup in which a dead danki was may not be ours.
fn dead_cgroups() -> Vec<PathBuf> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        found.extend(dead_below(dir));
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        below.for_each(|entry| walk(&entry.path(), found));
    }
    let mut found = vec![];
    tree::tops().iter().for_each(|top| walk(top, &mut found));
    found
}

fn dead_below(base: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let dead = entries.filter(|entry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir())
            && entry.file_name().to_str().is_some_and(run::is_dead)
    });
    let mut dirs: Vec<PathBuf> = dead.map(|entry| entry.path()).collect();
    dirs.sort();
    dirs
}
