//! The name of a run. It carries the pid of its danki and when that was started, so that what dead runs left can be told from what
//! living ones use, whatever happened to them.

use crate::Error;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// All directories and cgroups of danki begin with this.
const PREFIX: &str = "danki-";

/// Keepers with the same label in one process, at most.
const SAME_LABEL_MAX: u32 = 1_000;

/// Name and directory of a run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub name: String,
    pub dir: PathBuf,
}

impl Run {
    /// Makes the run's directory below `base`, readable by its owner only.
    pub(crate) fn create(label: &str, base: &Path) -> Result<Run, Error> {
        let pid = rustix::process::getpid().as_raw_pid();
        let start = start_ticks(pid).unwrap_or(0);
        let failed =
            |dir: &Path, source| Error::System { action: format!("create {}", dir.display()), source };
        for again in 0..SAME_LABEL_MAX {
            let name = name(pid, start, label, again);
            let dir = base.join(&name);
            match fs::DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => return Ok(Run { name, dir }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&dir, error)),
            }
        }
        Err(failed(base, std::io::ErrorKind::AlreadyExists.into()))
    }

    /// Removes the directory and all in it.
    pub(crate) fn remove(&self) {
        fs::remove_dir_all(&self.dir).ok();
    }
}

/// A name of this process for something that needs no directory.
pub(crate) fn label(label: &str) -> String {
    let pid = rustix::process::getpid().as_raw_pid();
    name(pid, start_ticks(pid).unwrap_or(0), label, 0)
}

fn name(pid: i32, start: u64, label: &str, again: u32) -> String {
    let label: String =
        label.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).take(64).collect();
    let label = if label.is_empty() { label } else { format!("-{label}") };
    let again = if again == 0 { String::new() } else { format!(".{again}") };
    format!("{PREFIX}{pid}-{start}{label}{again}")
}

/// Is this the name of a run whose danki is no more? Other names are nobody's business.
pub(crate) fn is_dead(name: &str) -> bool {
    owner(name).is_some_and(|(pid, start)| start_ticks(pid) != Some(start))
}

fn owner(name: &str) -> Option<(i32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.splitn(3, ['-', '.']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// When a process was started, in clock ticks since boot. `None` if there is none, or only its corpse.
fn start_ticks(pid: i32) -> Option<u64> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Fields 3 (state) and 22 (starttime) of proc(5); the name in parentheses may hold anything.
fn parse_stat(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_living_from_the_dead() {
        let pid = rustix::process::getpid().as_raw_pid();
        let start = start_ticks(pid).unwrap();
        assert_eq!(owner(&name(12, 345, "a/b c", 0)), Some((12, 345)));
        assert_eq!(name(12, 345, "a/b c-1", 2), "danki-12-345-abc-1.2");
        assert_eq!(owner(&name(12, 345, "", 2)), Some((12, 345)));
        assert!(!is_dead(&name(pid, start, "x", 0)));
        assert!(is_dead(&name(pid, start + 1, "x", 0)));
        assert!(!is_dead("danki-main"));
        assert!(!is_dead("somebody"));
    }

    #[test]
    fn stat_is_parsed_whatever_the_name() {
        let rest = "1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 1 1";
        assert_eq!(parse_stat(&format!("5 (a) b) S {rest}")), Some(777));
        assert_eq!(parse_stat(&format!("5 (a) Z {rest}")), None);
        assert_eq!(parse_stat("5 (a"), None);
    }
}
