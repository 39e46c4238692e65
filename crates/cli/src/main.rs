//! `danki`: the only place that reads arguments and environment, prints to the terminal and ends the process.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "this crate owns arguments, environment, terminal and exit code"
)]

mod args;
mod commands;
mod exit;
mod paths;
mod progress;
mod session;
mod terminal;

use args::{Args, Command, Layer};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let ended = match args.command {
        Command::Bench(bench) => commands::bench(&bench),
        Command::Run(run) => commands::run(&run),
        Command::Up(up) => commands::up(&up),
        Command::Invoke(invoke) => commands::invoke(&invoke),
        Command::Logs(logs) => commands::logs(&logs),
        Command::Runs(about) => commands::about_runs(&about),
        Command::Doctor(doctor) => commands::doctor(&doctor),
        Command::Calibrate(calibrate) => commands::calibrate(&calibrate),
        Command::Validate(validate) => commands::validate(&validate),
        Command::Trace(trace) => commands::trace(&trace),
        Command::Layer(Layer::Build(build)) => commands::build_layer(&build),
        Command::DbProxy(proxy) => commands::db_proxy(&proxy),
        Command::Clean => commands::clean(),
        Command::Completions { shell } => commands::completions(shell),
    };
    match ended {
        Ok(code) => code.into(),
        Err(failure) => {
            terminal::failure(&failure);
            failure.exit.into()
        }
    }
}
