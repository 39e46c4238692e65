//! The keeper: a process of one thread, forked when danki starts, and the parent of every env. It is what makes danki leave nothing
//! behind: it outlives a danki that is killed, and takes the envs down.

mod serve;

use crate::cgroup::refill::Clockwork;
use crate::cgroup::tree::Tree;
use crate::disk::Disks;
use crate::error::Trying;
use crate::init::Caller;
use crate::message::{self, Create};
use crate::plan::EnvPlan;
use crate::run::Run;
use crate::sandbox::{self, Sandbox};
use crate::{Error, cgroup, process};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for the keeper or a pid 1 to answer.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// Directories of runs are made here unless said otherwise.
const BASE: &str = "/tmp";

/// danki's handle of its keeper. Dropping it ends all envs.
#[derive(Debug)]
pub struct Keeper {
    socket: OwnedFd,
    pid: Pid,
    pidfd: OwnedFd,
    run: Run,
    tree: Tree,
    clockwork: Clockwork,
    disks: Disks,
    staging: PathBuf,
    /// Already shut down.
    over: bool,
}

impl Keeper {
    /// Forks the keeper. Call it before other threads exist where possible. `run` becomes part of the names of cgroups and directories.
    ///
    /// # Errors
    /// The kernel refuses a process, a socket or a directory below `/tmp`.
    pub fn start(run: &str) -> Result<Keeper, Error> {
        Keeper::start_in(run, Path::new(BASE))
    }

    /// As [`Keeper::start`], with the run's directory below `base`.
    ///
    /// # Errors
    /// As [`Keeper::start`].
    pub fn start_in(run: &str, base: &Path) -> Result<Keeper, Error> {
        let run = Run::create(run, base)?;
        let started = Keeper::fork(&run);
        if started.is_err() {
            run.remove();
        }
        started
    }

    fn fork(run: &Run) -> Result<Keeper, Error> {
        let staging = run.dir.join("root");
        std::fs::create_dir(&staging).trying(|| format!("create {}", staging.display()))?;
        let tree = Tree::create(&run.name);
        let (ours, theirs) = message::pair().trying(|| "make a socket pair".to_owned())?;
        set_socket_timeout(&ours, Timeout::Send, Some(DEADLINE)).trying(|| "set a deadline".to_owned())?;
        let caller = caller();
        // SAFETY: `serve::run` uses malloc and system calls only, and takes no lock that another thread may hold.
        match unsafe { process::fork_threaded() }.trying(|| "fork the keeper".to_owned())? {
            None => serve::run(theirs, run, &tree, caller),
            Some(pid) => {
                let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())
                    .trying(|| format!("open keeper {}", pid.as_raw_pid()))?;
                let disks = Disks::new(&run.dir);
                let (run, clockwork) = (run.clone(), Clockwork::of_this_machine());
                Ok(Keeper { socket: ours, pid, pidfd, run, tree, clockwork, disks, staging, over: false })
            }
        }
    }

    /// Makes an env as planned. Blocks for a few milliseconds, 10 s at most; calls from several threads overlap.
    ///
    /// # Errors
    /// [`Error::Apply`] names the step of the plan that failed; [`Error::Gone`] if the keeper has ended.
    pub fn create(&self, plan: &EnvPlan) -> Result<Sandbox, Error> {
        let (control, theirs) = message::pair().trying(|| "make a socket pair".to_owned())?;
        let (events, their_events) = message::pair().trying(|| "make a socket pair".to_owned())?;
        message::send(&self.socket, &Create { id: plan.id }, &[theirs.as_fd(), their_events.as_fd()])
            .map_err(|source| gone_or(source, "ask the keeper for an env"))?;
        drop((theirs, their_events));
        sandbox::build(self, plan, control, events)
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn clockwork(&self) -> &Clockwork {
        &self.clockwork
    }

    pub(crate) fn disks(&self) -> &Disks {
        &self.disks
    }

    pub(crate) fn staging(&self) -> &Path {
        &self.staging
    }

    /// The run's directory below the base; goes with the keeper.
    pub fn dir(&self) -> &Path {
        &self.run.dir
    }

    /// The keeper's process, in danki's pid namespace.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_pid()
    }

    /// Ends all envs and waits until nothing of them is left.
    ///
    /// # Errors
    /// [`Error::Late`] if the keeper did not end in time; what it should have removed is removed nevertheless.
    pub fn shutdown(mut self) -> Result<(), Error> {
        self.over = true;
        self.end()
    }

    fn end(&self) -> Result<(), Error> {
        rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write).ok();
        let ended = ended(&self.pidfd, DEADLINE);
        if !ended {
            rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL).ok();
        }
        rustix::process::waitpid(Some(self.pid), WaitOptions::empty()).ok();
        // Usually the keeper has done this.
        cgroup::remove::dirs(&self.tree.dirs());
        self.run.remove();
        match ended {
            true => Ok(()),
            false => Err(Error::Late { who: "the keeper", action: "end", deadline: DEADLINE }),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if !self.over {
            self.end().ok();
        }
    }
}

/// Waits for the end of a process.
pub(crate) fn ended(pidfd: impl AsFd, deadline: Duration) -> bool {
    let timeout =
        Timespec { tv_sec: deadline.as_secs().cast_signed(), tv_nsec: deadline.subsec_nanos().into() };
    let mut ready = [PollFd::new(&pidfd, PollFlags::IN)];
    loop {
        match poll(&mut ready, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.is_ok_and(|count| count > 0),
        }
    }
}

pub(crate) fn gone_or(source: std::io::Error, action: &str) -> Error {
    match source.kind() {
        std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset => {
            Error::Gone { who: "the keeper" }
        }
        _ => Error::System { action: action.to_owned(), source },
    }
}

/// `None` for root, who needs no user namespace.
fn caller() -> Option<Caller> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    (!uid.is_root()).then_some(Caller { uid: uid.as_raw(), gid: gid.as_raw() })
}
