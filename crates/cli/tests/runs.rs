//! Whole runs, as a user starts them. They need what `danki doctor` calls essential; without it they say that they skip.
#![allow(clippy::print_stdout, reason = "a test that skips says so")]

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn danki() -> Command {
    Command::new(env!("CARGO_BIN_EXE_danki"))
}

fn functions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../functions")
}

/// False, with a word why, where envs cannot be made.
fn can_run(what: &str) -> bool {
    let doctor = danki().arg("doctor").output().expect("danki starts");
    let able = doctor.status.code() == Some(0);
    if !able {
        println!("skipped: {what}: {}", String::from_utf8_lossy(&doctor.stdout).replace('\n', "; "));
    }
    able
}

fn run(function: &str, event: &str, more: &[&str]) -> Output {
    let mut command = danki();
    command.arg("run").arg(functions().join(function)).args(["--event", "-"]).args(more);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("danki starts");
    child.stdin.take().expect("piped").write_all(event.as_bytes()).expect("taken");
    child.wait_with_output().expect("it ends")
}

#[test]
fn one_invocation_answers_on_stdout_and_logs_on_stderr() {
    if !can_run("danki run") {
        return;
    }
    let check = |function: &str, event: &str, code: i32, answer: &str, log: &str| {
        let output = run(function, event, &[]);
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{function}: {stderr}");
        assert!(stdout.contains(answer), "{function}: {stdout}");
        assert!(stderr.contains(log) && stderr.contains("REPORT RequestId: "), "{function}: {stderr}");
    };
    check("echo-node", r#"{"b": 1, "a": [2]}"#, 0, r#"{"b":1,"a":[2]}"#, "START RequestId: ");
    check("hello-python", "", 0, "hello", "Init Duration: ");
    check("chaos-python", r#"{"action": "raise_error"}"#, 4, r#""errorType": "ValueError""#, "ValueError");
    check("chaos-node", r#"{"action": "exit_one"}"#, 4, "Runtime.ExitError", "");
}

#[test]
fn an_invocation_finds_the_state_that_was_asked_for() {
    if !can_run("a forced state") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (n, (state, start)) in
        [(&["--cold"][..], "cold"), (&["--warm"], "warm"), (&["--idle", "300ms"], "warm")]
            .into_iter()
            .enumerate()
    {
        let out = dir.path().join(n.to_string());
        let output = run("hello-python", "", &[state, &["--out", &out.to_string_lossy()]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let events = fs::read_to_string(out.join("events.jsonl")).expect("there");
        assert!(events.contains(&format!("\"start\":\"{start}\"")), "{state:?}: {events}");
    }
}

#[test]
fn a_machine_without_the_interpreter_says_so() {
    if !can_run("a missing interpreter") {
        return;
    }
    for (function, interpreter) in [("echo-node", "node"), ("hello-python", "python3")] {
        let output = danki().arg("run").arg(functions().join(function)).env("PATH", "/nonexistent").output();
        let output = output.expect("danki starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        let told = stderr.contains(&format!("no {interpreter} found in /nonexistent"));
        assert!(told && stderr.contains("hint: "), "{stderr}");
    }
}

/// An experiment of two variants of a function that needs no packages.
fn experiment(dir: &Path, load: &str) -> PathBuf {
    let function = functions().join("hello-node");
    let text = format!(
        "name = 'two'\ntime_scale = 2\n[function]\ndir = '{}'\n[[variant]]\nname = 'small'\nmemory_mb = 256\n\
         [[variant]]\nname = 'large'\nmemory_mb = 1024\n[load]\n{load}\n[[expect]]\nname = 'all'\n\
         metric = 'small.invocations'\nwithin = {{ min = 3, max = 3 }}\n",
        function.display()
    );
    let path = dir.join("two.toml");
    fs::write(&path, text).expect("written");
    path
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON")
}

#[test]
fn a_bench_fills_its_run_directory() {
    if !can_run("danki bench") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let path = experiment(dir.path(), "kind = 'sequence'\ncount = 3\ngap_ms = 100");
    let output = danki().args(["bench", "--json", "--seed", "5"]).arg(&path).arg("--out").arg(&out).output();
    let output = output.expect("danki starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    assert_eq!(summary, read_json(&out.join("summary.json")));
    for variant in 0..2 {
        let at =
            |path: &str| summary.pointer(&format!("/variants/{variant}/{path}")).cloned().unwrap_or_default();
        assert_eq!((at("invocations"), at("errors"), at("cold_starts")), (3.into(), 0.into(), 1.into()));
        assert!(at("duration_ms/p50").as_f64().is_some_and(|ms| ms > 0.0), "{summary:#}");
        assert!(at("init_ms/0").as_f64().is_some_and(|ms| ms > 1.0), "{summary:#}");
        assert!(at("waterfall_ms/init/max").as_f64().is_some_and(|ms| ms > 1.0), "{summary:#}");
    }
    assert_eq!(summary["expect"][0]["within"], true);
    let caveats = summary["caveats"].to_string();
    assert!(caveats.contains("divided by 2"), "{caveats}");
    let manifest = read_json(&out.join("manifest.json"));
    assert_eq!((&manifest["complete"], &manifest["seed"]), (&true.into(), &5.into()));
    let lines = |name: &str| fs::read_to_string(out.join(name)).expect(name).lines().count();
    assert_eq!((lines("invocations.csv"), lines("waterfalls.jsonl"), lines("responses.jsonl")), (7, 6, 6));
    assert!(lines("events.jsonl") > 20 && lines("connections.csv") == 1);
    assert!(fs::metadata(out.join("wire.pcap")).is_ok());
}

#[test]
fn a_function_that_idles_is_pinged_and_pings_do_not_count() {
    if !can_run("pings") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (path, out) = (dir.path().join("pinged.toml"), dir.path().join("out"));
    let text = format!(
        "name = 'pinged'\n[function]\ndir = '{}'\nmemory_mb = 1024\n[[variant]]\nname = 'pinged'\nping_s = 1\n[[variant]]\n\
         name = 'idle'\n[load]\nkind = 'sequence'\ncount = 2\ngap_ms = 3500\n",
        functions().join("hello-node").display()
    );
    fs::write(&path, text).expect("written");
    let output = danki().args(["bench", "--json"]).arg(&path).arg("--out").arg(&out).output();
    let output = output.expect("danki starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    for variant in 0..2 {
        assert_eq!(summary["variants"][variant]["invocations"], 2, "{summary:#}");
    }
    let events = fs::read_to_string(out.join("events.jsonl")).expect("there");
    let pings = |of: &str| {
        let all = events.lines().filter(|line| line.contains("\"ping\":true"));
        all.filter(|line| line.contains(&format!("\"variant\":\"{of}\""))).count()
    };
    // One a second in 3.5 s or more, on a machine that may be slow.
    assert!((1..=6).contains(&pings("pinged")), "{}", pings("pinged"));
    assert_eq!(pings("idle"), 0);
}

#[test]
fn quotas_are_scaled_by_the_speed_of_the_core() {
    if !can_run("--cpu-model scaled") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let bench = |memory: &str, out: &Path| {
        let mut command = danki();
        // A speed that is measured beside other tests is not to be kept.
        command.env("XDG_CACHE_HOME", dir.path()).arg("bench").arg(functions().join("hello-node"));
        command
            .args(["--json", "--count", "1", "--cpu-model", "scaled", "--memory", memory, "--out"])
            .arg(out);
        command.output().expect("danki starts")
    };
    let out = dir.path().join("out");
    let output = bench("256", &out);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    let caveats = summary["caveats"].to_string();
    assert!(caveats.contains("--cpu-model scaled: CPU quotas were divided by"), "{caveats}");
    assert_eq!(read_json(&out.join("manifest.json"))["experiment"]["host"]["cpu_model"], "scaled");
    let refused = bench("1769", &dir.path().join("refused"));
    assert_eq!(refused.status.code(), Some(2), "a whole vCPU cannot be scaled");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("use --cpu-model host"));
}

#[test]
fn a_missed_figure_and_a_run_that_is_too_large_have_their_exit_codes() {
    if !can_run("exit codes") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let check = |load: &str, code: i32, words: &str| {
        let path = experiment(dir.path(), load);
        let out = dir.path().join(format!("out-{code}"));
        let output = danki().arg("bench").arg(&path).arg("--out").arg(out).output().expect("danki starts");
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(words), "{told}");
    };
    check("kind = 'sequence'\ncount = 1", 1, "✗  all");
    check("kind = 'closed'\nclients = 500\ninvocations = 500", 3, "hint: ask for less");
}

#[test]
fn an_interrupted_run_is_written_and_leaves_nothing() {
    if !can_run("an interruption") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = experiment(dir.path(), "kind = 'sequence'\ncount = 1000\ngap_ms = 400");
    let start = |out: &Path| {
        let mut command = danki();
        command.arg("bench").arg(&path).arg("--out").arg(out).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("danki starts");
        wait_for("the first invocation", || {
            let events = fs::read_to_string(out.join("events.jsonl")).unwrap_or_default();
            events.contains(r#""type":"invocation""#)
        });
        child
    };
    let signal = |child: &std::process::Child, signal: &str| {
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
    };

    let out = dir.path().join("interrupted");
    let mut child = start(&out);
    signal(&child, "-INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(read_json(&out.join("manifest.json"))["complete"], false);
    let summary = read_json(&out.join("summary.json"));
    assert_eq!(summary["complete"], false);
    assert!(summary["variants"][0]["invocations"].as_u64().is_some_and(|n| n >= 1), "{summary:#}");

    let out = dir.path().join("killed");
    let mut child = start(&out);
    signal(&child, "-KILL");
    child.wait().expect("it ends");
    assert_eq!(read_json(&out.join("manifest.json"))["complete"], false);
    let run = format!("-{}-", child.id());
    wait_for("the keeper to clear up", || {
        let doctor = danki().args(["doctor", "--json"]).output().expect("danki starts");
        let doctor: Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
        !doctor["leftovers"].to_string().contains(&run)
    });
}

/// Waits at most 30 s.
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..300 {
        if done() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    panic!("waited too long for {what}");
}

const PYTHON: &str = "
import time
def handler(event, context):
    import decimal, xml.dom.minidom, unittest.mock, email.mime.multipart, http.server
    until = time.process_time() + 0.1
    while time.process_time() < until:
        sum(range(1000))
    return 'done'
";

/// py-spy looks at each invocation; the first one loads modules, the second does not.
#[test]
#[expect(clippy::disallowed_methods, reason = "adds a directory to where danki will look for py-spy")]
fn a_python_function_is_profiled() {
    if !can_run("profiles of Python") {
        return;
    }
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/py-spy/bin");
    if !tools.join("py-spy").exists() {
        println!("skipped: profiles of Python: no py-spy; `make prepare` installs it");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("app.py"), PYTHON).expect("written");
    let text = "name = 'p'\n[host]\nprofile = true\n[function]\ndir = '.'\nmemory_mb = 1769\ntimeout_s = 20\n[load]\nkind = 'sequence'\ncount = 2\n";
    fs::write(dir.path().join("p.toml"), text).expect("written");
    let out = dir.path().join("out");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    let output =
        danki().arg("bench").arg(dir.path().join("p.toml")).arg("--out").arg(&out).env("PATH", path).output();
    let output = output.expect("danki starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let verdicts = fs::read_to_string(out.join("profiles.jsonl")).expect("there");
    let verdicts: Vec<Value> =
        verdicts.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    let of = |key: &str| verdicts.iter().map(|v| v[key].as_f64().expect("a number")).collect::<Vec<f64>>();
    let (busy, modules) = (of("busy_ms"), of("modules_ms"));
    assert!(busy.iter().all(|ms| *ms > 20.0), "{verdicts:?}");
    assert!(modules.iter().any(|ms| *ms > 0.0) && modules.contains(&0.0), "{verdicts:?}");
    assert!(verdicts.iter().all(|v| v["created_socket"] == false && v["gc_ms"].is_null()), "{verdicts:?}");
    assert_eq!(fs::read_dir(out.join("profiles/python")).expect("there").count(), 2);
}

/// A collector that takes one request: what it was sent, and what it answers.
fn collector(answer: String) -> (String, std::thread::JoinHandle<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = format!("http://{}", listener.local_addr().expect("loopback"));
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("loopback");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("loopback");
        let (mut got, mut buffer) = (Vec::new(), [0; 4096]);
        // The body ends where JSON does.
        while !got.ends_with(b"}") {
            let length = stream.read(&mut buffer).expect("loopback");
            assert!(length > 0, "it has all been said");
            got.extend_from_slice(&buffer[..length]);
        }
        stream.write_all(answer.as_bytes()).expect("loopback");
        String::from_utf8(got).expect("loopback")
    });
    (address, served)
}

#[test]
fn traces_are_sent_to_a_collector() {
    let dir = tempfile::tempdir().unwrap();
    let spans = r#"{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[{"name":"a"},{"name":"b"}]}]}]}"#;
    fs::write(dir.path().join("trace.otlp.json"), spans).unwrap();
    let push = |url: &str| {
        danki()
            .arg("trace")
            .arg(dir.path())
            .args(["--otlp", url, "--header", "x-key: secret"])
            .output()
            .unwrap()
    };

    let said = r#"{"partialSuccess":{"rejectedSpans":"1"}}"#;
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{said}", said.len());
    let (url, served) = collector(answer);
    let output = push(&url);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 spans sent"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("rejected 1"), "{output:?}");
    let got = served.join().unwrap();
    assert!(got.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{got}");
    assert!(got.contains("content-type: application/json") && got.contains("x-key: secret"), "{got}");
    assert!(got.ends_with(spans), "{got}");

    let (url, served) =
        collector("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nfull".to_owned());
    let refused = push(&url);
    assert_eq!(refused.status.code(), Some(3));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("503 Service Unavailable: full"),
        "{refused:?}"
    );
    served.join().unwrap();
    assert_eq!(push("localhost:4318").status.code(), Some(2));
    fs::remove_file(dir.path().join("trace.otlp.json")).unwrap();
    assert_eq!(push("http://localhost:1").status.code(), Some(2), "there is nothing to send");
}
