//! How long a thread was ready to run and did not: the kernel's account (`CONFIG_SCHED_INFO`), from a file that stays open.

use rustix::io::pread;
use std::fs::{self, File};

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

/// The program that a shell has started and waits for, which does the work in its place; the shell itself while there is none, or several.
/// `None` if the process is no shell.
pub fn behind_shell(pid: i32) -> Option<i32> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    if !SHELLS.contains(&program.file_name()?.to_str()?) {
        return None;
    }
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let mut children = children.split_whitespace();
    match (children.next().and_then(|child| child.parse().ok()), children.next()) {
        (Some(only), None) => Some(only),
        _ => Some(pid),
    }
}

const SHELLS: [&str; 3] = ["dash", "bash", "busybox"];

/// CPU time, time waited, and how often it ran.
fn parse(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_stands_for_the_program_that_it_waits_for() {
        let start = |script: &str| {
            let mut shell = std::process::Command::new("sh")
                .args(["-c", script])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .expect("a shell");
            let mut line = String::new();
            let said = shell.stdout.as_mut().expect("piped");
            std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut line).expect("it has begun");
            (i32::try_from(shell.id()).expect("a pid"), line.trim().parse().unwrap_or(0), shell)
        };
        // They end when their input does.
        let (pid, program, mut one) = start("cat <&0 & echo $!; wait");
        assert_eq!(behind_shell(pid), Some(program));
        let (pid, _, mut none) = start("echo; read -r _");
        assert_eq!(behind_shell(pid), Some(pid), "nobody yet");
        assert_eq!(behind_shell(rustix::process::getpid().as_raw_pid()), None, "no shell");
        for shell in [&mut one, &mut none] {
            drop(shell.stdin.take());
            shell.wait().expect("reaped");
        }
    }

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
