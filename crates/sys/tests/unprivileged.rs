//! Without root: the same env, in user namespaces, with what is then impossible named.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test code, but clippy knows only test functions"
)]

mod support;

use danki_sys::ExitStatus;
use rustix::process::{WaitOptions, waitpid};
use std::fs::File;
use std::io::{Read, Write};
use support::*;

const NOBODY: u32 = 65_534;

/// Runs as somebody without rights; the answer is what it writes.
fn as_nobody(work: impl FnOnce() -> String) -> String {
    let (read, write) = rustix::pipe::pipe().unwrap();
    // SAFETY: the child uses malloc, files and system calls; it prints nothing and never returns into the test harness.
    match unsafe { libc::fork() } {
        0 => {
            drop(read);
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_groups(&[]).unwrap();
                let (uid, gid) =
                    (rustix::process::Uid::from_raw(NOBODY), rustix::process::Gid::from_raw(NOBODY));
                rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
                // Changing the user hides the process from itself; exec, as danki would be started, shows it again.
                // SAFETY: plain integers.
                unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
            }
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            File::from(write).write_all(answer.unwrap_or("it panicked".to_owned()).as_bytes()).unwrap();
            // SAFETY: takes any code and does not return.
            unsafe { libc::_exit(0) }
        }
        pid => {
            drop(write);
            let mut answer = String::new();
            File::from(read).read_to_string(&mut answer).unwrap();
            waitpid(rustix::process::Pid::from_raw(pid), WaitOptions::empty()).unwrap();
            answer
        }
    }
}

#[test]
fn an_env_without_root() {
    if std::fs::read_to_string("/proc/sys/user/max_user_namespaces").is_ok_and(|max| max.trim() == "0") {
        println!("skipped: an env without root: user namespaces are switched off");
        return;
    }
    let answer = as_nobody(|| {
        let keeper = keeper("nobody");
        let mut planned = plan(1);
        if File::options().read(true).write(true).open("/dev/net/tun").is_err() {
            planned.net.tun = None;
        }
        let sandbox = match keeper.create(&planned) {
            Ok(sandbox) => sandbox,
            Err(error) => return format!("refused: {error}"),
        };
        let script = "id -u; grep -E '^(CapEff|CapBnd)' /proc/self/status; touch /tmp/x && echo writable; touch /x; cat /proc/self/uid_map";
        let (status, out, err) = output(&sandbox, &sh(script));
        sandbox.destroy().unwrap();
        let dir = keeper.dir().to_owned();
        keeper.shutdown().unwrap();
        format!("{status:?} {out}{err}left: {}", dir.exists())
    });
    if answer.contains("refused: ") && answer.contains("namespaces") {
        println!("skipped: an env without root: {answer}");
        return;
    }
    println!("{answer}");
    assert!(answer.starts_with(&format!("{:?} 1993\n", ExitStatus::Code(0))), "{answer}");
    assert!(answer.contains("CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nwritable\n"), "{answer}");
    assert!(answer.contains("cannot touch '/x': Read-only file system"), "{answer}");
    assert!(answer.ends_with("left: false"), "{answer}");
}

#[test]
fn what_is_missing_without_root_is_said() {
    let answer = as_nobody(|| {
        let found = danki_sys::caps::probe();
        found.missing().iter().map(|missing| format!("{}\n", missing.what)).collect()
    });
    println!("{answer}");
    assert!(answer.contains("loop device with ext4: "), "{answer}");
}
