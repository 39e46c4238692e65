//! The repository's own tools: `cargo xtask tidy` holds the house rules, `cargo xtask test` runs every stage of `make test` and
//! ends with the count. They know the source tree only; nothing here is linked into danki.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a developer's tool: it reads arguments, prints, and times stages"
)]

mod schema;
mod stages;
mod tally;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy | test [STAGE...] | stages | schema";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    match arguments.split_first() {
        Some((command, [])) if command == "tidy" => report_tidy(&root),
        Some((command, names)) if command == "test" => stages::run(&root, names),
        Some((command, [])) if command == "stages" => stages::list(),
        Some((command, [])) if command == "schema" => write_schema(&root),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lives in the repository").to_owned()
}

/// Writes the page's types.
fn write_schema(root: &std::path::Path) -> ExitCode {
    let written = tidy::schema_of(root).and_then(|types| {
        std::fs::write(root.join(schema::TARGET), types).map_err(|e| format!("{}: {e}", schema::TARGET))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("schema: {error}");
            ExitCode::from(2)
        }
    }
}

fn report_tidy(root: &std::path::Path) -> ExitCode {
    let findings = match tidy::check(root) {
        Ok(findings) => findings,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::from(2);
        }
    };
    for finding in &findings {
        eprintln!("{finding}");
    }
    println!("tidy: {} rules, {} findings", tidy::RULES.len(), findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
