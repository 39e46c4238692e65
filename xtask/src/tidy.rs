//! The house rules that a compiler does not hold. Each rule is a pure function from text to findings, tested with bad input; this
//! file reads the tree and calls them.

mod experiments;
mod functions;
mod layers;
mod promises;
mod source;

use crate::schema;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What each rule holds, for the closing line and for readers.
pub const RULES: [&str; 10] = [
    "every crate is on the map in ARCHITECTURE.md, and the map names no other",
    "a crate depends on lower layers only",
    "every crate takes the workspace's lints; the exceptions are listed",
    "files stay under the size limit",
    "no postponed work, no ignored test",
    "unsafe code in sys only",
    "lints are opted out of by their owners only, and with a reason",
    "experiments say what they ask and where their figures come from; functions have lockfiles",
    "a promise names a test or a command that exists",
    "the page's types are those of the Rust source",
];

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// File, relative to the repository.
    pub file: String,
    /// Line from 1, or 0 for the whole file.
    pub line: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

impl Finding {
    pub fn new(file: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding { file: file.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

/// One text file of the repository.
pub struct Text {
    /// Path relative to the repository, with `/`.
    pub path: String,
    /// Its content.
    pub content: String,
}

/// All findings of all rules, in the order of the files.
pub fn check(root: &Path) -> io::Result<Vec<Finding>> {
    let texts = read_tree(root)?;
    let mut findings = layers::check(&texts);
    findings.extend(texts.iter().flat_map(source::check));
    findings.extend(texts.iter().flat_map(experiments::check));
    findings.extend(functions::check(&texts));
    findings.extend(promises::check(&texts));
    findings.extend(check_schema(root));
    findings.sort();
    findings.dedup();
    Ok(findings)
}

/// The page's types as the Rust source has them.
pub fn schema_of(root: &Path) -> Result<String, String> {
    let read = |path: &&'static str| {
        fs::read_to_string(root.join(path)).map(|text| (*path, text)).map_err(|e| format!("{path}: {e}"))
    };
    let sources: Vec<(&str, String)> = schema::SOURCES.iter().map(read).collect::<Result<_, _>>()?;
    let borrowed: Vec<(&str, &str)> = sources.iter().map(|(path, text)| (*path, text.as_str())).collect();
    schema::typescript(&borrowed)
}

fn check_schema(root: &Path) -> Option<Finding> {
    let there = fs::read_to_string(root.join(schema::TARGET)).unwrap_or_default();
    match schema_of(root) {
        Ok(types) if types == there => None,
        Ok(_) => Some(Finding::new(schema::TARGET, 0, "is not what `cargo xtask schema` writes")),
        Err(what) => Some(Finding::new(schema::TARGET, 0, what)),
    }
}

/// Folders that hold what was built, fetched or measured.
const SKIPPED: [&str; 8] =
    ["target", "node_modules", ".git", ".deps", ".cache", "runs", "corpus", "artifacts"];
/// What counts as text that people wrote.
const WRITTEN: [&str; 13] =
    ["rs", "toml", "md", "js", "mjs", "cjs", "py", "sh", "go", "txt", "json", "yml", "ts"];

fn read_tree(root: &Path) -> io::Result<Vec<Text>> {
    let mut texts = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let kind = entry.file_type()?;
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                folders.push(path);
            } else if kind.is_file() && is_written(&path) {
                let relative =
                    path.strip_prefix(root).expect("found below root").to_string_lossy().into_owned();
                texts.push(Text { path: relative, content: fs::read_to_string(&path)? });
            }
        }
    }
    texts.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(texts)
}

fn is_written(path: &Path) -> bool {
    let named = path.file_name().is_some_and(|name| name == "Makefile");
    named || path.extension().is_some_and(|extension| WRITTEN.iter().any(|written| extension == *written))
}
