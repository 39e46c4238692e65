//! What each subcommand does.

mod advice;
mod bench;
mod calibrate;
mod check;
mod compare;
mod db_proxy;
mod doctor;
mod endpoint;
mod import;
mod invoke;
mod layer;
mod logs;
mod push;
mod report;
mod revision;
mod run;
mod runs;
mod stack;
mod trace;
mod tune;
mod up;
mod validate;

pub use bench::bench;
pub use calibrate::calibrate;
pub use db_proxy::db_proxy;
pub use doctor::{clean, doctor};
pub use invoke::invoke;
pub use layer::build as build_layer;
pub use logs::logs;
pub use run::run;
pub use trace::trace;
pub use up::up;
pub use validate::validate;

use crate::args::{Args, FunctionOptions, RunsCommand};
use crate::exit::{Exit, Failure};
use crate::terminal;
use clap::CommandFactory;
use danki_lab::{FunctionChoice, Payload};
use std::io::Read;
use std::path::Path;

/// Prints a completion script.
pub fn completions(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "danki", &mut script);
    terminal::print_bytes(&script);
    Ok(Exit::Fine)
}

/// What is about finished runs.
pub fn about_runs(about: &RunsCommand) -> Result<Exit, Failure> {
    match about {
        RunsCommand::Runs { dir } => runs::list(dir),
        RunsCommand::Report(args) => report::report(args),
        RunsCommand::Compare(args) => compare::compare(args),
        RunsCommand::Check(args) => check::check(args),
        RunsCommand::Tune(args) => tune::tune(args),
        RunsCommand::Import(args) => import::import(args),
    }
}

/// A function without an experiment file.
fn choice(
    dir: &Path,
    options: &FunctionOptions,
    memory_mb: &[u32],
    count: u32,
) -> Result<FunctionChoice, Failure> {
    let event = payload(options.event.as_deref())?;
    Ok(FunctionChoice {
        dir: dir.to_path_buf(),
        memory_mb: memory_mb.to_vec(),
        handler: options.handler.clone(),
        runtime: options.runtime.clone(),
        timeout_s: options.timeout,
        environment: options.env.iter().cloned().collect(),
        event,
        count,
        forced: None,
    })
}

/// An event in a file, or in stdin if that is `-`.
fn payload(path: Option<&Path>) -> Result<Option<Payload>, Failure> {
    Ok(match path {
        None => None,
        Some(path) if path == Path::new("-") => Some(event_from_stdin()?),
        Some(path) => Some(Payload::read(path)?),
    })
}

fn event_from_stdin() -> Result<Payload, Failure> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).map_err(|e| Failure::usage(format!("stdin: {e}")))?;
    Ok(Payload::parse(&text, "stdin")?)
}
