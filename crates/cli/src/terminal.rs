//! Printing.

use crate::exit::Failure;
use danki_report::Style;
use std::env;
use std::io::{self, IsTerminal, Write};

/// Colours and width of stdout.
pub fn style() -> Style {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return Style::default();
    }
    let width =
        rustix::termios::tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col)).filter(|w| *w > 0);
    Style { color: colors(), width: width.unwrap_or(Style::default().width).max(60) }
}

/// <https://no-color.org>: any value but the empty one switches colours off.
fn colors() -> bool {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// Prints to stdout. A reader that has gone is not an error.
pub fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).ok();
}

/// Prints bytes to stdout as they are.
pub fn print_bytes(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).ok();
}

/// Prints a line to stderr.
pub fn note(line: &str) {
    writeln!(io::stderr().lock(), "{line}").ok();
}

/// What failed, and the next step.
pub fn failure(failure: &Failure) {
    note(&format!("error: {}", failure.what));
    if let Some(hint) = &failure.hint {
        note(&format!("hint: {hint}"));
    }
}
