//! `danki db-proxy`: poolers from a configuration file, until a signal. SIGHUP reads the file again.

use crate::args::DbProxy;
use crate::exit::{Exit, Failure};
use crate::terminal;
use danki_db_proxy::config::File;
use danki_db_proxy::{Event, Running, start};
use danki_sys::clock;
use std::path::Path;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until SIGINT or SIGTERM; transactions may end within each proxy's drain timeout.
pub fn db_proxy(args: &DbProxy) -> Result<Exit, Failure> {
    let file = read(&args.config)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::machine(format!("no runtime for signals: {error}")))?;
    runtime.block_on(serve(args, file))
}

async fn serve(args: &DbProxy, file: File) -> Result<Exit, Failure> {
    let broken = |error| Failure::machine(format!("signals cannot be waited for: {error}"));
    let mut hangup = signal(SignalKind::hangup()).map_err(broken)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(broken)?;
    let mut running = Vec::new();
    for config in file.proxy {
        let (name, verbose) = (config.name.clone(), args.verbose);
        let label = name.clone();
        let proxy = start(config, Box::new(move |event| log(&label, verbose, event)))?;
        terminal::note(&format!("{name}: listening on {}", proxy.address()));
        if let Some(address) = proxy.metrics_address() {
            terminal::note(&format!("{name}: metrics on http://{address}/"));
        }
        running.push((name, proxy));
    }
    loop {
        tokio::select! {
            _ = hangup.recv() => reload(&args.config, &running),
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        }
    }
    // All at once, then one by one.
    running.iter().for_each(|(_, proxy)| proxy.stop());
    running.into_iter().for_each(|(_, proxy)| proxy.join());
    Ok(Exit::Fine)
}

fn read(path: &Path) -> Result<File, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    Ok(File::parse(&text)?)
}

/// A file that is wrong changes nothing.
fn reload(path: &Path, running: &[(String, Running)]) {
    match read(path) {
        Ok(file) => {
            for config in file.proxy {
                if let Some((_, proxy)) = running.iter().find(|(name, _)| *name == config.name) {
                    proxy.reload(config);
                }
            }
        }
        Err(failure) => terminal::failure(&failure),
    }
}

fn log(name: &str, verbose: bool, event: &Event<'_>) {
    if (verbose && !event.frequent()) || !event.detailed() {
        let seconds = clock::epoch_ns() / 1_000_000_000;
        terminal::note(&format!("{seconds} [{}] [proxyEndpoint={name}] {event}", event.level()));
    }
}

impl From<danki_db_proxy::Error> for Failure {
    fn from(error: danki_db_proxy::Error) -> Failure {
        use danki_db_proxy::Error;
        let what = error.to_string();
        match error {
            Error::Config(_) => Failure::usage(what).hint("docs/db-proxy.md lists the keys and their ranges"),
            Error::Address { .. } => {
                Failure::usage(what).hint("an address is host:port, and nobody else may listen there")
            }
            Error::Tls { .. } => Failure::usage(what).hint("certificates, keys and CAs are PEM files"),
            Error::System { .. } => Failure::machine(what).hint("`ulimit -n` may be too low"),
        }
    }
}
