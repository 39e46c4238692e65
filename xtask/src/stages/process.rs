//! One child process: its output passed on and kept, its deadline held, its descendants not left behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// What a child said and how it ended.
pub struct Outcome {
    /// Lines of stdout and stderr, in the order of arrival.
    pub lines: Vec<String>,
    /// Err says why the stage counts as failed.
    pub ended: Result<(), String>,
}

/// What happens to a child's lines besides being kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Echo {
    /// They are printed.
    AsItComes,
    /// Nothing.
    No,
}

/// Lines kept for counting; what is beyond is printed but not kept.
const KEPT_LINES: usize = 1_000_000;
/// After its end, a child's output may stay open this long: longer means that it left a process behind.
const CLOSING: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(200);

/// Whether a command runs and succeeds, silently.
pub fn succeeds(root: &Path, command: &[&str]) -> bool {
    let quiet = prepare(root, command).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Runs a command to its end or to its deadline.
pub fn run(root: &Path, command: &[&str], deadline: Duration, echo: Echo) -> Outcome {
    let spawned = prepare(root, command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            return Outcome {
                lines: Vec::new(),
                ended: Err(format!("cannot start {}: {error}", command[0])),
            };
        }
    };
    let (sender, lines) = sync_channel(1024);
    forward(child.stdout.take().expect("piped"), sender.clone());
    forward(child.stderr.take().expect("piped"), sender);
    let (kept, in_time) = collect(&mut child, &lines, Instant::now() + deadline, echo);
    let ended = in_time.and_then(|()| match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(error.to_string()),
    });
    Outcome { lines: kept, ended }
}

fn prepare(root: &Path, command: &[&str]) -> Command {
    let mut prepared = Command::new(command[0]);
    prepared.args(&command[1..]).current_dir(root).stdin(Stdio::null());
    prepared
}

fn forward(output: impl Read + Send + 'static, lines: SyncSender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if lines.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
}

/// Passes lines on until both outputs are closed, or until the deadline, when the child and all its descendants are killed.
fn collect(
    child: &mut Child,
    lines: &Receiver<String>,
    deadline: Instant,
    echo: Echo,
) -> (Vec<String>, Result<(), String>) {
    let mut kept = Vec::new();
    let mut ended_at: Option<Instant> = None;
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => {
                if echo == Echo::AsItComes {
                    // A closed terminal is no reason to stop counting.
                    let _ = writeln!(std::io::stdout(), "{line}");
                }
                if kept.len() < KEPT_LINES {
                    kept.push(line);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return (kept, Ok(())),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        if ended_at.is_none() && child.try_wait().is_ok_and(|status| status.is_some()) {
            ended_at = Some(now);
        }
        if ended_at.is_some_and(|at| now > at + CLOSING) {
            return (kept, Err("ended, but left a process behind that holds its output open".into()));
        }
        if now > deadline {
            kill_tree(child);
            return (kept, Err("deadline passed: killed".into()));
        }
    }
}

fn kill_tree(child: &mut Child) {
    for pid in descendants(child.id()) {
        // Gone already is as good as killed.
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Every process below `root`, by the parent field of `/proc/<pid>/stat`.
fn descendants(root: u32) -> BTreeSet<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            Some((pid, parent_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
        })
        .collect();
    let mut below = BTreeSet::new();
    let mut frontier = vec![root];
    while let Some(parent) = frontier.pop() {
        let children = parents.iter().filter(|(_, its_parent)| *its_parent == parent).map(|(pid, _)| *pid);
        frontier.extend(children.filter(|pid| below.insert(*pid)));
    }
    below
}

/// The fourth field of `pid (name) state parent …`; the name may hold anything, so count from its closing bracket.
fn parent_of(stat: &str) -> Option<u32> {
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, deadline: Duration) -> Outcome {
        run(Path::new("/"), &["sh", "-c", script], deadline, Echo::AsItComes)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn output_and_status_arrive() {
        let outcome = sh("echo out; echo err >&2; exit 3", LONG);
        assert!(outcome.lines.contains(&"out".into()) && outcome.lines.contains(&"err".into()));
        assert!(outcome.ended.expect_err("exit 3").contains('3'));
        assert!(sh("true", LONG).ended.is_ok());
    }

    #[test]
    fn a_missing_command_is_a_failure() {
        let outcome = run(Path::new("/"), &["/nowhere/at-all"], LONG, Echo::AsItComes);
        assert!(outcome.ended.expect_err("cannot start").contains("/nowhere"));
        assert!(!succeeds(Path::new("/"), &["/nowhere/at-all"]));
    }

    #[test]
    fn the_deadline_kills_grandchildren_too() {
        let started = Instant::now();
        let outcome = sh("sh -c 'sleep 600; true' & echo $!; wait", Duration::from_millis(500));
        assert!(outcome.ended.expect_err("killed").contains("deadline"));
        assert!(started.elapsed() < LONG);
        let grandchild: u32 = outcome.lines[0].parse().expect("its pid");
        // A killed process that has no CPU yet is still listed as running.
        let stat = || fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        let is_gone = || stat().is_empty() || stat().contains(") Z ");
        while !is_gone() && started.elapsed() < LONG {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(is_gone(), "{}", stat());
    }

    #[test]
    fn parents_are_read_past_odd_names() {
        assert_eq!(parent_of("12 (a) b) S 7 12 12 0"), Some(7));
        assert_eq!(parent_of("nonsense"), None);
    }
}
