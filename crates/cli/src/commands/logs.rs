//! `danki logs`: what a function of a running `danki up` wrote.

use super::endpoint;
use crate::args::Logs;
use crate::exit::{Exit, Failure};
use crate::terminal;
use serde_json::Value;
use std::time::Duration;

/// `danki up` answers a waiting request after 20 s at the latest.
const PATIENCE: Duration = Duration::from_secs(40);

/// Prints the lines there are; with `--follow`, those to come too.
pub fn logs(args: &Logs) -> Result<Exit, Failure> {
    let mut after = 0;
    loop {
        let body = ask(args, after)?;
        let lines: Vec<Value> = body.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        for line in &lines {
            after = line["id"].as_u64().unwrap_or(after);
            let time = danki_model::time::iso(line["at_ms"].as_u64().unwrap_or(0));
            terminal::print(&format!("{time} {}\n", line["text"].as_str().unwrap_or_default()));
        }
        if lines.is_empty() && !args.follow {
            return Ok(Exit::Fine);
        }
    }
}

fn ask(args: &Logs, after: u64) -> Result<String, Failure> {
    let name = endpoint::checked_name(&args.function)?;
    let wait = if args.follow { "&wait=1" } else { "" };
    let request = format!("GET /_danki/logs/{name}?after={after}{wait}");
    let answer = endpoint::ask(args.port, &request, "", &[], PATIENCE)?;
    Ok(String::from_utf8_lossy(&answer.body).into_owned())
}
