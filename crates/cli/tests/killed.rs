//! danki is killed in the middle of a run: what it had made goes, whoever is left to see to it.
//!
//! A port cannot be in use: everything that listens does so in a network namespace of its own.
#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]
#![allow(clippy::print_stdout, reason = "a test that skips says so")]

use danki_testkit::{Process, descendants, eventually, repository, skipped, traces};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The promise.
const SOON: Duration = Duration::from_secs(3);

fn danki() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_danki"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A run with a busy env and a frozen one.
struct Running {
    danki: Child,
    processes: BTreeSet<Process>,
    networks: BTreeSet<u64>,
    /// Before the label, as in `danki-<pid>-`.
    name: String,
}

impl Running {
    fn start(dir: &Path) -> Running {
        let functions = repository().join("functions").canonicalize().unwrap();
        let text = format!(
            "name = 'killed'\n[function]\ndir = '{0}/chaos-python'\ntimeout_s = 60\n\
             [[variant]]\nname = 'frozen'\nevent = {{ action = 'fine' }}\n\
             [[variant]]\nname = 'busy'\nevent = {{ action = 'spin' }}\n[load]\nkind = 'sequence'\ncount = 5\n",
            functions.display()
        );
        fs::write(dir.join("killed.toml"), text).unwrap();
        let out = dir.join("out");
        let mut bench = danki();
        bench.arg("bench").arg(dir.join("killed.toml")).arg("--out").arg(&out);
        let danki = bench.stderr(fs::File::create(dir.join("stderr")).unwrap()).spawn().unwrap();
        let pid = i32::try_from(danki.id()).unwrap();
        let runtimes = || descendants(pid).iter().filter(|p| p.command().contains("bootstrap.py")).count();
        let first_is_done = || {
            let events = fs::read_to_string(out.join("events.jsonl")).unwrap_or_default();
            events.contains(r#""type":"invocation""#)
        };
        assert!(eventually(Duration::from_secs(20), || first_is_done() && runtimes() == 2), "it runs");
        let mut processes = descendants(pid);
        processes.extend(Process::find(pid));
        let networks = networks(&processes);
        assert!(networks.len() >= 3, "two envs and the region: {networks:?}");
        Running { danki, processes, networks, name: format!("danki-{pid}-") }
    }

    fn keeper(&self) -> Process {
        let pid = i32::try_from(self.danki.id()).unwrap();
        let parents: Vec<&Process> =
            self.processes.iter().filter(|p| p.pid != pid && !descendants(p.pid).is_empty()).collect();
        // The keeper has all the others below it.
        parents.into_iter().max_by_key(|p| descendants(p.pid).len()).unwrap().clone()
    }

    fn kill(&mut self) {
        self.danki.kill().unwrap();
        self.danki.wait().unwrap();
    }

    fn left(&self) -> Vec<String> {
        let mut left = traces(&self.name);
        left.extend(self.processes.iter().filter(|p| p.lives()).map(|p| format!("{p:?} {}", p.command())));
        let here: BTreeSet<Process> = all_processes();
        left.extend(networks(&here).intersection(&self.networks).map(|n| format!("network namespace {n}")));
        left
    }

    fn assert_gone(&self, within: Duration) {
        eventually(within, || self.left().is_empty());
        assert_eq!(self.left(), Vec::<String>::new());
    }
}

fn all_processes() -> BTreeSet<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter_map(Process::find).collect()
}

/// Network namespaces of processes, but ours.
fn networks(processes: &BTreeSet<Process>) -> BTreeSet<u64> {
    let inode = |pid: &str| {
        let link = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
        link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse::<u64>().ok()
    };
    let own = inode("self");
    processes.iter().filter_map(|p| inode(&p.pid.to_string())).filter(|n| Some(*n) != own).collect()
}

#[test]
fn the_keeper_clears_up_when_danki_is_killed() {
    if skipped("danki killed") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut running = Running::start(dir.path());
    running.kill();
    running.assert_gone(SOON);
    let manifest: Value =
        serde_json::from_slice(&fs::read(dir.path().join("out/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["complete"], false, "what was written says that it is not all");
}

#[test]
fn clean_removes_what_nobody_could() {
    if skipped("danki and its keeper killed") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut running = Running::start(dir.path());
    let keeper = Pid::from_raw(running.keeper().pid).unwrap();
    // Stopped first, so that it cannot act on danki's end.
    kill_process(keeper, Signal::STOP).unwrap();
    running.kill();
    kill_process(keeper, Signal::KILL).unwrap();
    assert!(!traces(&running.name).is_empty(), "cgroups and a directory are left");
    let doctor = Command::new(env!("CARGO_BIN_EXE_danki")).args(["doctor", "--json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(doctor["leftovers"].to_string().contains(&running.name), "{}", doctor["leftovers"]);
    assert!(danki().arg("clean").status().unwrap().success());
    running.assert_gone(SOON);
}

#[test]
fn a_dead_keeper_is_named_and_nothing_hangs() {
    if skipped("keeper killed") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut running = Running::start(dir.path());
    kill_process(Pid::from_raw(running.keeper().pid).unwrap(), Signal::KILL).unwrap();
    let ended = eventually(Duration::from_secs(20), || running.danki.try_wait().unwrap().is_some());
    assert!(ended, "it does not hang");
    assert_eq!(running.danki.wait().unwrap().code(), Some(3));
    let told = fs::read_to_string(dir.path().join("stderr")).unwrap();
    assert!(told.contains("error: "), "{told}");
    running.assert_gone(SOON);
}

#[test]
fn an_interrupt_does_not_wait_for_a_busy_function() {
    if skipped("interrupt") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut running = Running::start(dir.path());
    let danki = Pid::from_raw(i32::try_from(running.danki.id()).unwrap()).unwrap();
    kill_process(danki, Signal::INT).unwrap();
    let ended = eventually(Duration::from_secs(20), || running.danki.try_wait().unwrap().is_some());
    assert!(ended, "it does not wait for the function's 60 s");
    assert_eq!(running.danki.wait().unwrap().code(), Some(130));
    running.assert_gone(Duration::ZERO);
    let manifest: Value =
        serde_json::from_slice(&fs::read(dir.path().join("out/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["complete"], false);
    assert!(dir.path().join("out/summary.json").is_file());
}

#[test]
fn one_invocation_leaves_nothing_when_it_is_killed() {
    if skipped("danki run killed") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let event = dir.path().join("event.json");
    fs::write(&event, r#"{"action": "spin"}"#).unwrap();
    let function = repository().join("functions/chaos-python");
    let mut run = danki();
    run.arg("run").arg(function).args(["--timeout", "60", "--event"]).arg(&event);
    let mut child = run.spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let runs = || descendants(pid).iter().any(|p| p.command().contains("bootstrap.py"));
    assert!(eventually(Duration::from_secs(20), runs));
    let processes = descendants(pid);
    child.kill().unwrap();
    child.wait().unwrap();
    let left = || {
        let mut left = traces(&format!("danki-{pid}-"));
        left.extend(processes.iter().filter(|p| p.lives()).map(|p| format!("{p:?} {}", p.command())));
        left
    };
    eventually(SOON, || left().is_empty());
    assert_eq!(left(), Vec::<String>::new());
}

#[test]
fn a_run_outlives_the_regions_process() {
    if skipped("region killed") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let functions = repository().join("functions").canonicalize().unwrap();
    let text = format!(
        "name = 'survivor'\n[function]\ndir = '{}/hello-python'\n[load]\nkind = 'sequence'\ncount = 30\ngap_ms = 100\n",
        functions.display()
    );
    fs::write(dir.path().join("survivor.toml"), text).unwrap();
    let out = dir.path().join("out");
    let mut run = Command::new(env!("CARGO_BIN_EXE_danki"));
    run.arg("bench").arg(dir.path().join("survivor.toml")).arg("--out").arg(&out);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let invoked = || {
        fs::read_to_string(out.join("events.jsonl")).unwrap_or_default().contains(r#""type":"invocation""#)
    };
    assert!(eventually(Duration::from_secs(20), invoked));
    // The region's pid 1 does nothing but hold its namespace, which danki's sockets hold too.
    let region = descendants(pid).into_iter().find(is_region).expect("a process whose host name is region");
    kill_process(Pid::from_raw(region.pid).unwrap(), Signal::KILL).unwrap();
    let ended = eventually(Duration::from_secs(20), || child.try_wait().unwrap().is_some());
    assert!(ended, "it does not hang");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(traces(&format!("danki-{pid}-")), Vec::<String>::new());
}

/// The process whose UTS namespace is called `region`: told by its root, which it never changed, and its network.
fn is_region(process: &Process) -> bool {
    let local = fs::read_to_string(format!("/proc/{}/net/fib_trie", process.pid)).unwrap_or_default();
    local.contains("198.18.0.1") && process.lives()
}

/// A run with a database, once it has invoked.
fn with_database(dir: &Path, engine: &str) -> Running {
    let functions = repository().join("functions").canonicalize().unwrap();
    let text = format!(
        "name = 'database'\n[function]\ndir = '{}/hello-python'\n[region.database]\nusers = 10\n\
         engine = '{engine}'\n[[region.database.proxy]]\nname = 'pool'\n[load]\nkind = 'sequence'\ncount = 100\ngap_ms = 1000\n",
        functions.display()
    );
    fs::write(dir.join("database.toml"), text).unwrap();
    let out = dir.join("out");
    let mut bench = danki();
    bench.arg("bench").arg(dir.join("database.toml")).arg("--out").arg(&out);
    let danki = bench.stderr(fs::File::create(dir.join("stderr")).unwrap()).spawn().unwrap();
    let pid = i32::try_from(danki.id()).unwrap();
    let invoked = || {
        fs::read_to_string(out.join("events.jsonl")).unwrap_or_default().contains(r#""type":"invocation""#)
    };
    assert!(eventually(Duration::from_secs(30), invoked), "it runs");
    let mut processes = descendants(pid);
    processes.extend(Process::find(pid));
    let networks = networks(&processes);
    Running { danki, processes, networks, name: format!("danki-{pid}-") }
}

impl Running {
    fn server(&self) -> Pid {
        // PostgreSQL's other processes have titles instead of commands.
        let is_server =
            |p: &&Process| ["/mariadbd", "/postgres"].iter().any(|name| p.command().contains(name));
        let server = self.processes.iter().find(is_server).expect("a server");
        Pid::from_raw(server.pid).unwrap()
    }
}

#[test]
fn a_database_goes_with_danki() {
    if skipped("danki killed with a database") || no_database() {
        return;
    }
    for engine in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let mut running = with_database(dir.path(), engine);
        running.server();
        running.kill();
        running.assert_gone(SOON);
    }
}

#[test]
fn a_database_that_dies_ends_the_run_and_is_named() {
    if skipped("database killed") || no_database() {
        return;
    }
    for engine in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let mut running = with_database(dir.path(), engine);
        kill_process(running.server(), Signal::KILL).unwrap();
        let ended = eventually(Duration::from_secs(20), || running.danki.try_wait().unwrap().is_some());
        assert!(ended, "it does not hang");
        assert_eq!(running.danki.wait().unwrap().code(), Some(3));
        let told = fs::read_to_string(dir.path().join("stderr")).unwrap();
        assert!(told.contains("region.database: the server has ended"), "{told}");
        running.assert_gone(SOON);
    }
}

const ENGINES: [&str; 2] = ["mysql", "postgresql"];

fn no_database() -> bool {
    let missing =
        ["/usr/sbin/mariadbd", "/usr/lib/postgresql"].into_iter().find(|path| !Path::new(path).exists());
    if let Some(path) = missing {
        println!("skipped: a database: there is no {path}");
    }
    missing.is_some()
}
