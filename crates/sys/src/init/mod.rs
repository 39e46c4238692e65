//! Pid 1 of an env: applies the plan, starts and kills processes on request, reaps. It is forked from the keeper, has one thread, and is
//! outside of the env's cgroups. When danki is gone (its socket reads end-of-file) or the keeper (a signal), it ends, and the kernel
//! ends everything else in its pid namespace.

mod net;
pub(crate) mod root;
mod spawn;
mod user;

use crate::message::{self, Exited, Failure, Order, Reply, Step};
use crate::plan::EnvPlan;
use crate::{process, rlimits, wait};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Gid, Pid, Signal, Uid, WaitOptions};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;
pub(crate) use user::Caller;

/// Killed processes are gone within milliseconds unless the disk holds them up.
const KILL_DEADLINE: Duration = Duration::from_secs(5);

/// What a process is started with.
struct Context {
    plan: EnvPlan,
    /// `(resource, soft, hard)`, in the plan's order.
    rlimits: Vec<(process::Resource, u64, u64)>,
    /// Version 1: to be written to by whoever wants to be in the env.
    doors: Vec<OwnedFd>,
    /// Version 2: processes are born in it.
    cgroup: Option<OwnedFd>,
    unprivileged: bool,
}

/// Runs until danki is gone.
pub(crate) fn run(control: &OwnedFd, events: &OwnedFd, caller: Option<Caller>) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::setsid().ok();
    rustix::process::umask(rustix::fs::Mode::empty());
    rustix::thread::set_name(c"danki-init").ok();
    let children = process::child_events()?;
    let Some(context) = apply(control, caller)? else { return Ok(()) };
    process::set_traceable(false);
    // Becoming root of a user namespace has cleared it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Serving { control, events, context, started: BTreeSet::new() }.serve(&children)
}

/// Reads the plan, makes it so and reports. `None` if danki is gone or the plan was not possible.
fn apply(control: &OwnedFd, caller: Option<Caller>) -> io::Result<Option<Context>> {
    let Some(first) = message::receive(control)? else { return Ok(None) };
    let Order::Plan { plan, staging } = first.body else { return Err(io::ErrorKind::InvalidData.into()) };
    match build(control, *plan, staging, caller) {
        Ok(built) => {
            let Some((context, made, caveats)) = built else { return Ok(None) };
            let fds: Vec<BorrowedFd<'_>> = made.tun.iter().chain(&made.sockets).map(AsFd::as_fd).collect();
            message::send(control, &Reply::Ready { tun: made.tun.is_some(), caveats }, &fds)?;
            Ok(Some(context))
        }
        Err(failure) => {
            message::send(control, &Reply::Failed(failure), &[])?;
            Ok(None)
        }
    }
}

type Built = Option<(Context, net::Made, Vec<String>)>;

fn build(
    control: &OwnedFd,
    plan: EnvPlan,
    staging: PathBuf,
    caller: Option<Caller>,
) -> Result<Built, Failure> {
    if let Some(caller) = caller {
        user::map_root(caller).step(|| "map the user in a user namespace".to_owned())?;
        rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)
            .step(|| "become root inside".to_owned())?;
        rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)
            .step(|| "become root inside".to_owned())?;
    }
    rustix::system::sethostname(plan.hostname.as_bytes())
        .step(|| format!("set the host name {:?}", plan.hostname))?;
    let made = net::apply(&plan.net)?;
    let (rlimits, caveats) = rlimits::within_ours(&plan.rlimits)?;
    // danki makes cgroups and disks while the above is done here.
    let parts = message::receive::<Order>(control).step(|| "receive the parts".to_owned())?;
    let Some(parts) = parts else { return Ok(None) };
    let Order::Parts { doors, cgroup, disks } = parts.body else {
        return Err(Errno::INVAL).step(|| "receive the parts".to_owned());
    };
    let mut fds = parts.fds.into_iter();
    let doors: Vec<OwnedFd> = fds.by_ref().take(doors).collect();
    let cgroup = if cgroup { fds.next() } else { None };
    let disks = disks.into_iter().map(|made| if made { fds.next() } else { None }).collect();
    if let Some(root) = &plan.root {
        root::apply(root, &staging, disks)?;
    }
    Ok(Some((Context { plan, rlimits, doors, cgroup, unprivileged: caller.is_some() }, made, caveats)))
}

/// Every process starts a session of its own, so that its group is numbered as it is.
fn signal_group(pid: i32, signal: i32) -> bool {
    let sent = Pid::from_raw(pid).zip(Signal::from_named_raw(signal));
    sent.is_some_and(|(group, signal)| rustix::process::kill_process_group(group, signal).is_ok())
}

struct Serving<'a> {
    control: &'a OwnedFd,
    events: &'a OwnedFd,
    context: Context,
    /// Processes that danki has asked for; exits of others are of no interest to it.
    started: BTreeSet<i32>,
}

impl Serving<'_> {
    fn serve(mut self, children: &OwnedFd) -> io::Result<()> {
        loop {
            let mut ready = [PollFd::new(self.control, PollFlags::IN), PollFd::new(children, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let (asked, exited) = (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
            if exited {
                let mut signals = [0; 1024];
                rustix::io::read(children, &mut signals[..]).ok();
                self.reap();
            }
            if asked {
                match message::receive(self.control)? {
                    None => return Ok(()),
                    Some(received) => self.obey(received.body, &received.fds)?,
                }
            }
        }
    }

    fn obey(&mut self, order: Order, fds: &[OwnedFd]) -> io::Result<()> {
        match order {
            Order::Spawn(plan) => match spawn::spawn(&self.context, &plan, fds) {
                Ok(child) => {
                    self.started.insert(child.as_raw_pid());
                    let credentials = rustix::net::UCred { pid: child, uid: Uid::ROOT, gid: Gid::ROOT };
                    let reply = Reply::Spawned { pid: child.as_raw_pid() };
                    message::send_as(self.control, &reply, &[], Some(credentials))
                        .or_else(|_| message::send(self.control, &reply, &[]))
                }
                Err(spawn::Refused::Step(failure)) => {
                    message::send(self.control, &Reply::NotSpawned(failure), &[])
                }
                Err(spawn::Refused::Exec { errno }) => {
                    message::send(self.control, &Reply::NotExecuted { errno }, &[])
                }
            },
            Order::Kill { signal } => {
                let left = self.kill(signal);
                message::send(self.control, &Reply::Killed { left }, &[])
            }
            Order::Signal { pid, signal } => {
                let sent = self.started.contains(&pid) && signal_group(pid, signal);
                message::send(self.control, &Reply::Killed { left: sent }, &[])
            }
            Order::Plan { .. } | Order::Parts { .. } => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Returns whether processes are left that should be dead.
    fn kill(&mut self, signal: i32) -> bool {
        let none_to_signal = process::signal_all(signal).is_err();
        if signal != Signal::KILL.as_raw() {
            return false;
        }
        !none_to_signal
            && !wait::until(KILL_DEADLINE, || {
                process::signal_all(signal).ok();
                self.reap()
            })
    }

    /// Returns whether there are no children any more.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.report(pid, status),
                Ok(None) => return false,
                Err(Errno::CHILD) => return true,
                Err(_) => {}
            }
        }
    }

    /// danki starts few processes in an env, so that the socket's buffer holds all exits even if nobody reads them.
    fn report(&mut self, pid: Pid, status: rustix::process::WaitStatus) {
        if self.started.remove(&pid.as_raw_pid()) {
            let exited = Exited {
                pid: pid.as_raw_pid(),
                code: status.exit_status(),
                signal: status.terminating_signal(),
            };
            message::send(self.events, &exited, &[]).ok();
        }
    }
}
