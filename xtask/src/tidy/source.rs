//! Rules about one file's text: size, postponed work, `unsafe`, lint exceptions.

use super::{Finding, Text};

/// STYLE: aim at 150 lines, never above this.
const MAX_LINES: usize = 500;
/// Files above the limit with their size at the time; a number here may only fall.
const RATCHET: [(&str, usize); 0] = [];
/// Code whose size is a matter of style; documents and data are as long as they are.
const CODE: [&str; 7] = [".rs", ".js", ".mjs", ".cjs", ".py", ".sh", ".go"];

/// Who may opt out of which lint, and thereby owns what the lint bans.
const OWNERS: [(&str, &[&str]); 6] = [
    ("crates/cli/", &["print_stdout", "print_stderr", "exit", "disallowed_methods"]),
    // A program of its own, which must not carry the command line of the other.
    ("crates/secrets/src/main.rs", &["disallowed_methods"]),
    // Takes its length as an argument.
    ("crates/secrets/benches/soak.rs", &["disallowed_methods"]),
    ("crates/sys/", &["unsafe_code", "disallowed_methods", "exit"]),
    ("crates/testkit/", &["print_stdout", "print_stderr", "disallowed_methods"]),
    ("xtask/", &["print_stdout", "print_stderr", "disallowed_methods"]),
];
/// Integration tests and benchmarks print what they measured or skipped, and may stop at the first surprise.
const IN_TESTS: [&str; 3] = ["print_stdout", "print_stderr", "unwrap_used"];
/// Lints whose exceptions have owners; any other may be allowed anywhere, with a reason.
const OWNED: [&str; 9] = [
    "unsafe_code",
    "print_stdout",
    "print_stderr",
    "exit",
    "disallowed_methods",
    "disallowed_types",
    "unwrap_used",
    "todo",
    "unimplemented",
];

pub fn check(text: &Text) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(size(text, &RATCHET));
    findings.extend(postponed(text));
    if text.path.ends_with(".rs") {
        findings.extend(unsafe_code(text));
        findings.extend(exceptions(text));
    }
    if text.path.ends_with("Cargo.toml") && text.path.starts_with("crates/") {
        findings.extend(lints(text));
    }
    findings
}

fn size(text: &Text, ratchet: &[(&str, usize)]) -> Option<Finding> {
    if !CODE.iter().any(|ending| text.path.ends_with(ending)) {
        return None;
    }
    let lines = text.content.lines().count();
    let listed = ratchet.iter().find(|(path, _)| *path == text.path).map(|(_, size)| *size);
    let what = match listed {
        Some(size) if lines > size => format!("grew from {size} to {lines} lines; it may only shrink"),
        Some(size) if lines < size => format!("shrank from {size} to {lines} lines: lower the ratchet"),
        None if lines > MAX_LINES => format!("{lines} lines: the limit is {MAX_LINES}, split it by ideas"),
        _ => return None,
    };
    Some(Finding::new(&text.path, 0, what))
}

fn postponed(text: &Text) -> Vec<Finding> {
    // Put together here so that this file does not find itself.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), concat!("#[ig", "nore")];
    let mut findings = Vec::new();
    // A style guide may name the words it forbids.
    if text.path.ends_with(".md") || text.path.ends_with(".json") {
        return findings;
    }
    for (index, line) in text.content.lines().enumerate() {
        for mark in marks.iter().filter(|mark| line.contains(**mark)) {
            findings.push(Finding::new(
                &text.path,
                index + 1,
                format!("{mark}: main holds no postponed work"),
            ));
        }
    }
    findings
}

fn unsafe_code(text: &Text) -> Vec<Finding> {
    if text.path.starts_with("crates/sys/") {
        return Vec::new();
    }
    let words = [
        concat!("unsa", "fe {"),
        concat!("unsa", "fe fn"),
        concat!("unsa", "fe impl"),
        concat!("unsa", "fe("),
    ];
    let mut findings = Vec::new();
    for (index, line) in text.content.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if words.iter().any(|word| code.contains(word)) {
            findings.push(Finding::new(&text.path, index + 1, "unsafe code belongs in crates/sys"));
        }
    }
    findings
}

/// `#[allow(..)]` and `#[expect(..)]`: only by the owner of what the lint bans, and with a reason.
fn exceptions(text: &Text) -> Vec<Finding> {
    let owned_here = owned_by(&text.path);
    let mut findings = Vec::new();
    for (line, attribute) in attributes(&text.content) {
        if !attribute.contains("reason") {
            findings.push(Finding::new(&text.path, line, "a lint exception needs `reason = \"…\"`"));
        }
        for lint in OWNED.iter().filter(|lint| names_lint(&attribute, lint) && !owned_here.contains(lint)) {
            findings.push(Finding::new(
                &text.path,
                line,
                format!("`{lint}` may not be allowed here; see OWNERS in xtask"),
            ));
        }
    }
    findings
}

fn owned_by(path: &str) -> Vec<&'static str> {
    let is_test = ["/tests/", "/benches/"].iter().any(|folder| path.contains(folder));
    let for_tests = if is_test { IN_TESTS.as_slice() } else { &[] };
    let owners = OWNERS.iter().filter(|(owner, _)| path.starts_with(owner));
    owners.flat_map(|(_, lints)| *lints).chain(for_tests).copied().collect()
}

fn names_lint(attribute: &str, lint: &str) -> bool {
    let before_reason = attribute.split("reason").next().unwrap_or_default();
    before_reason.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == lint)
}

/// The lint exceptions of a file with the line they start on, each up to its closing `)]`.
fn attributes(content: &str) -> Vec<(usize, String)> {
    let starts = ["#[allow(", "#![allow(", "#[expect(", "#![expect("];
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in content.lines().enumerate() {
        let trimmed = line.trim_start();
        if open.is_none() && starts.iter().any(|start| trimmed.starts_with(start)) {
            open = Some((index + 1, String::new()));
        }
        if let Some((_, attribute)) = &mut open {
            attribute.push_str(trimmed);
            if trimmed.contains(")]") {
                found.extend(open.take());
            }
        }
    }
    found.extend(open);
    found
}

fn lints(text: &Text) -> Option<Finding> {
    let manifest: toml::Table = text.content.parse().ok()?;
    let inherited = manifest.get("lints").and_then(|lints| lints.get("workspace"));
    let inherits = inherited.and_then(toml::Value::as_bool) == Some(true);
    // sys alone may hold unsafe code, which `forbid` would not let it allow: it lists its lints itself.
    let excused = text.path == "crates/sys/Cargo.toml";
    (!inherits && !excused).then(|| Finding::new(&text.path, 0, "should have [lints] workspace = true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, content: &str) -> Text {
        Text { path: path.into(), content: content.into() }
    }

    fn count(path: &str, content: &str) -> usize {
        check(&text(path, content)).len()
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(count("crates/a/src/lib.rs", &"x\n".repeat(500)), 0);
        assert_eq!(count("crates/a/src/lib.rs", &"x\n".repeat(501)), 1);
        assert_eq!(count("docs/long.md", &"x\n".repeat(5000)), 0);
    }

    #[test]
    fn the_ratchet_turns_one_way() {
        let ratchet = [("a.rs", 600)];
        assert!(size(&text("a.rs", &"x\n".repeat(600)), &ratchet).is_none());
        assert!(size(&text("a.rs", &"x\n".repeat(601)), &ratchet).expect("found").what.contains("grew"));
        assert!(size(&text("a.rs", &"x\n".repeat(10)), &ratchet).expect("found").what.contains("lower"));
    }

    #[test]
    fn postponed_work_is_found() {
        for mark in [
            concat!("// TO", "DO later"),
            concat!("# FIX", "ME"),
            concat!("#[ig", "nore]"),
            concat!("// XX", "X: hm"),
        ] {
            assert_eq!(count("a.py", mark), 1, "{mark}");
        }
        assert_eq!(count("a.py", "todos = []  # the list"), 0);
    }

    #[test]
    fn unsafe_is_found_outside_sys() {
        let code = concat!("let x = unsa", "fe { read(p) };");
        assert_eq!(count("crates/link/src/lib.rs", code), 1);
        assert_eq!(count("crates/sys/src/lib.rs", code), 0);
        assert_eq!(count("crates/link/src/lib.rs", concat!("// no unsa", "fe { } here")), 0);
    }

    #[test]
    fn exceptions_need_an_owner_and_a_reason() {
        let owned = "#![allow(clippy::exit, reason = \"ends the process\")]";
        assert_eq!(count("crates/cli/src/main.rs", owned), 0);
        assert_eq!(count("crates/host/src/lib.rs", owned), 1);
        assert_eq!(count("crates/host/src/lib.rs", "#[allow(clippy::too_many_arguments)]"), 1);
        assert_eq!(
            count("crates/host/src/lib.rs", "#[expect(clippy::too_many_arguments, reason = \"plan\")]"),
            0
        );
        let in_test = "#![allow(clippy::unwrap_used, reason = \"a test\")]";
        assert_eq!(count("crates/host/tests/chaos.rs", in_test), 0);
        assert_eq!(count("crates/host/src/lib.rs", in_test), 1);
        let spread = "#[allow(\n    clippy::unwrap_used,\n    reason = \"x\"\n)]";
        assert_eq!(count("crates/host/src/lib.rs", spread), 1);
        let unwraps = "#[allow(dead_code, reason = \"unwrap_used elsewhere\")]";
        assert_eq!(count("crates/host/src/lib.rs", unwraps), 0);
    }

    #[test]
    fn lints_are_inherited() {
        assert_eq!(count("crates/a/Cargo.toml", "[lints]\nworkspace = true"), 0);
        assert_eq!(count("crates/a/Cargo.toml", "[lints]\nworkspace = false"), 1);
        assert_eq!(count("crates/a/Cargo.toml", "[package]\nname = \"a\""), 1);
    }
}
