//! `danki check`: a run against a budget.

use super::runs;
use crate::args::Check as Args;
use crate::exit::{Exit, Failure};
use crate::terminal;
use danki_judge::{Budget, Check, Outcome, check as judge, junit, markdown};
use danki_report::number_or_dash;
use danki_runview::Run;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Prints a list of ✓ and ✗.
pub fn check(args: &Args) -> Result<Exit, Failure> {
    let budget = read(&args.budget)?;
    let run = Run::read(&runs::find(&args.run)?)?;
    let baseline = match args.baseline.as_ref().or(budget.baseline.as_ref()) {
        Some(name) => Some(Run::read(&runs::find(name)?)?),
        None => None,
    };
    let checks = judge(&run, &budget, baseline.as_ref());
    if checks.is_empty() {
        let what = format!("no limit of {} is about a variant of this run", args.budget.display());
        return Err(Failure::usage(what).hint("[budget] is for all variants, [variant.NAME] for one"));
    }
    print(&checks);
    let name = &run.manifest.name;
    if let Some(path) = &args.junit {
        fs::write(path, junit(name, &checks)).map_err(|e| unwritable(path, &e))?;
    }
    if let Some(path) = &args.markdown {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut f| f.write_all(markdown(name, &checks).as_bytes()))
            .map_err(|e| unwritable(path, &e))?;
    }
    Ok(if checks.iter().all(|c| c.outcome == Outcome::Kept) { Exit::Fine } else { Exit::Missed })
}

fn read(path: &Path) -> Result<Budget, Failure> {
    let text = fs::read_to_string(path).map_err(|e| {
        Failure::usage(format!("cannot read {}: {e}", path.display()))
            .hint("a budget is a TOML file; docs/budget.md has one to begin with")
    })?;
    Budget::parse(&text).map_err(|e| {
        Failure::usage(format!("{}: {e}", path.display())).hint("docs/budget.md lists the limits")
    })
}

fn print(checks: &[Check]) {
    let style = terminal::style();
    for c in checks {
        let (mark, relation) = match c.outcome {
            Outcome::Kept => (style.good("✓"), "≤"),
            Outcome::Missed => (style.bad("✗"), ">"),
            Outcome::Unproven => (style.bad("?"), "not proven to be ≤"),
        };
        let note = if c.note.is_empty() { String::new() } else { format!("  ({})", c.note) };
        let measured = number_or_dash(c.measured);
        terminal::print(&format!(
            "{mark} {}: {} {measured} {relation} {}{note}\n",
            c.variant, c.name, c.limit
        ));
    }
    let count = |outcome: Outcome| checks.iter().filter(|c| c.outcome == outcome).count();
    let unproven = match count(Outcome::Unproven) {
        0 => String::new(),
        n => format!(", {n} not proven: too few data to tell, which counts as missed"),
    };
    let (kept, missed) = (count(Outcome::Kept), count(Outcome::Missed));
    terminal::print(&format!("{kept} limits kept, {missed} missed{unproven}\n"));
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::machine(format!("cannot write {}: {error}", path.display()))
}
