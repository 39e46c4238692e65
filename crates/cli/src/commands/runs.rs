//! `danki runs`, and how a run is named.

use crate::exit::{Exit, Failure};
use crate::terminal;
use danki_report::{Align, Table, number_or_dash};
use danki_runview::Run;
use std::fs;
use std::path::{Path, PathBuf};

/// Runs that are listed; the newest.
const LISTED: usize = 30;

/// Lists runs, newest first.
pub fn list(dir: &Path) -> Result<Exit, Failure> {
    let style = terminal::style();
    let mut table = Table::new(&[("run", Align::Left), ("experiment", Align::Left)]);
    ["variants", "n", "problems", "fastest p50"].iter().for_each(|title| table.column(title, Align::Right));
    table.column("", Align::Left);
    let all = run_dirs(dir);
    for path in all.iter().rev().take(LISTED) {
        let Ok((manifest, summary)) = Run::read_head(path) else { continue };
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let fastest = summary.variants.iter().filter_map(|v| v.duration_ms.p50).reduce(f64::min);
        let problems = summary.findings.iter().filter(|f| f.level == danki_record::Level::Problem).count();
        let n: u64 = summary.variants.iter().map(|v| v.invocations).sum();
        let end = if manifest.complete { "" } else { "interrupted" };
        table.row([
            name,
            manifest.name,
            summary.variants.len().to_string(),
            n.to_string(),
            problems.to_string(),
            number_or_dash(fastest),
            end.to_owned(),
        ]);
    }
    if all.is_empty() {
        return Err(Failure::usage(format!("no runs in {}", dir.display())).hint("`danki bench` makes one"));
    }
    terminal::print(&table.render(&style));
    Ok(Exit::Fine)
}

/// Directories with a manifest, by name: names begin with the time.
fn run_dirs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let mut dirs: Vec<PathBuf> = entries.filter(|p| p.join("manifest.json").is_file()).collect();
    dirs.sort();
    dirs
}

/// A run directory: as it is, by the end of its name, or the last one of `runs/`.
pub fn find(name: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(name);
    if path.join("manifest.json").is_file() {
        return Ok(path.to_path_buf());
    }
    let all = run_dirs(Path::new("runs"));
    let newest_that = |fits: &dyn Fn(&str) -> bool| {
        let name = |p: &PathBuf| p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        all.iter().rev().find(|p| fits(&name(p))).cloned()
    };
    let found = if name == "last" { newest_that(&|_| true) } else { newest_that(&|n| n.ends_with(name)) };
    found.ok_or_else(|| Failure::usage(format!("there is no run {name}")).hint("`danki runs` lists them"))
}
