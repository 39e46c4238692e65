//! Real-time priority: for the thread that releases packets, and for a moment of watching a timer.

use crate::Error;

/// Above ordinary threads, below the kernel's own.
const PRIORITY: i32 = 10;

/// Above ordinary threads, below the one that releases packets.
const BRIEF_PRIORITY: i32 = 1;

/// Gives the calling thread SCHED_FIFO.
///
/// # Errors
/// The kernel refuses (no right, or a cgroup without real-time time).
pub fn raise_priority() -> Result<(), Error> {
    match set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, PRIORITY) {
        true => Ok(()),
        false => Err(Error::System {
            action: "raise the priority".to_owned(),
            source: std::io::Error::last_os_error(),
        }),
    }
}

/// While it lives, the calling thread has SCHED_FIFO, where the kernel lets it and unless it had it before. For a ms, not longer.
pub(crate) struct Brief {
    raised: bool,
}

impl Brief {
    pub(crate) fn raise() -> Brief {
        // SAFETY: 0 is the calling thread; no memory is passed.
        let ordinary = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
        Brief { raised: ordinary && set(libc::SCHED_FIFO, BRIEF_PRIORITY) }
    }
}

impl Drop for Brief {
    fn drop(&mut self) {
        if self.raised {
            set(libc::SCHED_OTHER, 0);
        }
    }
}

fn set(policy: libc::c_int, sched_priority: libc::c_int) -> bool {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: 0 is the calling thread; the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}
