//! `danki report`: a finished run as a page, as traces, or one invocation in the terminal.

use super::runs;
use crate::args::Report;
use crate::exit::{Exit, Failure};
use crate::terminal;
use danki_runview::{Run, build, draw, html, perfetto, speedscope};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes the page, and what else is asked for.
pub fn report(args: &Report) -> Result<Exit, Failure> {
    let dir = runs::find(&args.run)?;
    let mut run = Run::read(&dir)?;
    if args.again {
        run.explain_again();
    }
    if let Some(id) = &args.explain {
        return explain(&run, id);
    }
    let path = dir.join("report.html");
    write(&path, &html(&build(&run)))?;
    terminal::print(&format!("{}\n", path.display()));
    let json = |value| serde_json::to_string(&value).expect("plain data with string keys");
    let traces = [
        (args.perfetto, "trace.perfetto.json", perfetto as fn(&Run) -> serde_json::Value),
        (args.speedscope, "profile.speedscope.json", speedscope as fn(&Run) -> serde_json::Value),
    ];
    for (_, name, make) in traces.into_iter().filter(|(wanted, ..)| *wanted) {
        let path = dir.join(name);
        write(&path, &json(make(&run)))?;
        terminal::print(&format!("{}\n", path.display()));
    }
    if args.open {
        open(&path)?;
    }
    Ok(Exit::Fine)
}

fn explain(run: &Run, id: &str) -> Result<Exit, Failure> {
    let drawn = draw(run, id, terminal::style().width);
    let text = drawn.ok_or_else(|| {
        Failure::usage(format!("no invocation, or more than one, begins with {id:?}"))
            .hint("invocations.csv of the run has all ids")
    })?;
    terminal::print(&text);
    Ok(Exit::Fine)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| Failure::machine(format!("cannot write {}: {e}", path.display())))
}

fn open(path: &Path) -> Result<(), Failure> {
    let mut opener = Command::new("xdg-open");
    opener.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.status().map(|_| ()).map_err(|e| {
        Failure::machine(format!("cannot run xdg-open: {e}"))
            .hint(format!("open {} in a browser", path.display()))
    })
}
