//! The cgroups of one run: `danki-<pid>-<start>/env-<id>` in every hierarchy that lets us.

use super::env::EnvCgroup;
use super::places::{self, Place};
use super::words::{Controller, Version};
use crate::Error;
use crate::plan::CgroupPlan;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Controllers of version 2 that must be switched on in the parent.
const V2_SWITCHED: [Controller; 3] = [Controller::Cpu, Controller::Memory, Controller::Pids];

/// Where the processes of danki's own cgroup go when version 2 forbids them beside child cgroups.
pub(super) const LEAF: &str = "danki-main";

/// One controller's directory of the run.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub controller: Controller,
    pub version: Version,
    pub dir: PathBuf,
}

/// The directories of a run, and why others could not be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub branches: Vec<Branch>,
    pub refused: Vec<(Controller, String)>,
}

impl Tree {
    /// Makes the directories. Never fails as a whole: what is refused is remembered.
    pub(crate) fn create(name: &str) -> Tree {
        let mut tree = Tree::default();
        let places = places::here();
        for controller in Controller::ALL {
            match places.iter().find(|place| place.controller == controller) {
                None => tree.refused.push((controller, "no cgroup hierarchy offers it".to_owned())),
                Some(place) => match make(place, name) {
                    Ok(dir) => tree.branches.push(Branch { controller, version: place.version, dir }),
                    Err(error) => tree.refused.push((controller, error)),
                },
            }
        }
        tree
    }

    /// Makes the cgroups of one env and sets its limits.
    pub(crate) fn env(&self, id: u32, plan: &CgroupPlan) -> Result<EnvCgroup, Error> {
        let name = format!("env-{id}");
        let branches = self.branches.iter().map(|b| Branch { dir: b.dir.join(&name), ..b.clone() }).collect();
        EnvCgroup::create(branches, plan)
    }

    /// Every directory once: controllers may share one.
    pub(crate) fn dirs(&self) -> Vec<PathBuf> {
        distinct(&self.branches)
    }
}

pub(super) fn distinct(branches: &[Branch]) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = branches.iter().map(|b| b.dir.clone()).collect();
    dirs.sort();
    dirs.dedup();
    dirs
}

/// The mount points of the hierarchies that danki uses.
pub(crate) fn tops() -> Vec<PathBuf> {
    let mut tops: Vec<PathBuf> = places::here().into_iter().map(|place| place.top).collect();
    tops.sort();
    tops.dedup();
    tops
}

/// The directories below which runs make theirs.
pub(crate) fn bases() -> Vec<PathBuf> {
    let mut bases: Vec<PathBuf> = places::here().iter().flat_map(candidates).collect();
    bases.sort();
    bases.dedup();
    bases
}

/// Version 2: at the top if we may, because our own cgroup has processes in it. Version 1: where we are.
fn candidates(place: &Place) -> Vec<PathBuf> {
    match place.version {
        Version::V1 => vec![place.own.clone()],
        Version::V2 if place.own == place.top => vec![place.own.clone()],
        Version::V2 => vec![place.top.clone(), place.own.clone()],
    }
}

fn make(place: &Place, name: &str) -> Result<PathBuf, String> {
    let mut refusals = vec![];
    for base in candidates(place) {
        match make_in(&base, place, name) {
            Ok(dir) => return Ok(dir),
            Err(error) => refusals.push(format!("{}: {error}", base.display())),
        }
    }
    Err(refusals.join("; "))
}

fn make_in(base: &Path, place: &Place, name: &str) -> io::Result<PathBuf> {
    let dir = base.join(name);
    let switched = place.version == Version::V2 && V2_SWITCHED.contains(&place.controller);
    if switched {
        switch_on(base, place.controller.name())?;
    }
    match fs::create_dir(&dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    if switched {
        switch_on(&dir, place.controller.name())?;
    }
    Ok(dir)
}

/// Version 2: lets children of `dir` have the controller. Only the top of all may have processes beside child cgroups; elsewhere they go
/// to a leaf, and before the first controller: those of CPU time and processes would be switched on nevertheless, and make of
/// `dir` a threaded domain, whose children cannot have memory limits or be born in (EOPNOTSUPP).
pub(super) fn switch_on(dir: &Path, controller: &str) -> io::Result<()> {
    let file = dir.join("cgroup.subtree_control");
    if fs::read_to_string(&file)?.split_whitespace().any(|on| on == controller) {
        return Ok(());
    }
    let is_top_of_all = !dir.join("cgroup.type").exists();
    if !is_top_of_all && fs::read_to_string(dir.join("cgroup.procs"))?.lines().next().is_some() {
        move_to_leaf(dir)?;
    }
    fs::write(&file, format!("+{controller}"))
}

fn move_to_leaf(dir: &Path) -> io::Result<()> {
    let leaf = dir.join(LEAF);
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for pid in fs::read_to_string(dir.join("cgroup.procs"))?.lines() {
        fs::write(leaf.join("cgroup.procs"), pid)?;
    }
    Ok(())
}
