//! System calls for processes that no safe wrapper offers: making, executing, and what is inherited.

use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// Which of two processes returns from [`fork`].
pub(crate) enum Fork {
    Parent { child: Pid, pidfd: OwnedFd },
    Child,
}

/// Forks the calling thread into a process with new namespaces (`CLONE_NEW*`) and, where given, in a cgroup of version 2, like `fork`
/// without its handlers.
///
/// # Safety
/// The child has only the calling thread. Unless the parent had no other, it may use system calls and malloc (glibc keeps that
/// usable when `atfork` is asked for), and no lock that another thread may have held.
pub(crate) unsafe fn fork(namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> Result<Fork, Errno> {
    let mut pidfd: RawFd = -1;
    // SAFETY: all-zero is a valid `clone_args`: no flags, no stack, no signals.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = namespaces | CLONE_PIDFD;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }
    // SAFETY: the arguments are valid for this call and their size is given; without CLONE_VM the child has a copy of this stack.
    let result =
        unsafe { libc::syscall(libc::SYS_clone3, ptr::from_ref(&args), size_of::<libc::clone_args>()) };
    match result {
        -1 => Err(last_error()),
        0 => Ok(Fork::Child),
        pid => {
            let child = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("the kernel returns a pid");
            // SAFETY: the kernel has just stored a new descriptor there, which nobody else owns.
            Ok(Fork::Parent { child, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
        }
    }
}

/// linux/sched.h; libc's constant has lost its highest bit.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
const CLONE_PIDFD: u64 = libc::CLONE_PIDFD as u64;

/// Forks a process that may have threads, with glibc's handlers, so that malloc is usable in the child.
///
/// # Safety
/// As [`fork`].
pub(crate) unsafe fn fork_threaded() -> Result<Option<Pid>, Errno> {
    // SAFETY: the caller keeps to what the child may do.
    match unsafe { libc::fork() } {
        -1 => Err(last_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Ends the process without running anything of the one it was forked from.
pub(crate) fn end(code: i32) -> ! {
    // SAFETY: `_exit` takes any code and does not return.
    unsafe { libc::_exit(code) }
}

/// Replaces the program. Returns only the error.
pub(crate) fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> Errno {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both arrays end with a null pointer and hold strings that outlive the call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    last_error()
}

/// Closes all descriptors from `first` on, or only marks them to be closed by exec.
pub(crate) fn close_from(first: RawFd, at_exec: bool) -> Result<(), Errno> {
    let flags = if at_exec { libc::CLOSE_RANGE_CLOEXEC } else { 0 };
    // SAFETY: the callers own every descriptor of their forked process and use none of these afterwards.
    match unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// Makes `number` another name of `fd`, kept over exec.
pub(crate) fn rename(fd: BorrowedFd<'_>, number: RawFd) -> Result<(), Errno> {
    // SAFETY: plain integers; what `number` was before is closed, which is what the callers want.
    match unsafe { libc::dup2(fd.as_raw_fd(), number) } {
        -1 => Err(last_error()),
        _ => Ok(()),
    }
}

/// Takes over a descriptor whose number is known.
///
/// # Safety
/// It is open and owned by nobody else.
pub(crate) unsafe fn own(number: RawFd) -> OwnedFd {
    // SAFETY: as the caller says.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Blocks SIGCHLD and returns a descriptor that is readable when a child has changed, non-blocking.
pub(crate) fn child_events() -> Result<OwnedFd, Errno> {
    // SAFETY: an all-zero set is a valid object to initialise; the pointers are to it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(last_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// Ignores these signals from now on; every other one has its default action, whatever danki or its shell have made of it.
pub(crate) fn ignore_only(signals: &[i32]) {
    for signal in 1..=libc::SIGRTMAX() {
        set_action(signal, if signals.contains(&signal) { libc::SIG_IGN } else { libc::SIG_DFL });
    }
}

/// Signals as a new program expects them: these with their default action like the others, none blocked.
pub(crate) fn default_signals(ignored: &[i32]) {
    for signal in ignored {
        set_action(*signal, libc::SIG_DFL);
    }
    // SAFETY: an empty set is valid and only read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
    }
}

/// The kernel's own call: libc refuses 32 and 33, which it uses itself, but which are inherited as well.
fn set_action(signal: i32, action: libc::sighandler_t) {
    // Handler, flags, restorer, mask: whatever their order after the handler, they are 0.
    let kernel_action = [action, 0, 0, 0];
    // SAFETY: neither action runs code; the struct outlives the call, and signals that cannot be changed are refused.
    unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, kernel_action.as_ptr(), ptr::null::<u8>(), 8usize)
    };
}

/// Signals that a terminal or a supervisor sends to whole groups: danki decides what they mean, not the processes that work for it.
pub(crate) const IGNORED: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTSTP];

/// Shows or hides memory and descriptors of this process in `/proc`; hidden, only root sees them.
pub(crate) fn set_traceable(traceable: bool) {
    // SAFETY: plain integers.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, libc::c_ulong::from(traceable), 0, 0, 0) };
}

/// Removes every capability from the bounding set.
pub(crate) fn empty_bounding_set() {
    // Numbers past the last capability are refused; 63 is the largest that the kernel's format has room for.
    for capability in 0..=63 {
        // SAFETY: plain integers.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            break;
        }
    }
}

/// Sends a signal to every process of the pid namespace but the caller, its pid 1.
pub(crate) fn signal_all(signal: i32) -> Result<(), Errno> {
    // SAFETY: plain integers.
    match unsafe { libc::kill(-1, signal) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// Number of a resource limit.
pub(crate) type Resource = libc::__rlimit_resource_t;

/// Sets a resource limit by its number.
pub(crate) fn set_rlimit(resource: Resource, soft: u64, hard: u64) -> Result<(), Errno> {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: the limit outlives the call.
    match unsafe { libc::setrlimit(resource, &raw const limit) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// The hard limit of a resource.
pub(crate) fn hard_rlimit(resource: Resource) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit outlives the call.
    unsafe { libc::getrlimit(resource, &raw mut limit) };
    limit.rlim_max
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
