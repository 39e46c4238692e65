//! Envs on the real kernel: what is inside, and what is not.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test code, but clippy knows only test functions"
)]

mod support;

use danki_sys::{Error, ExitStatus};
use support::*;

#[test]
fn a_process_runs_and_its_exit_is_reported() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("exit");
    let sandbox = keeper.create(&plan(1)).unwrap();
    println!("caveats: {:?}", sandbox.caveats());
    let (status, out, err) = output(&sandbox, &sh("echo out; echo err >&2; exit 7"));
    assert_eq!((status, out.as_str(), err.as_str()), (ExitStatus::Code(7), "out\n", "err\n"));
    let (status, ..) = output(&sandbox, &sh("kill -9 $$"));
    assert_eq!(status, ExitStatus::Signal(9));
}

#[test]
fn an_exec_that_fails_is_an_error_with_its_reason() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("exec");
    let sandbox = keeper.create(&plan(1)).unwrap();
    let error = sandbox.spawn(&program(&["/nowhere"])).unwrap_err();
    assert!(matches!(&error, Error::Exec { program, .. } if program == "/nowhere"), "{error}");
    assert_eq!(error.to_string(), "cannot execute /nowhere: No such file or directory (os error 2)");
    let (status, ..) = output(&sandbox, &sh("exit 0"));
    assert_eq!(status, ExitStatus::Code(0));
}

#[test]
fn the_process_is_nobody_with_the_planned_limits() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("who");
    let mut planned = plan(1);
    planned.visible_cpus = 1;
    let sandbox = keeper.create(&planned).unwrap();
    let script = "id -u; id -g; id -G; hostname; ulimit -n; ulimit -Hn; nproc; pwd; umask; ls /proc | grep -c '^1$'; \
                  grep -E '^(Cap(Prm|Eff|Bnd)|NoNewPrivs|SigIgn|SigBlk)' /proc/self/status; ls /proc/self/fd | wc -l";
    let (status, out, err) = output(&sandbox, &sh(script));
    assert_eq!((status, err.as_str()), (ExitStatus::Code(0), ""));
    let none = "0000000000000000";
    let expect = format!(
        "1993\n1993\n1993\n169.254.100.1\n1024\n1024\n1\n/tmp\n0022\n0\nSigBlk:\t{none}\nSigIgn:\t{none}\n\
         CapPrm:\t{none}\nCapEff:\t{none}\nCapBnd:\t{none}\nNoNewPrivs:\t1\n4\n"
    );
    assert_eq!(out, expect);
}

#[test]
fn nothing_of_the_host_can_be_seen_signalled_or_written() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("closed");
    let sandbox = keeper.create(&plan(1)).unwrap();
    let script = "exec 2>&1; kill -9 1; cat /proc/1/environ; ls /root /home /work; touch /x /usr/x /etc/passwd; ls /; cat /etc/passwd; \
                  mount -t tmpfs none /mnt; grep -c . /proc/self/mountinfo";
    let (_, out, _) = output(&sandbox, &sh(script));
    println!("{out}");
    for line in out.lines().filter(|l| l.starts_with("touch")) {
        assert!(line.ends_with("Read-only file system") || line.ends_with("Permission denied"), "{line}");
    }
    assert_eq!(out.matches("No such file or directory").count(), 4, "three directories and /proc/1");
    assert!(out.contains("bin\ndev\netc\nlib\n"));
    let (status, ..) = output(&sandbox, &sh("exit 0"));
    assert_eq!(status, ExitStatus::Code(0), "pid 1 lives");
}

#[test]
fn the_disk_is_full_when_it_is_full_and_is_not_the_functions_memory() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("disk");
    let mut planned = plan(1);
    planned.cgroup.memory_bytes = Some(32 << 20);
    let sandbox = keeper.create(&planned).unwrap();
    if !sandbox.caveats().is_empty() {
        println!("skipped: the disk: {:?}", sandbox.caveats());
        return;
    }
    let (status, out, err) = output(
        &sandbox,
        &sh("head -c 48000000 /dev/zero > /tmp/a && echo written; head -c 48000000 /dev/zero > /tmp/b"),
    );
    assert_eq!(out, "written\n", "{err}");
    assert!(
        matches!(status, ExitStatus::Code(1)) && err.contains("No space left on device"),
        "{status:?} {err}"
    );
    assert_eq!(sandbox.cgroup().oom_kills(), 0);
    assert!(sandbox.cgroup().memory_anonymous_bytes() < 8 << 20);
}

#[test]
fn killing_the_processes_keeps_tmp() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("kill");
    let sandbox = keeper.create(&plan(1)).unwrap();
    output(&sandbox, &sh("echo kept > /tmp/file"));
    // Children that ignore SIGTERM, have left the session, and one that forks on.
    let script = "trap '' TERM; for i in 1 2 3; do setsid sleep 1000 & done; while :; do sleep 0.01; done";
    let spawned = sandbox.spawn(&sh(script)).unwrap();
    assert!(eventually(PATIENCE, || sandbox.cgroup().process_count() >= 4));
    sandbox.cgroup().freeze().unwrap();
    sandbox.kill_processes(9).unwrap();
    assert_eq!(exit_of(&sandbox, spawned.inner_pid), ExitStatus::Signal(9));
    assert_eq!(sandbox.cgroup().process_count(), 0);
    assert_eq!(output(&sandbox, &sh("cat /tmp/file")).1, "kept\n");
}

#[test]
fn a_plan_that_cannot_be_is_refused_with_the_step() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("refused");
    let mut planned = plan(7);
    planned.root.as_mut().unwrap().mounts.push(bind("/nowhere", "/var/task"));
    let error = keeper.create(&planned).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot create env 7: bind /nowhere to /var/task: No such file or directory (os error 2)"
    );
    let mut planned = plan(7);
    planned.cgroup.cpu_quota_us = Some(999);
    assert!(matches!(keeper.create(&planned).unwrap_err(), Error::QuotaTooSmall { quota_us: 999 }));
    let mut planned = plan(7);
    planned.rlimits[0].name = "WISHES".to_owned();
    assert!(keeper.create(&planned).unwrap_err().to_string().contains("WISHES"));
    keeper.create(&plan(7)).unwrap();
}

#[test]
fn layers_are_merged_and_links_cannot_lead_outside() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("mounts");
    let dir = tempfile::tempdir().unwrap();
    let make = |path: &str, text: &str| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    make("one:1/a", "one");
    make("one:1/b", "one");
    make("two/b", "two");
    make("code/handler", "code");
    make("roots", "ours");
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("code/roots")).unwrap();
    let mut planned = plan(1);
    let mounts = &mut planned.root.as_mut().unwrap().mounts;
    mounts.push(danki_sys::plan::MountPlan::Overlay {
        target: "/opt".into(),
        lower: vec![dir.path().join("one:1"), dir.path().join("two")],
    });
    mounts.push(bind(dir.path().join("code"), "/var/task"));
    let (host, before) = ("/etc/passwd", std::fs::read("/etc/passwd").ok());
    mounts.push(bind(dir.path().join("roots"), "/var/task/roots"));
    let sandbox = keeper.create(&planned).unwrap();
    let (_, out, err) = output(
        &sandbox,
        &sh("cat /opt/a /opt/b /var/task/handler /var/task/roots; touch /opt/x /var/task/x"),
    );
    assert_eq!(out, "onetwocodeours", "{err}");
    assert_eq!(err.matches("Read-only file system").count(), 2, "{err}");
    assert_eq!(std::fs::read(host).ok(), before, "the link was resolved inside");
}

#[test]
fn envs_are_created_at_the_same_time() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("many");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let keeper = &keeper;
            scope.spawn(move || {
                for round in 0..10 {
                    let sandbox = keeper.create(&plan(thread * 100 + round)).unwrap();
                    // Eight threads at once may leave no CPU for watching a quota's timer, which is said.
                    let others = sandbox.caveats().iter().filter(|caveat| !caveat.contains("refilled"));
                    assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
                    let number = format!("{thread}.{round}");
                    assert_eq!(
                        output(&sandbox, &sh(&format!("echo {number}; hostname"))).1,
                        format!("{number}\n169.254.100.1\n")
                    );
                }
            });
        }
    });
}

#[test]
fn a_fork_bomb_is_contained_and_killed() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("bomb");
    let mut planned = plan(1);
    planned.cgroup.pids_max = Some(64);
    planned.cgroup.cpu_quota_us = Some(4_000);
    let sandbox = keeper.create(&planned).unwrap();
    let bomb = "bomb() { bomb | bomb & }; bomb 2>/dev/null; while :; do bomb 2>/dev/null; done";
    sandbox.spawn(&program(&["/bin/bash", "-c", bomb])).unwrap();
    assert!(eventually(PATIENCE, || sandbox.cgroup().process_count() > 30));
    sandbox.kill_processes(9).unwrap();
    assert_eq!(sandbox.cgroup().process_count(), 0);
    assert_eq!(output(&sandbox, &sh("echo lives")).1, "lives\n");
}

#[test]
fn a_signal_reaches_one_process_and_its_group() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("signal");
    let sandbox = keeper.create(&plan(1)).unwrap();
    let sleeper = || sandbox.spawn(&sh("sleep 1000 & wait")).unwrap();
    let (first, second) = (sleeper(), sleeper());
    assert!(eventually(PATIENCE, || sandbox.cgroup().process_count() == 4));
    assert!(sandbox.signal(first.inner_pid, 15).unwrap());
    assert!(eventually(PATIENCE, || sandbox.cgroup().process_count() == 2));
    assert!(!sandbox.signal(first.inner_pid, 15).unwrap(), "it is no more");
    assert!(!sandbox.signal(1, 9).unwrap(), "not one of ours");
    assert!(sandbox.signal(second.inner_pid, 9).unwrap());
    assert!(eventually(PATIENCE, || sandbox.cgroup().process_count() == 0));
}
