//! Commands about finished runs, on a run made by hand. Nothing here runs a function.

use danki_runview::Run;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

#[path = "../../runview/tests/support/mod.rs"]
mod support;

fn danki(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_danki"));
    command.args(args).current_dir(dir).output().expect("danki starts")
}

/// A directory with `runs/one` and `runs/two`; expects an exit code and words on stdout or stderr.
fn check(files: &[(&str, &str)], args: &[&str], code: i32, words: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, n) in [("one", 40), ("two", 60)] {
        write(&support::run(n), &dir.path().join("runs").join(name));
    }
    for (name, text) in files {
        fs::write(dir.path().join(name), text).expect("written");
    }
    let output = danki(dir.path(), args);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?}: no {word:?} in {said}");
    }
    dir
}

fn write(run: &Run, dir: &Path) {
    fs::create_dir_all(dir).expect("made");
    let put = |name: &str, text: String| fs::write(dir.join(name), text).expect("written");
    put("manifest.json", serde_json::to_string(&run.manifest).expect("plain"));
    put("summary.json", serde_json::to_string(&run.summary).expect("plain"));
    put("events.jsonl", run.events.iter().map(|e| serde_json::to_string(e).expect("plain") + "\n").collect());
}

#[test]
fn runs_are_listed_and_reported() {
    check(&[], &["runs"], 0, &["one", "two", "made-by-hand"]);
    let dir = check(&[], &["report", "--perfetto", "--speedscope", "--again"], 0, &["report.html"]);
    for name in ["report.html", "trace.perfetto.json", "profile.speedscope.json"] {
        assert!(dir.path().join("runs/two").join(name).is_file(), "{name}");
    }
    check(&[], &["report", "nowhere"], 2, &["no run nowhere", "danki runs"]);
    check(&[], &["report", "one", "--explain", "zz"], 2, &["begins with"]);
    let id = danki_runview::build(&support::run(40)).invocations.id[3].clone();
    check(&[], &["report", "one", "--explain", &id], 0, &["service time", "sum", &id]);
}

#[test]
fn budgets_end_with_0_or_1() {
    let budget = |text| [("danki-budget.toml", text)];
    check(
        &budget("[budget]\np50_ms = 500"),
        &["check", "one"],
        0,
        &["✓ off: p50_ms", "2 limits kept, 0 missed"],
    );
    let args = ["check", "one", "--junit", "j.xml", "--markdown", "m.md", "--baseline", "two"];
    let dir = check(
        &budget("[budget]\np99_ms = 30\nregression_pct = 50"),
        &args,
        1,
        &["✗ off: p99_ms", "1 missed"],
    );
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("written");
    assert!(read("j.xml").contains("failures=\"1\"") && read("m.md").contains("| ✗ |"));
    check(&budget("[budget]\np98_ms = 1"), &["check", "one"], 2, &["p98_ms", "docs/budget.md"]);
    check(&[], &["check", "one"], 2, &["danki-budget.toml", "hint:"]);
}

#[test]
fn a_run_is_compared_with_another_and_with_aws() {
    check(&[], &["compare", "one", "one"], 0, &["Duration p50", "no difference"]);
    check(&[], &["compare", "one", "two", "--json"], 0, &["\"verdict\""]);
    let report = "REPORT RequestId: 1\tDuration: 51.5 ms\tBilled Duration: 52 ms\tMemory Size: 128 MB\tMax Memory Used: 80 MB\n";
    let files = [
        ("aws.txt", report.repeat(8)),
        ("none.txt", "hello\n".to_owned()),
        ("other.txt", report.replace("128 MB", "512 MB")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    check(&files, &["import", "aws-logs", "aws.txt"], 0, &["danki / AWS", "8 reports"]);
    check(&files, &["import", "aws-logs", "none.txt"], 2, &["no REPORT line"]);
    check(&files, &["import", "aws-logs", "other.txt"], 2, &["[512] MB"]);
}
