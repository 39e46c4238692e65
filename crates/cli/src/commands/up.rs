//! `danki up`: Lambda's API, until Ctrl-C.
//!
//! The endpoint listens at once. The world around functions (region, link, host) starts beside it: a first start makes the CA's keys,
//! which takes seconds, and nobody who only creates functions need wait for it.

use super::stack::{Fronts, Stack};
use crate::args::Up;
use crate::exit::{Exit, Failure};
use crate::session::{RunInto, Session};
use crate::terminal;
use danki_dashboard::Dashboard;
use danki_host::HostConfig;
use danki_lab::{Experiment, Setup, World};
use danki_lambda_api::{Config, Endpoint};
use danki_model::environment;
use danki_record::{Recorder, Recording};
use danki_sys::clock;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Without a dashboard nobody reads what is recorded: all facts but one are counted and dropped.
const UNREAD: usize = 1;
/// Facts that may wait for the dashboard's thread, which only puts them away.
const WAITING: usize = 32_768;
/// For a dashboard, counters of busy envs are read this often: six times in a quota period of 20 ms.
const SAMPLES: Duration = Duration::from_millis(3);

/// Serves until a signal comes.
pub fn up(args: &Up) -> Result<Exit, Failure> {
    let began_ns = clock::monotonic_ns();
    if args.state.as_ref().is_some_and(|dir| dir.is_file()) {
        return Err(
            Failure::usage("--state is a file").hint("name a directory; it is made if it is not there")
        );
    }
    let stack = Stack::read(args)?;
    let session = Session::start_at_once()?;
    let setup = session.setup(RunInto { dir: session.dir().join("run"), force: true, keep_raw: false });
    session.block_on(serve(
        args,
        setup,
        session.dir().join("account"),
        stack,
        session.interruption(),
        began_ns,
    ))
}

async fn serve(
    args: &Up,
    setup: Setup,
    scratch: PathBuf,
    stack: Option<Stack>,
    mut interrupted: watch::Receiver<bool>,
    began_ns: u64,
) -> Result<Exit, Failure> {
    let (slot, host) = watch::channel(None);
    let config = Config {
        region: args.region.clone(),
        time_scale: args.time_scale,
        verify_signatures: args.verify_signatures,
        keep: args.state.is_some(),
        dir: args.state.clone().unwrap_or(scratch),
    };
    let dir = config.dir.clone();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let mut endpoint = Endpoint::start(address, config, host).map_err(unusable)?;
    greet(args, endpoint.address(), began_ns);
    let (recorder, recording) = Recorder::bounded(if args.no_ui { UNREAD } else { WAITING });
    let (dashboard, _unread) = match args.no_ui {
        true => (None, Some(recording)),
        false => (Some(dashboard(args, recording)), None),
    };
    dashboard.clone().into_iter().for_each(|dashboard| endpoint.show(dashboard));
    let mut experiment = Experiment::account(Some(&args.region), args.time_scale, args.seed);
    stack.iter().for_each(|stack| stack.seed(&mut experiment));
    let world = World::start_with(&experiment, &setup, &recorder, None, |host| adjust(args, host)).await?;
    slot.send_replace(Some(Arc::clone(&world.host)));
    dashboard.iter().for_each(|dashboard| dashboard.follow_connections(world.open_connections()));
    terminal::note(&format!("functions can run ({} ms)", since_ms(began_ns)));
    let fronts = Fronts::listen(args, &mut endpoint, &world, &dir)?;
    let deployed = async {
        match &stack {
            Some(stack) => stack.deploy(&endpoint, &fronts).await,
            None => Ok(()),
        }
    };
    let ended = tokio::select! {
        Err(failure) = deployed => Err(failure),
        died = world.region_died() => Err(died.into()),
        _ = interrupted.wait_for(|interrupted| *interrupted) => Ok(Exit::Fine),
    };
    slot.send_replace(None);
    let waiting = endpoint.events_waiting();
    if waiting > 0 {
        terminal::note(&format!("{waiting} asynchronous events had not ended and are lost"));
    }
    endpoint.stop().await;
    world.stop().await?;
    ended
}

fn adjust(args: &Up, host: &mut HostConfig) {
    host.account_limit = args.account_limit;
    host.freezer = !args.no_freeze;
    // Counters at the ends of an invocation suffice where no waterfall is made.
    host.cpu_sample_interval = if args.no_ui { Duration::ZERO } else { SAMPLES };
    if let Some(seconds) = args.pc_delay {
        host.pc_settle = Duration::from_secs_f64(seconds);
    }
}

fn dashboard(args: &Up, recording: Recording) -> Dashboard {
    let setup = danki_dashboard::Setup {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        region: args.region.clone(),
        freezes: !args.no_freeze,
    };
    Dashboard::start(setup, recording)
}

/// The first line is for programs: the address is its last word.
fn greet(args: &Up, address: SocketAddr, began_ns: u64) {
    terminal::print(&format!("danki serves Lambda at http://{address}\n"));
    terminal::note(&format!(
        "listening after {} ms; region {}; export AWS_ENDPOINT_URL=http://{address} AWS_ACCESS_KEY_ID={} \
         AWS_SECRET_ACCESS_KEY={} AWS_DEFAULT_REGION={}",
        since_ms(began_ns),
        args.region,
        environment::ACCESS_KEY_ID,
        environment::SECRET_ACCESS_KEY,
        args.region,
    ));
    if !args.no_ui {
        terminal::note(&format!("dashboard http://{address}{}", danki_dashboard::PATH));
    }
}

fn since_ms(began_ns: u64) -> u64 {
    clock::monotonic_ns().saturating_sub(began_ns) / 1_000_000
}

pub(super) fn unusable(error: danki_lambda_api::Error) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        danki_lambda_api::Error::Listen { .. } => failure.hint("--port 0 takes a free port"),
        _ => failure,
    }
}
