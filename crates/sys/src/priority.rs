//! Real-time priority for the thread that releases packets.

use crate::Error;

/// Above ordinary threads, below the kernel's own.
const PRIORITY: i32 = 10;

/// Gives the calling thread SCHED_FIFO.
///
/// # Errors
/// The kernel refuses (no right, or a cgroup without real-time time).
pub fn raise_priority() -> Result<(), Error> {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: 0 is the calling thread; the parameters outlive the call.
    match unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    } {
        0 => Ok(()),
        _ => Err(Error::System {
            action: "raise the priority".to_owned(),
            source: std::io::Error::last_os_error(),
        }),
    }
}
