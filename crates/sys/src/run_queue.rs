//! How long a thread was ready to run and did not: the kernel's account (`CONFIG_SCHED_INFO`), from a file that stays open.

use rustix::io::pread;
use std::fs::File;

/// Three numbers of up to 20 digits.
const BUFFER: usize = 80;

/// The first thread of a process. Time in which a quota held it back counts too.
#[derive(Debug)]
pub struct RunQueue(File);

impl RunQueue {
    /// `None` where the kernel keeps no such account, or the process is gone. `pid` is danki's number of it.
    pub fn of_process(pid: i32) -> Option<RunQueue> {
        let queue = RunQueue(File::open(format!("/proc/{pid}/schedstat")).ok()?);
        queue.waited_ns().map(|_| queue)
    }

    /// Ready and not running, ns so far; booked when the thread runs again. `None` after its end.
    pub fn waited_ns(&self) -> Option<u64> {
        let mut buffer = [0; BUFFER];
        let length = pread(&self.0, &mut buffer[..], 0).ok()?;
        parse(std::str::from_utf8(&buffer[..length]).ok()?)
    }
}

/// CPU time, time waited, and how often it ran.
fn parse(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse("9120 3323514 7\n"), Some(3_323_514));
        assert_eq!(parse(""), None);
        assert_eq!(parse("1 x 2"), None);
        let own = RunQueue::of_process(rustix::process::getpid().as_raw_pid());
        assert!(own.is_none_or(|own| own.waited_ns().is_some()));
        assert!(RunQueue::of_process(i32::MAX).is_none());
    }
}
