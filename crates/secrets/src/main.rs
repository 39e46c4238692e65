//! `danki-secrets`: the extension as a process. Its settings are environment variables, its words go to stdout, from where Lambda takes
//! them to the function's log.
#![expect(
    clippy::disallowed_methods,
    reason = "a program of its own: nobody else reads its environment and arguments"
)]

use danki_secrets::log::{Level, Log};
use danki_secrets::settings::Settings;
use danki_secrets::{extension, run};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let sink = Arc::new(|line: &str| {
        // Nobody is left to tell if this fails.
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    });
    // The platform insists that an extension registers under its file's name.
    let file = std::env::args_os().next().map(std::path::PathBuf::from);
    let name = file.as_deref().and_then(|file| file.file_name()?.to_str()).unwrap_or(extension::NAME);
    let settings = match Settings::read(&|name| std::env::var_os(name)?.into_string().ok()) {
        Ok(settings) => settings,
        Err(error) => {
            Log::new(Level::Error, sink).line(Level::Error, error);
            return ExitCode::from(2);
        }
    };
    let log = Log::new(settings.level, sink);
    match run(&settings, name, &log, |_port| {}) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
