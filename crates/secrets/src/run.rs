//! The life of the process: listen, register, fetch what was asked for ahead, serve until SHUTDOWN.

use crate::desk::{Desk, Serving};
use crate::error::Error;
use crate::extension::{Extension, Turn};
use crate::log::{Level, Log};
use crate::pool::{Done, Pool};
use crate::server::{Listeners, Server};
use crate::settings::Settings;
use crate::upstream::Upstream;
use crate::wanted::Service;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// What the other threads tell the one that serves. There are no more of them than things fetched and turns taken.
#[derive(Debug)]
pub enum Event {
    /// A fetch ended.
    Done(Done),
    /// The platform says what comes next.
    Turn(Turn),
    /// The platform cannot be understood.
    Lost(Error),
}

/// Wakes the thread that serves.
#[derive(Clone)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    fn new() -> Result<Bell, Error> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        fd.map(|fd| Bell(Arc::new(fd)))
            .map_err(|error| Error::Kernel { what: "eventfd", error: error.into() })
    }

    /// Rings.
    pub fn ring(&self) {
        // Full means that it rings already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Stops ringing.
    pub fn quiet(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Runs until the platform ends the environment. `bound` learns the port once there is one.
pub fn run(settings: &Settings, name: &str, log: &Log, bound: impl FnOnce(u16)) -> Result<(), Error> {
    for (level, note) in &settings.notes {
        log.line(*level, note);
    }
    let extension = settings.runtime_api.as_deref().map(|api| Extension::register(api, name)).transpose()?;
    log.line(
        Level::Info,
        format_args!(
            "Systems Manager Parameter Store and Secrets Manager Lambda Extension danki-secrets {VERSION}"
        ),
    );
    let served = serve(settings, extension, log, bound);
    if let Err(error) = &served {
        log.line(Level::Error, error);
    }
    served
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn serve(
    settings: &Settings,
    mut extension: Option<Extension>,
    log: &Log,
    bound: impl FnOnce(u16),
) -> Result<(), Error> {
    let listeners = match Listeners::bind(settings.port, settings.unix_socket.as_deref()) {
        Ok(listeners) => listeners,
        Err(error) => {
            if let Some(extension) = &mut extension {
                extension.exit_error("Extension.Listen", &error.to_string());
            }
            return Err(error);
        }
    };
    log.line(Level::Info, format_args!("Serving on port {}", listeners.port()));
    bound(listeners.port());
    let (bell, (events, inbox)) = (Bell::new()?, channel());
    let upstream = Upstream::new(settings);
    let pools = pools(settings, &upstream, &events, &bell);
    let desk = Desk::new(settings.policy.clone(), first_serving(settings, extension.is_some()));
    let mut server = Server::new(
        listeners,
        desk,
        pools,
        Arc::clone(&upstream),
        bell.clone(),
        log.clone(),
        settings.client_patience,
    )?;
    if settings.metrics {
        server.count_for(&settings.function);
    }
    let snapshot = settings.snapshot && extension.is_some();
    if snapshot {
        server.prefetch_at_first_turn(settings.prefetch.clone());
    } else {
        server.prefetch(&settings.prefetch);
    }
    let (go, gate) = sync_channel(1);
    server.when_prefetched(go);
    if let Some(extension) = extension {
        let patience = settings.prefetch_timeout;
        thread::Builder::new()
            .name("lifecycle".to_owned())
            .spawn(move || lifecycle(extension, &upstream, &gate, patience, &events, &bell))
            .map_err(|error| Error::Kernel { what: "thread", error })?;
    }
    server.run(&inbox)
}

fn first_serving(settings: &Settings, is_extension: bool) -> Serving {
    match (is_extension, settings.ready_at_init, settings.snapshot) {
        (false, ..) | (true, true, false) => Serving::Yes,
        (true, true, true) => Serving::WithoutCache,
        (true, false, _) => Serving::NotYet,
    }
}

fn pools(settings: &Settings, upstream: &Arc<Upstream>, events: &Sender<Event>, bell: &Bell) -> [Pool; 2] {
    Service::ALL.map(|service| {
        let patience = match service {
            Service::SecretsManager => settings.secrets_timeout,
            Service::ParameterStore => settings.parameters_timeout,
        };
        Pool::new(
            service,
            Arc::clone(upstream),
            patience,
            settings.max_connections,
            events.clone(),
            bell.clone(),
        )
    })
}

/// The thread that waits for turns. The first `next` ends init, so it comes after the prefetch, or when that takes too long.
fn lifecycle(
    mut extension: Extension,
    upstream: &Upstream,
    gate: &Receiver<()>,
    patience: Duration,
    events: &Sender<Event>,
    bell: &Bell,
) {
    let _ = gate.recv_timeout(patience);
    let mut first = true;
    loop {
        let turn = extension.next_turn();
        if first && matches!(turn, Ok(Turn::Invoke)) {
            first = false;
            // A restored snapshot holds nobody's credentials: the token that functions send is not known before they are fetched. If
            // that fails, the first fetch says why.
            upstream.credentials.renew();
            let _ = upstream.credentials.current();
        }
        let last = !matches!(turn, Ok(Turn::Invoke));
        // Nobody listens only when the process is about to end.
        let _ = events.send(turn.map_or_else(Event::Lost, Event::Turn));
        bell.ring();
        if last {
            return;
        }
    }
}

/// Lets init end, once.
pub type Gate = SyncSender<()>;
/// What the server hears.
pub type Inbox = Receiver<Event>;
