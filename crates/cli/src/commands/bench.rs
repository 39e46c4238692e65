//! `danki bench`.

use super::choice;
use crate::args::{Bench, RunOptions};
use crate::exit::{Exit, Failure};
use crate::session::{RunInto, Session, Speed};
use crate::{paths, progress, terminal};
use danki_lab::{Experiment, Options, Results, Versions, nearest, new_run_dir, single};
use std::path::{Path, PathBuf};

/// Runs an experiment or a function, and reports.
pub fn bench(args: &Bench) -> Result<Exit, Failure> {
    // What is wrong with the input is said before anything is forked.
    let early = options(&args.run, Versions::default());
    let asked = experiment(args, &early)?;
    let session = Session::start(Speed::for_run(&asked))?;
    let experiment = experiment(args, &options(&args.run, session.interpreters.versions))?;
    let results = run(&session, &experiment, &args.run)?;
    show(&results, args.run.json);
    page(&results, args.run.json);
    if args.verify_advice && !session.interrupted() {
        super::advice::verify(&session, &experiment, &results, &args.run)?;
    }
    Ok(verdict(&session, &results))
}

/// Runs an experiment as the command line wants it.
pub fn run(session: &Session, experiment: &Experiment, options: &RunOptions) -> Result<Results, Failure> {
    let dir = options.out.clone().unwrap_or_else(|| new_run_dir(Path::new("runs"), &experiment.name));
    let into = RunInto { dir, force: options.force, keep_raw: false };
    session.run(experiment, into, progress::watcher(&experiment.name))
}

/// The command line's word on an experiment.
pub fn options(run: &RunOptions, versions: Versions) -> Options {
    let cpu_model = run.cpu_model.map(Into::into);
    Options { quick: run.quick, seed: run.seed, time_scale: run.time_scale, cpu_model, versions }
}

fn show(results: &Results, json: bool) {
    if json {
        let summary = serde_json::to_string_pretty(&results.summary).expect("plain data with string keys");
        terminal::print(&format!("{summary}\n"));
    } else {
        terminal::print(&danki_report::text(results, &terminal::style()));
    }
}

/// Writes report.html. A page that cannot be written does not undo the run.
fn page(results: &Results, quiet: bool) {
    match danki_runview::write_html(&results.dir) {
        Ok(path) if !quiet => terminal::print(&format!("report: {}\n", path.display())),
        Ok(_) => {}
        Err(error) => terminal::note(&format!("warning: {error}")),
    }
}

fn verdict(session: &Session, results: &Results) -> Exit {
    let failed = |v: &danki_record::VariantSummary| v.invocations > 0 && v.errors == v.invocations;
    if session.interrupted() {
        Exit::Interrupted
    } else if results.summary.variants.iter().any(failed) {
        Exit::Function
    } else if !results.all_within() {
        Exit::Missed
    } else {
        Exit::Fine
    }
}

fn experiment(args: &Bench, options: &Options) -> Result<Experiment, Failure> {
    if args.target.is_dir() {
        return Ok(single(&choice(&args.target, &args.function, &args.memory, args.count)?, options)?);
    }
    let flag = args.function.given().or((!args.memory.is_empty()).then_some("--memory"));
    if let Some(flag) = flag {
        let what = format!("{flag} is for a function's directory, and {} is none", args.target.display());
        return Err(Failure::usage(what).hint("an experiment file says this in [function] or [[variant]]"));
    }
    Ok(Experiment::read(&find(&args.target)?, options)?)
}

/// A file as it is, or the name of an experiment.
pub fn find(target: &Path) -> Result<PathBuf, Failure> {
    if target.is_file() {
        return Ok(target.to_path_buf());
    }
    let is_name = target.components().count() == 1;
    if let Some(path) = paths::experiment(target).filter(|_| is_name) {
        return Ok(path);
    }
    let what = format!("{} is neither an experiment nor a function's directory", target.display());
    let names = paths::experiments();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let asked = target.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Err(match nearest(&asked, &known) {
        Some(near) => Failure::usage(what).hint(format!("did you mean {near}?")),
        None if known.is_empty() => Failure::usage(what),
        None => Failure::usage(what).hint(format!("experiments here: {}", known.join(", "))),
    })
}
