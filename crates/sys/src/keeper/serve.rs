//! The keeper's own process. It may have been forked from a process with threads: nothing here may take a lock of the standard library
//! or print.

use crate::cgroup::remove;
use crate::cgroup::tree::{self, Tree};
use crate::init::{self, Caller};
use crate::message::{self, Create, Reply};
use crate::process::{self, Fork};
use crate::run::Run;
use crate::wait;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Envs that were killed are gone within this time.
const END_DEADLINE: Duration = Duration::from_secs(5);

const NAMESPACES: u64 =
    (libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS)
        as u64;

/// Serves until danki is gone, then takes everything down and ends.
pub(super) fn run(socket: OwnedFd, run: &Run, tree: &Tree, caller: Option<Caller>) -> ! {
    let served = catch_unwind(AssertUnwindSafe(|| {
        let socket = settle(socket)?;
        let children = process::child_events()?;
        Keeping { socket, caller, envs: vec![] }.serve(&children)
    }));
    let envs = served.ok().and_then(io::Result::ok).unwrap_or_default();
    let cleaned = catch_unwind(AssertUnwindSafe(|| end(envs, run, tree)));
    process::end(i32::from(cleaned.is_err()))
}

/// Away from danki's terminal, directory and descriptors.
fn settle(socket: OwnedFd) -> io::Result<OwnedFd> {
    rustix::process::setsid().ok();
    process::ignore_only(&process::IGNORED);
    rustix::thread::set_name(c"danki-keeper").ok();
    rustix::process::chdir("/")?;
    let [socket] = only([socket])?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    for stream in 0..3 {
        process::rename(null.as_fd(), stream)?;
    }
    Ok(socket)
}

/// Closes every descriptor but these and the standard streams.
fn only<const N: usize>(keep: [OwnedFd; N]) -> io::Result<[OwnedFd; N]> {
    const FIRST: RawFd = 3;
    let count = RawFd::try_from(N).expect("a handful");
    // First out of the way of each other, then to fixed numbers.
    let mut high = vec![];
    for fd in keep {
        high.push(rustix::io::fcntl_dupfd_cloexec(&fd, FIRST + count)?);
    }
    for (fd, number) in high.iter().zip(FIRST..) {
        process::rename(fd.as_fd(), number)?;
    }
    high.into_iter().for_each(std::mem::forget);
    process::close_from(FIRST + count, false)?;
    let mut number = FIRST;
    Ok([(); N].map(|()| {
        number += 1;
        // SAFETY: the loop above has made it, and its former owner was forgotten.
        unsafe { process::own(number - 1) }
    }))
}

struct Env {
    pid: Pid,
    pidfd: OwnedFd,
}

struct Keeping {
    socket: OwnedFd,
    caller: Option<Caller>,
    envs: Vec<Env>,
}

impl Keeping {
    fn serve(mut self, children: &OwnedFd) -> io::Result<Vec<Env>> {
        loop {
            let mut ready = [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(children, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let (asked, ended) = (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
            if ended {
                rustix::io::read(children, &mut [0; 1024][..]).ok();
                self.reap();
            }
            if asked {
                match message::receive::<Create>(&self.socket) {
                    Ok(Some(received)) => self.create(received.fds),
                    Ok(None) | Err(_) => return Ok(self.envs),
                }
            }
        }
    }

    fn create(&mut self, fds: Vec<OwnedFd>) {
        let Ok([control, events]) = <[OwnedFd; 2]>::try_from(fds) else { return };
        let namespaces = NAMESPACES | if self.caller.is_some() { libc::CLONE_NEWUSER as u64 } else { 0 };
        // SAFETY: the keeper has one thread.
        match unsafe { process::fork(namespaces, None) } {
            Ok(Fork::Child) => {
                let caller = self.caller;
                let ran = catch_unwind(|| {
                    let [control, events] = only([control, events])?;
                    init::run(&control, &events, caller)
                });
                process::end(i32::from(!matches!(ran, Ok(Ok(())))))
            }
            Ok(Fork::Parent { child, pidfd }) => {
                let started = Reply::Started { pid: child.as_raw_pid() };
                message::send(&control, &started, &[pidfd.as_fd()]).ok();
                self.envs.push(Env { pid: child, pidfd });
            }
            Err(errno) => {
                message::send(&control, &Reply::NotStarted { errno: errno.raw_os_error() }, &[]).ok();
            }
        }
    }

    fn reap(&mut self) {
        while let Ok(Some((pid, _))) = rustix::process::wait(WaitOptions::NOHANG) {
            self.envs.retain(|env| env.pid != pid);
        }
    }
}

/// Killing comes first, thawing second, so that nothing of a frozen function runs again.
fn end(envs: Vec<Env>, run: &Run, tree: &Tree) {
    for env in &envs {
        pidfd_send_signal(&env.pidfd, Signal::KILL).ok();
    }
    remove::dirs(&tree.dirs());
    wait::until(END_DEADLINE, || {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    });
    remove::dirs(&tree.dirs());
    tree::bases().iter().for_each(|base| remove::leave_leaf(base));
    run.remove();
}
