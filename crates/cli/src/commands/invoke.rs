//! `danki invoke`: one invocation of a function of a running `danki up`, in a state of its env that can be forced.

use super::{endpoint, payload};
use crate::args::Invoke;
use crate::exit::{Exit, Failure};
use crate::terminal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::time::Duration;

/// A function's longest timeout, and the longest gap that can be forced.
const PATIENCE: Duration = Duration::from_secs(900 + 3_600);

/// The answer goes to stdout, the end of the log to stderr.
pub fn invoke(args: &Invoke) -> Result<Exit, Failure> {
    let name = endpoint::checked_name(&args.function)?;
    let event = payload(args.event.as_deref())?.unwrap_or_default();
    let force = args.force.as_ref().map(|state| format!("X-Danki-Force: {state}\r\n")).unwrap_or_default();
    let path = format!("POST /2015-03-31/functions/{name}/invocations");
    let headers = format!("X-Amz-Log-Type: Tail\r\n{force}");
    let answer = endpoint::ask(args.port, &path, &headers, event.as_str().as_bytes(), PATIENCE)?;
    let log = answer.header("x-amz-log-result").and_then(|log| STANDARD.decode(log).ok());
    String::from_utf8_lossy(&log.unwrap_or_default()).lines().for_each(terminal::note);
    terminal::print_bytes(&answer.body);
    terminal::print("\n");
    Ok(if answer.header("x-amz-function-error").is_some() { Exit::Function } else { Exit::Fine })
}
