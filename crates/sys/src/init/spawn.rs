//! Starts a process of the function: from pid 1's rights to none.

use super::Context;
use crate::message::{Failure, Step};
use crate::plan::{EnvPlan, ProcessPlan};
use crate::process::{self, Fork};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets, CpuSet, Gid};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// A throttled child needs some 100 ms at 128 MB; one that is frozen never gets there. Below danki's own deadline.
const EXEC_DEADLINE: Duration = Duration::from_secs(8);

/// Why there is no process.
#[derive(Serialize, Deserialize)]
pub(super) enum Refused {
    Step(Failure),
    Exec { errno: i32 },
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        Refused::Step(failure)
    }
}

/// Forks and executes. Returns when the new program runs, or with the reason why not.
pub(super) fn spawn(context: &Context, plan: &ProcessPlan, output: &[OwnedFd]) -> Result<Pid, Refused> {
    let program = Program::new(plan)?;
    let (outcome, report) = pipe_with(PipeFlags::CLOEXEC).step(|| "make a pipe".to_owned())?;
    // SAFETY: pid 1 has one thread.
    match unsafe { process::fork(0, context.cgroup.as_ref().map(AsFd::as_fd)) }.step(|| "fork".to_owned())? {
        Fork::Child => {
            drop(outcome);
            let refused = become_program(context, plan, &program, output);
            let text = serde_json::to_vec(&refused).unwrap_or_default();
            rustix::io::write(&report, &text).ok();
            process::end(127)
        }
        Fork::Parent { child, .. } => {
            drop(report);
            if !ready(&outcome) {
                rustix::process::kill_process(child, rustix::process::Signal::KILL).ok();
                return Err(Refused::Step(Failure {
                    step: format!("wait {} s for the exec", EXEC_DEADLINE.as_secs()),
                    errno: Errno::TIMEDOUT.raw_os_error(),
                }));
            }
            let mut text = vec![];
            File::from(outcome).read_to_end(&mut text).step(|| "read from the child".to_owned())?;
            match serde_json::from_slice(&text) {
                Ok(refused) => {
                    rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty()).ok();
                    Err(refused)
                }
                Err(_) => Ok(child),
            }
        }
    }
}

/// Readable or at its end, in time.
fn ready(outcome: &OwnedFd) -> bool {
    let timeout = Timespec { tv_sec: EXEC_DEADLINE.as_secs().cast_signed(), tv_nsec: 0 };
    loop {
        match poll(&mut [PollFd::new(outcome, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            other => return other.is_ok_and(|count| count > 0),
        }
    }
}

/// Everything that needs memory, made before the fork.
struct Program {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    fn new(plan: &ProcessPlan) -> Result<Program, Failure> {
        let text =
            |text: &str| CString::new(text).map_err(|_| Errno::INVAL).step(|| format!("pass {text:?}"));
        let environment = plan.env.iter().map(|(name, value)| text(&format!("{name}={value}")));
        let arguments: Vec<CString> =
            plan.argv.iter().map(|argument| text(argument)).collect::<Result<_, _>>()?;
        let path = arguments
            .first()
            .cloned()
            .ok_or(Errno::INVAL)
            .step(|| "find a program in no arguments".to_owned())?;
        Ok(Program { path, arguments, environment: environment.collect::<Result<_, _>>()? })
    }
}

fn become_program(context: &Context, plan: &ProcessPlan, program: &Program, output: &[OwnedFd]) -> Refused {
    match prepare(context, plan, output) {
        Err(failure) => Refused::Step(failure),
        Ok(()) => {
            let errno = process::execute(&program.path, &program.arguments, &program.environment);
            Refused::Exec { errno: errno.raw_os_error() }
        }
    }
}

fn prepare(context: &Context, plan: &ProcessPlan, output: &[OwnedFd]) -> Result<(), Failure> {
    rustix::process::setsid().step(|| "start a session".to_owned())?;
    standard_streams(output).step(|| "connect the standard streams".to_owned())?;
    for door in &context.doors {
        rustix::io::write(door, b"0").step(|| "join the cgroup".to_owned())?;
    }
    see_cpus(&context.plan).step(|| format!("use {} CPUs", context.plan.visible_cpus))?;
    for (limit, (resource, soft, hard)) in context.plan.rlimits.iter().zip(&context.rlimits) {
        process::set_rlimit(*resource, *soft, *hard).step(|| format!("limit {} to {soft}", limit.name))?;
    }
    drop_rights(context).step(|| format!("become user {}", context.plan.user.uid))?;
    rustix::process::chdir(&plan.cwd).step(|| format!("go to {}", plan.cwd.display()))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    process::default_signals(&process::IGNORED);
    process::close_from(3, true).step(|| "mark descriptors".to_owned())
}

fn standard_streams(output: &[OwnedFd]) -> Result<(), Errno> {
    let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .or_else(|_| pipe_with(PipeFlags::CLOEXEC).map(|(read, _)| read))?;
    process::rename(null.as_fd(), 0)?;
    for (fd, number) in output.iter().zip(1..) {
        process::rename(fd.as_fd(), number)?;
    }
    Ok(())
}

/// As many CPUs as planned, or all there are; neighbours in number take different ones.
fn see_cpus(plan: &EnvPlan) -> Result<(), Errno> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let (wanted, first) = (plan.visible_cpus as usize, plan.id as usize);
    if wanted == 0 || wanted >= allowed.len() {
        return Ok(());
    }
    let mut visible = CpuSet::new();
    for number in 0..wanted {
        visible.set(allowed[(first * wanted + number) % allowed.len()]);
    }
    rustix::thread::sched_setaffinity(None, &visible)
}

fn drop_rights(context: &Context) -> Result<(), Errno> {
    let user = context.plan.user;
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    if context.unprivileged {
        super::user::nest(user).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    } else {
        rustix::thread::set_thread_groups(&[])?;
    }
    process::empty_bounding_set();
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    rustix::thread::clear_ambient_capability_set().ok();
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    rustix::thread::set_no_new_privs(true)
}
