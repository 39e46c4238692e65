//! What a user gets wrong is told in words, with the exit code that scripts rely on. Nothing here runs a function.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn danki(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_danki"));
    command.args(args).current_dir(dir).output().expect("danki starts")
}

/// Runs danki in a directory with a fine function `f`; expects an exit code and words on stderr.
fn check(files: &[(&str, &str)], args: &[&str], code: i32, words: &[&str]) {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("f")).expect("made");
    fs::write(dir.path().join("f/index.js"), "exports.handler = async () => 1;").expect("written");
    for (name, text) in files {
        fs::write(dir.path().join(name), text).expect("written");
    }
    let output = danki(dir.path(), args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{args:?}: no {word:?} in {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn wrong_usage_ends_with_2() {
    check(&[], &[], 2, &["Usage"]);
    check(&[], &["bench"], 2, &["TARGET"]);
    check(&[], &["bench", "f", "--memory", "lots"], 2, &["lots"]);
    check(&[], &["bench", "f", "--memory", "64"], 2, &["64 MB", "128 to 10240"]);
    check(&[], &["bench", "f", "--timeout", "0.1"], 2, &["0.1", "1 to 900"]);
    check(&[], &["bench", "f", "--runtime", "cobol"], 2, &["cobol", "nodejs<N>.x"]);
    check(
        &[],
        &["bench", "f", "--handler", "other.handler"],
        2,
        &["other.handler", "hint: looked for other.py"],
    );
    check(&[], &["run", "nowhere"], 2, &["nowhere"]);
    check(&[], &["run", "f", "--event", "nowhere.json"], 2, &["nowhere.json"]);
    check(&[("e.json", "{")], &["run", "f", "--event", "e.json"], 2, &["e.json:1", "not JSON"]);
    check(&[], &["calibrate", "--runs", "0"], 2, &["0"]);
}

#[test]
fn wrong_experiments_end_with_2_and_name_the_line() {
    check(&[], &["bench", "nowhere.toml"], 2, &["nowhere.toml is neither an experiment nor"]);
    check(&[], &["bench", "keepalive-nod"], 2, &["hint: did you mean keepalive-node?"]);
    check(&[("x.toml", "name = ")], &["bench", "x.toml"], 2, &["x.toml:1"]);
    let text = "name = 'x'\n[function]\ndir = 'f'\nmemroy_mb = 128\n";
    check(
        &[("x.toml", text)],
        &["bench", "x.toml"],
        2,
        &["x.toml:4", "memroy_mb", "hint: did you mean \"memory_mb\"?"],
    );
    let text = "name = 'x'\n[function]\ndir = 'gone'\n";
    check(&[("x.toml", text)], &["bench", "x.toml"], 2, &["gone"]);
    let fine = "name = 'x'\n[function]\ndir = 'f'\n";
    check(
        &[("x.toml", fine)],
        &["bench", "x.toml", "--memory", "128"],
        2,
        &["--memory is for a function's directory"],
    );
    check(
        &[("x.toml", fine)],
        &["bench", "x.toml", "--time-scale", "11"],
        2,
        &["time_scale = 11", "1 to 10"],
    );
}

#[test]
fn completions_are_printed() {
    let output = danki(Path::new("/"), &["completions", "bash"]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("danki"));
}
