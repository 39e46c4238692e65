//! danki's handle of one env.

use crate::cgroup::EnvCgroup;
use crate::error::Trying;
use crate::init::root;
use crate::keeper::{DEADLINE, Keeper, ended, gone_or};
use crate::message::{self, Exited, Failure, Order, Received, Reply};
use crate::plan::{EnvPlan, ProcessPlan};
use crate::{Error, caveat};
use rustix::net::sockopt::{Timeout, set_socket_passcred, set_socket_timeout};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A killed env is gone within milliseconds, unless a disk holds it up.
const DESTROY_DEADLINE: Duration = Duration::from_secs(5);

/// A living env: namespaces, cgroups and pid 1. Dropping it destroys it.
#[derive(Debug)]
pub struct Sandbox {
    id: u32,
    control: Mutex<OwnedFd>,
    events: OwnedFd,
    pid: i32,
    pidfd: OwnedFd,
    cgroup: EnvCgroup,
    tun: Option<OwnedFd>,
    sockets: Vec<OwnedFd>,
    caveats: Vec<String>,
    /// Already destroyed.
    over: bool,
}

/// A process of an env. Its end is reported by [`Sandbox::try_event`].
#[derive(Debug)]
pub struct Spawned {
    /// In danki's pid namespace; 0 if it cannot be known.
    pub pid: i32,
    /// In the env's.
    pub inner_pid: i32,
    /// What it writes to its standard output.
    pub stdout: OwnedFd,
    /// What it writes to its standard error.
    pub stderr: OwnedFd,
}

/// How a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What happens in an env.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxEvent {
    /// A process that danki has started is no more.
    Exited {
        /// Its number, as in [`Spawned::inner_pid`].
        inner_pid: i32,
        /// How it ended.
        status: ExitStatus,
    },
    /// The env has ended as a whole.
    PidOneGone,
}

/// Makes the parts that danki makes itself while the new pid 1 makes its network, and waits until the env is ready.
pub(crate) fn build(
    keeper: &Keeper,
    plan: &EnvPlan,
    control: OwnedFd,
    events: OwnedFd,
) -> Result<Sandbox, Error> {
    let setting = || "set up a socket".to_owned();
    set_socket_timeout(&control, Timeout::Recv, Some(DEADLINE)).trying(setting)?;
    set_socket_timeout(&control, Timeout::Send, Some(DEADLINE)).trying(setting)?;
    set_socket_passcred(&control, true).trying(setting)?;
    rustix::io::ioctl_fionbio(&events, true).trying(setting)?;
    let order = Order::Plan { plan: Box::new(plan.clone()), staging: keeper.staging().to_owned() };
    message::send(&control, &order, &[]).map_err(|e| gone_or(e, "send the plan"))?;
    let mut caveats = vec![];
    let cgroup = keeper.tree().env(plan.id, &plan.cgroup)?;
    let finished = finish(keeper, plan, &control, &cgroup, &mut caveats);
    match finished {
        Ok(((pid, pidfd), (tun, sockets))) => {
            caveats.extend(caveat::of_cgroups(&cgroup, &plan.cgroup));
            let control = Mutex::new(control);
            let id = plan.id;
            Ok(Sandbox { id, control, events, pid, pidfd, cgroup, tun, sockets, caveats, over: false })
        }
        Err(error) => {
            // Without its socket pid 1 ends.
            drop(control);
            cgroup.remove();
            Err(error)
        }
    }
}

/// Pid 1 and its pidfd; TUN and sockets.
type Finished = ((i32, OwnedFd), (Option<OwnedFd>, Vec<OwnedFd>));

fn finish(
    keeper: &Keeper,
    plan: &EnvPlan,
    control: &OwnedFd,
    cgroup: &EnvCgroup,
    caveats: &mut Vec<String>,
) -> Result<Finished, Error> {
    let (doors, unified) = (cgroup.doors()?, cgroup.unified()?);
    let disks = plan.root.iter().flat_map(root::disks).map(|size_mb| {
        keeper.disks().make(size_mb).map_err(|why| caveats.push(caveat::of_disk(size_mb, &why))).ok()
    });
    let disks: Vec<Option<OwnedFd>> = disks.collect();
    let fds: Vec<BorrowedFd<'_>> =
        doors.iter().chain(&unified).chain(disks.iter().flatten()).map(AsFd::as_fd).collect();
    let made = disks.iter().map(Option::is_some).collect();
    let order = Order::Parts { doors: doors.len(), cgroup: unified.is_some(), disks: made };
    let sent = message::send(control, &order, &fds);
    // While pid 1 mounts: this waits for a timer of the kernel.
    caveats.extend(cgroup.limit_cpu(&plan.cgroup, keeper.clockwork())?);
    let (mut pid_one, mut ready) = (None, None);
    while pid_one.is_none() || ready.is_none() {
        let mut received = answer(control, "create the env")?;
        match received.body {
            Reply::Started { pid } => pid_one = received.fds.pop().map(|pidfd| (pid, pidfd)),
            Reply::Ready { tun, caveats: more } => {
                caveats.extend(more);
                let tun = tun.then(|| received.fds.remove(0));
                ready = Some((tun, received.fds));
            }
            Reply::NotStarted { errno } => {
                let source = io::Error::from_raw_os_error(errno);
                return Err(Error::Apply { id: plan.id, step: "make its namespaces".to_owned(), source });
            }
            Reply::Failed(Failure { step, errno }) => {
                return Err(Error::Apply { id: plan.id, step, source: io::Error::from_raw_os_error(errno) });
            }
            _ => return Err(Error::Gone { who: "the order of messages" }),
        }
    }
    sent.map_err(|e| gone_or(e, "send the parts of an env"))?;
    Ok(pid_one.zip(ready).expect("the loop ends when both are there"))
}

fn answer(control: &OwnedFd, action: &'static str) -> Result<Received<Reply>, Error> {
    let who = "pid 1 of the env";
    match message::receive::<Reply>(control) {
        Ok(Some(received)) => Ok(received),
        Ok(None) => Err(Error::Gone { who }),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(Error::Late { who, action, deadline: DEADLINE })
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(Error::Gone { who }),
        Err(source) => Err(Error::System { action: action.to_owned(), source }),
    }
}

impl Sandbox {
    /// The packets of the env, if its plan has a TUN and nobody has taken it.
    pub fn take_tun(&mut self) -> Option<OwnedFd> {
        self.tun.take()
    }

    /// The sockets inside of the env, in the plan's order; empty when taken.
    pub fn take_sockets(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.sockets)
    }

    /// What is not as planned, in words.
    pub fn caveats(&self) -> &[String] {
        &self.caveats
    }

    /// The network namespace, for a thread that wants to enter it (`rustix::thread::move_into_link_name_space`). While it is open the
    /// namespace lives on.
    ///
    /// # Errors
    /// The env has ended.
    pub fn netns(&self) -> Result<OwnedFd, Error> {
        let path = format!("/proc/{}/ns/net", self.pid);
        std::fs::File::open(&path).map(OwnedFd::from).trying(|| format!("open {path}"))
    }

    /// Limits, freezer and counters.
    pub fn cgroup(&self) -> &EnvCgroup {
        &self.cgroup
    }

    /// Starts a process and returns when its program runs.
    ///
    /// # Errors
    /// [`Error::Exec`] if the program cannot be executed; [`Error::Spawn`] names another step that failed.
    pub fn spawn(&self, plan: &ProcessPlan) -> Result<Spawned, Error> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).trying(|| "make a pipe".to_owned());
        let ((stdout, their_stdout), (stderr, their_stderr)) = (pipe()?, pipe()?);
        let fds = [their_stdout.as_fd(), their_stderr.as_fd()];
        let received = self.ask(&Order::Spawn(plan.clone()), &fds, "start a process")?;
        let program = || plan.argv.first().cloned().unwrap_or_default();
        match received.body {
            Reply::Spawned { pid: inner_pid } => {
                let pid = received.credentials.map_or(0, |c| c.pid.as_raw_pid());
                Ok(Spawned { pid, inner_pid, stdout, stderr })
            }
            Reply::NotSpawned(Failure { step, errno }) => {
                Err(Error::Spawn { program: program(), step, source: io::Error::from_raw_os_error(errno) })
            }
            Reply::NotExecuted { errno } => {
                Err(Error::Exec { program: program(), source: io::Error::from_raw_os_error(errno) })
            }
            _ => Err(Error::Gone { who: "the order of messages" }),
        }
    }

    /// Sends a signal to every process but pid 1, thawing them first. After SIGKILL it returns when all are gone; `/tmp` stays.
    ///
    /// # Errors
    /// [`Error::Late`] if some would not die within 5 s.
    pub fn kill_processes(&self, signal: i32) -> Result<(), Error> {
        self.cgroup.thaw().ok();
        match self.ask(&Order::Kill { signal }, &[], "kill its processes")?.body {
            Reply::Killed { left: false } => Ok(()),
            _ => Err(Error::Late { who: "processes of the env", action: "die", deadline: DESTROY_DEADLINE }),
        }
    }

    /// Sends a signal to one process of the env and its process group; says whether it still ran. The env must not be frozen.
    ///
    /// # Errors
    /// The env is gone.
    pub fn signal(&self, inner_pid: i32, signal: i32) -> Result<bool, Error> {
        let order = Order::Signal { pid: inner_pid, signal };
        let reply = self.ask(&order, &[], "signal a process")?.body;
        Ok(matches!(reply, Reply::Killed { left: true }))
    }

    fn ask(
        &self,
        order: &Order,
        fds: &[BorrowedFd<'_>],
        action: &'static str,
    ) -> Result<Received<Reply>, Error> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        message::send(&*control, order, fds).map_err(|_| Error::Gone { who: "pid 1 of the env" })?;
        answer(&control, action)
    }

    /// Readable when [`Sandbox::try_event`] has something.
    pub fn event_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// The next event, if there is one. Does not wait.
    ///
    /// # Errors
    /// The message could not be read.
    pub fn try_event(&self) -> Result<Option<SandboxEvent>, Error> {
        match message::receive::<Exited>(&self.events) {
            Ok(Some(Received { body: Exited { pid, code, signal }, .. })) => {
                let status = signal.map(ExitStatus::Signal).or(code.map(ExitStatus::Code));
                Ok(Some(SandboxEvent::Exited {
                    inner_pid: pid,
                    status: status.unwrap_or(ExitStatus::Code(0)),
                }))
            }
            Ok(None) => Ok(Some(SandboxEvent::PidOneGone)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(source) => Err(Error::System { action: "read an event of an env".to_owned(), source }),
        }
    }

    /// Ends the env and returns when nothing of it is left.
    ///
    /// # Errors
    /// [`Error::Late`] if its processes would not die.
    pub fn destroy(mut self) -> Result<(), Error> {
        self.over = true;
        self.end()
    }

    /// Kills first, thaws second: nothing of a frozen function runs again.
    fn end(&self) -> Result<(), Error> {
        pidfd_send_signal(&self.pidfd, Signal::KILL).ok();
        self.cgroup.thaw().ok();
        let gone = ended(&self.pidfd, DESTROY_DEADLINE);
        self.cgroup.remove();
        match gone {
            true => Ok(()),
            false => Err(Error::Late { who: "the env", action: "end", deadline: DESTROY_DEADLINE }),
        }
    }

    /// Number of the env in its plan.
    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.over {
            self.end().ok();
        }
    }
}
