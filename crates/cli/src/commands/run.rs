//! `danki run`: one invocation.

use super::choice;
use crate::args::Run;
use crate::exit::{Exit, Failure};
use crate::session::{RunInto, Session, Speed};
use crate::{progress, terminal};
use danki_lab::{FunctionChoice, Options, single};
use danki_record::Event;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Invokes once. The response goes to stdout, the log to stderr.
pub fn run(args: &Run) -> Result<Exit, Failure> {
    let choice = choice(&args.dir, &args.function, &[args.memory], 1)?;
    let choice = FunctionChoice { forced: args.state.forced(), ..choice };
    single(&choice, &Options::default())?;
    let session = Session::start(Speed::AsKept)?;
    let experiment =
        single(&choice, &Options { versions: session.interpreters.versions, ..Options::default() })?;
    let dir = match &args.out {
        Some(dir) => RunDir::Kept(dir.clone()),
        // Below the session's directory, which goes even if danki is killed.
        None => RunDir::Temporary(session.dir().join("run")),
    };
    let into = RunInto { dir: dir.path().to_path_buf(), force: args.force, keep_raw: true };
    let results = session.run(&experiment, into, progress::silent())?;
    print_log(dir.path())?;
    let Some(returned) = results.returned.first() else {
        return Ok(Exit::Interrupted);
    };
    terminal::print_bytes(returned.raw.as_deref().unwrap_or_default());
    terminal::print("\n");
    Ok(if returned.function_error.is_some() { Exit::Function } else { Exit::Fine })
}

/// Where the facts of the invocation go.
enum RunDir {
    Kept(PathBuf),
    Temporary(PathBuf),
}

impl RunDir {
    fn path(&self) -> &Path {
        match self {
            RunDir::Kept(path) | RunDir::Temporary(path) => path,
        }
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if let RunDir::Temporary(path) = self {
            fs::remove_dir_all(path).ok();
        }
    }
}

fn print_log(dir: &Path) -> Result<(), Failure> {
    let path = dir.join("events.jsonl");
    let unreadable = |e: std::io::Error| Failure::machine(format!("cannot read {}: {e}", path.display()));
    for line in BufReader::new(File::open(&path).map_err(unreadable)?).lines() {
        match serde_json::from_str(&line.map_err(unreadable)?) {
            Ok(Event::Log(log)) => terminal::note(&log.line),
            Ok(Event::Caveat { text }) => terminal::note(&format!("caveat: {text}")),
            _ => {}
        }
    }
    Ok(())
}
