//! `danki compare`: two runs, or two functions run now.

use super::revision::Source;
use super::{choice, runs};
use crate::args::Compare;
use crate::exit::{Exit, Failure};
use crate::session::{RunInto, Session, Speed};
use crate::{progress, terminal};
use danki_judge::{Measure, Row, compare_runs};
use danki_lab::{Experiment, Options, new_run_dir, single};
use danki_report::{Align, Table, number};
use danki_runview::Run;
use danki_stats::Over;
use serde_json::json;
use std::path::Path;

/// Compares, and prints verdicts.
pub fn compare(args: &Compare) -> Result<Exit, Failure> {
    let (of_a, of_b) = (Source::find(&args.a)?, Source::find(&args.b)?);
    let (a, b) = (of_a.dir(), of_b.dir());
    let is_function = |dir: &Path| dir.is_dir() && !dir.join("manifest.json").is_file();
    let rows = if is_function(a) && is_function(b) {
        let run = run_both(args, a, b)?;
        let side = |name: &str| {
            let mut side = run.clone();
            side.summary.variants.retain(|v| v.name == name);
            side
        };
        compare_runs(&side("a"), &side("b"))
    } else {
        let read = |name: &str| Ok::<_, Failure>(Run::read(&runs::find(name)?)?);
        compare_runs(&read(&args.a)?, &read(&args.b)?)
    };
    if rows.is_empty() {
        return Err(Failure::usage("the two runs have no variant in common".to_owned()));
    }
    terminal::print(&if args.json { as_json(&rows) } else { as_table(&rows) });
    Ok(Exit::Fine)
}

/// One run with both functions, interleaved, each with its own envs in every repetition.
fn run_both(args: &Compare, a: &Path, b: &Path) -> Result<Run, Failure> {
    let plan = |options: &Options| -> Result<Experiment, Failure> {
        let one = |dir: &Path| {
            single(&choice(dir, &args.function, &[args.memory], args.count)?, options).map_err(Failure::from)
        };
        let (mut both, mut other) = (one(a)?, one(b)?);
        both.variants.append(&mut other.variants);
        both.variants[0].name = "a".to_owned();
        both.variants[1].name = "b".to_owned();
        both.name = "compare".to_owned();
        both.description = format!("{} against {}", args.b, args.a);
        both.repetitions = args.envs;
        Ok(both)
    };
    plan(&Options::default())?;
    let session = Session::start(Speed::Once)?;
    let experiment = plan(&Options { versions: session.interpreters.versions, ..Options::default() })?;
    let dir = new_run_dir(Path::new("runs"), &experiment.name);
    let into = RunInto { dir: dir.clone(), force: false, keep_raw: false };
    session.run(&experiment, into, progress::watcher(&experiment.name))?;
    danki_runview::write_html(&dir)?;
    terminal::note(&format!("run directory: {}", dir.display()));
    Ok(Run::read(&dir)?)
}

fn as_json(rows: &[Row]) -> String {
    let row = |r: &Row| json!({"variant": r.variant, "measure": r.measure.name(), "answer": r.answer});
    let all: Vec<_> = rows.iter().map(row).collect();
    serde_json::to_string_pretty(&all).expect("plain data with string keys") + "\n"
}

fn as_table(rows: &[Row]) -> String {
    let style = terminal::style();
    let mut table = Table::new(&[("variant", Align::Left), ("measure", Align::Left)]);
    ["A, ms", "B, ms", "B / A", "99 % interval"].iter().for_each(|title| table.column(title, Align::Right));
    table.column("verdict", Align::Left);
    table.column("drawn", Align::Left);
    for r in rows {
        let mut cells = vec![r.variant.clone(), r.measure.name().to_owned()];
        match &r.answer {
            Some(c) => {
                cells.extend([number(c.a), number(c.b), format!("{:.3}", c.ratio)]);
                cells.push(format!("{:.3} … {:.3}", c.low, c.high));
                let primary = if r.measure == Measure::DurationP50 { "" } else { " (beside)" };
                cells.push(format!("{}{primary}", c.verdict.words()));
                cells
                    .push(if c.over == Over::Envs { "envs" } else { "invocations only: one env" }.to_owned());
            }
            None => cells.extend(["–", "–", "–", "–", "no values"].map(str::to_owned)),
        }
        table.row(cells);
    }
    table.render(&style)
}
