//! The machine's own directories of programs, as another root sees them.

use crate::plan::MountPlan;
use std::fs;
use std::path::{Path, PathBuf};

/// `/bin`, `/lib`…: links to below `/usr`, or, on machines that have them so, directories of their own. `/usr` itself is not among them.
pub fn system_dirs() -> Vec<MountPlan> {
    ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"].iter().filter_map(|dir| mount(dir)).collect()
}

fn mount(dir: &str) -> Option<MountPlan> {
    let target = PathBuf::from(dir);
    match fs::read_link(dir) {
        Ok(to) => Some(MountPlan::Symlink { target, to }),
        Err(_) if Path::new(dir).is_dir() => {
            Some(MountPlan::Bind { source: target.clone(), target, read_only: true })
        }
        Err(_) => None,
    }
}
