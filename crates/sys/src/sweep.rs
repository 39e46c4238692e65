//! What runs left whose danki *and* keeper were killed. Whose run it was says its name; see `run`.

use crate::cgroup::{remove, tree};
use crate::run;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories of runs are looked for here.
const BASE: &str = "/tmp";

/// Removes what dead runs left: cgroups with the processes in them, and directories. Returns what is gone, in words.
pub fn sweep() -> Vec<String> {
    sweep_in(Path::new(BASE))
}

/// As [`sweep`], for runs whose directories were made below `base`.
pub fn sweep_in(base: &Path) -> Vec<String> {
    let mut removed = vec![];
    for dir in dead_cgroups() {
        remove::dirs(std::slice::from_ref(&dir));
        if !dir.exists() {
            removed.push(format!("cgroup {}", dir.display()));
        }
    }
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

fn dead_cgroups() -> Vec<PathBuf> {
    tree::bases().iter().flat_map(|base| dead_below(base)).collect()
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
