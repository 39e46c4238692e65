//! The name of a run, `danki-<pid>-<start>-<pid namespace>`, says which danki it belongs to: what dead runs left can be told from what living
//! ones use, whatever happened to them. What was made in another pid namespace (a container that shares our cgroups or `/tmp`) cannot be
//! judged from here and is left alone.

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
        let owner = Owner::this();
        let failed =
            |dir: &Path, source| Error::System { action: format!("create {}", dir.display()), source };
        for again in 0..SAME_LABEL_MAX {
            let name = owner.name(label, again);
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
    Owner::this().name(label, 0)
}

/// Is this the name of a run whose danki is no more? Other names are nobody's business.
pub(crate) fn is_dead(name: &str) -> bool {
    let here = pid_namespace();
    Owner::parse(name)
        .is_some_and(|owner| owner.namespace == here && start_ticks(owner.pid) != Some(owner.start))
}

/// A process, for all time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    pid: i32,
    start: u64,
    namespace: u64,
}

impl Owner {
    fn this() -> Owner {
        let pid = rustix::process::getpid().as_raw_pid();
        Owner { pid, start: start_ticks(pid).unwrap_or(0), namespace: pid_namespace() }
    }

    fn name(self, label: &str, again: u32) -> String {
        let Owner { pid, start, namespace } = self;
        let label: String =
            label.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).take(64).collect();
        let label = if label.is_empty() { label } else { format!("-{label}") };
        let again = if again == 0 { String::new() } else { format!(".{again}") };
        format!("{PREFIX}{pid}-{start}-{namespace}{label}{again}")
    }

    fn parse(name: &str) -> Option<Owner> {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(4, ['-', '.']);
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (pid, start, namespace) = (number()?, number()?, number()?);
        Some(Owner { pid: i32::try_from(pid).ok()?, start, namespace })
    }
}

/// Number of the namespace in which pids are what we think they are; 0 if `/proc` does not tell.
fn pid_namespace() -> u64 {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let number = link.to_str().and_then(|text| text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
    number.unwrap_or(0)
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
        let owner = Owner { pid: 12, start: 345, namespace: 6 };
        assert_eq!(owner.name("a/b c-1", 2), "danki-12-345-6-abc-1.2");
        assert_eq!(Owner::parse("danki-12-345-6-abc-1.2"), Some(owner));
        assert_eq!(Owner::parse(&owner.name("", 2)), Some(owner));
        let this = Owner::this();
        assert!(!is_dead(&this.name("x", 0)));
        let dead = Owner { start: this.start + 1, ..this };
        assert!(is_dead(&dead.name("x", 0)));
        assert!(!is_dead(&Owner { namespace: 1, ..dead }.name("x", 0)), "not ours to judge");
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
