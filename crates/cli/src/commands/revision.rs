//! `DIR@REVISION`: a function's directory as git has it, taken out into a temporary directory.

use crate::exit::Failure;
use danki_sys::Scratch;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where installed dependencies lie, which git does not have, and the file that says what they are.
const INSTALLED: [(&str, &str); 2] = [("node_modules", "package-lock.json"), (".deps", "requirements.txt")];

/// A directory that is there: the user's own, or one that goes when this is dropped.
pub struct Source {
    dir: PathBuf,
    _ours: Option<Scratch>,
}

impl Source {
    /// `DIR`, or `DIR@REVISION` if there is no directory of that name.
    pub fn find(name: &str) -> Result<Source, Failure> {
        let path = Path::new(name);
        match name.rsplit_once('@') {
            Some((dir, revision)) if !path.exists() && Path::new(dir).is_dir() => {
                let ours = Scratch::create("revision")?;
                take_out(Path::new(dir), revision, ours.dir())?;
                Ok(Source { dir: ours.dir().to_path_buf(), _ours: Some(ours) })
            }
            _ => Ok(Source { dir: path.to_path_buf(), _ours: None }),
        }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

fn take_out(dir: &Path, revision: &str, out: &Path) -> Result<(), Failure> {
    let machine = |what: &str, error: std::io::Error| Failure::machine(format!("cannot {what}: {error}"));
    let name = format!("{revision}^{{commit}}");
    let known = git(dir).args(["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).output();
    let known = known.map_err(|e| machine("run git", e))?;
    let commit = String::from_utf8_lossy(&known.stdout).trim().to_owned();
    if !known.status.success() || commit.is_empty() {
        let what = format!("{} has no revision {revision:?}", dir.display());
        return Err(Failure::usage(what).hint("`git -C DIR log --oneline` lists some"));
    }
    // Run in a subdirectory, git archives that subdirectory.
    let mut archive = git(dir);
    archive.args(["archive", "--format=tar", &commit]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut archive = archive.spawn().map_err(|e| machine("run git archive", e))?;
    let tar = archive.stdout.take().expect("it is piped");
    let unpacked = Command::new("tar").arg("-x").arg("-C").arg(out).stdin(tar).status();
    let archived = archive.wait().is_ok_and(|status| status.success());
    if !archived || !unpacked.map_err(|e| machine("run tar", e))?.success() {
        return Err(Failure::usage(format!("{} is not in revision {revision}", dir.display())));
    }
    INSTALLED.iter().try_for_each(|(installed, lock)| copy_installed(dir, out, installed, lock))
}

/// What is installed beside the function today serves an old revision only if that asks for the same.
fn copy_installed(dir: &Path, out: &Path, installed: &str, lock: &str) -> Result<(), Failure> {
    let (from, to) = (dir.join(installed), out.join(installed));
    let Ok(wanted) = fs::read(out.join(lock)) else { return Ok(()) };
    if !from.is_dir() || to.exists() {
        return Ok(());
    }
    if fs::read(dir.join(lock)).ok() != Some(wanted) {
        let what = format!("that revision has another {lock} than {}", dir.display());
        return Err(Failure::usage(what).hint(
            "check it out elsewhere (`git worktree add`), install there, and compare the two directories",
        ));
    }
    let copied = Command::new("cp").arg("-a").arg(&from).arg(&to).status();
    match copied {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failure::machine(format!("cannot copy {}", from.display()))),
    }
}

fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(dir).stdin(Stdio::null());
    git
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        let run = |arguments: &[&str]| {
            let status = git(dir.path())
                .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
                .args(arguments)
                .stdout(Stdio::null())
                .status();
            assert!(status.expect("git runs").success(), "{arguments:?}");
        };
        let f = dir.path().join("f");
        fs::create_dir_all(f.join("node_modules/x")).expect("made");
        fs::write(f.join("node_modules/x/index.js"), "1").expect("written");
        fs::write(f.join("package-lock.json"), "{}").expect("written");
        fs::write(f.join("index.js"), "old").expect("written");
        fs::write(dir.path().join(".gitignore"), "node_modules\n").expect("written");
        run(&["init", "--quiet"]);
        run(&["add", "."]);
        run(&["commit", "--quiet", "-m", "old"]);
        fs::write(f.join("index.js"), "new").expect("written");
        run(&["commit", "--quiet", "-am", "new"]);
        dir
    }

    #[test]
    fn a_revision_is_taken_out_with_what_is_installed_and_goes_again() {
        let repository = repository();
        let f = repository.path().join("f");
        let name = |revision: &str| format!("{}@{revision}", f.display());
        let old = Source::find(&name("HEAD~1")).map_err(|e| e.what).expect("there");
        let read = |path: &str| fs::read_to_string(old.dir().join(path)).expect("there");
        assert_eq!((read("index.js").as_str(), read("node_modules/x/index.js").as_str()), ("old", "1"));
        let dir = old.dir().to_path_buf();
        drop(old);
        assert!(!dir.exists());
        let own = Source::find(&f.display().to_string()).map_err(|e| e.what).expect("there");
        assert_eq!(own.dir(), f);
        drop(own);
        assert!(f.join("index.js").is_file(), "the user's own stays");
    }

    #[test]
    fn a_revision_that_does_not_fit_is_told() {
        let repository = repository();
        let f = repository.path().join("f");
        let told = |revision: &str| {
            Source::find(&format!("{}@{revision}", f.display())).err().expect("refused").what
        };
        assert!(told("nothing-like-it").contains("no revision"));
        fs::write(f.join("package-lock.json"), "{\"other\": 1}").expect("written");
        assert!(told("HEAD").contains("another package-lock.json"));
    }
}
