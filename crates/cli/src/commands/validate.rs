//! `danki validate`: is this machine's CPU model Lambda's?

use super::bench;
use crate::args::{CpuModel, PublishedTable, RunOptions, Validate};
use crate::exit::{Exit, Failure};
use crate::session::{Session, Speed};
use crate::terminal;
use danki_lab::{Experiment, Results, lattice_checks};
use danki_record::Expectation;
use std::path::Path;

/// T1: shares, means and histograms under the quota. T2: ratios between memory sizes.
const EXPERIMENTS: [(PublishedTable, &str, &str); 2] =
    [(PublishedTable::T1, "t1", LATTICE), (PublishedTable::T2, "t2", "memory-sizes")];
const LATTICE: &str = "throttle-lattice";

/// Runs the experiments and holds them against AWS's figures.
pub fn validate(args: &Validate) -> Result<Exit, Failure> {
    if args.assumptions {
        terminal::print(&danki_lab::assumptions());
        return Ok(Exit::Fine);
    }
    if args.run.cpu_model == Some(CpuModel::Scaled) {
        let what = "validation holds Lambda's own quotas against AWS: --cpu-model scaled changes them";
        return Err(Failure::usage(what).hint("leave --cpu-model out"));
    }
    let chosen = || EXPERIMENTS.into_iter().filter(|(table, ..)| args.only.is_none_or(|only| only == *table));
    let mut experiments = Vec::new();
    let early = bench::options(&args.run, Default::default());
    for (.., name) in chosen() {
        Experiment::read(&bench::find(Path::new(name))?, &early)?;
    }
    let session = Session::start(Speed::Once)?;
    for (_, table, name) in chosen() {
        let options = bench::options(&args.run, session.interpreters.versions);
        let experiment = Experiment::read(&bench::find(Path::new(name))?, &options)?;
        // Each needs a run directory of its own.
        let out = args.run.out.as_ref().map(|out| out.join(table));
        let run = RunOptions { out, force: args.run.force, ..RunOptions::default() };
        experiments.push(bench::run(&session, &experiment, &run)?);
        if session.interrupted() {
            break;
        }
    }
    let checks: Vec<Expectation> = experiments.iter().flat_map(checks).collect();
    show(&experiments, &checks, args.run.json);
    Ok(match () {
        () if session.interrupted() => Exit::Interrupted,
        () if checks.iter().all(|check| check.within) => Exit::Fine,
        () => Exit::Missed,
    })
}

/// T1 has checks of its own, which look at single iterations; others have what their file expects.
fn checks(results: &Results) -> Vec<Expectation> {
    match results.summary.name.as_str() {
        LATTICE => lattice_checks(results),
        _ => results.summary.expect.clone(),
    }
}

fn show(experiments: &[Results], checks: &[Expectation], json: bool) {
    let caveats = experiments.iter().flat_map(|r| &r.summary.caveats);
    if json {
        let caveats: Vec<&String> = caveats.collect();
        let calibration = experiments.first().map(|r| &r.summary.calibration);
        let all = serde_json::json!({ "checks": checks, "calibration": calibration, "caveats": caveats });
        terminal::print(&format!("{all:#}\n"));
        return;
    }
    let style = terminal::style();
    terminal::print(&danki_report::expectations(checks, &style));
    for caveat in caveats {
        terminal::print(&format!("- {}\n", style.fold(caveat, 2)));
    }
    let missed = checks.iter().filter(|check| !check.within).count();
    terminal::print(&format!("\n{} of {} checks hold\n", checks.len() - missed, checks.len()));
}
