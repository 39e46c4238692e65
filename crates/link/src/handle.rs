//! Starting, commanding and stopping the link from other threads.
//!
//! A command goes through a bounded queue and an eventfd to the link's thread, which answers on a channel of the command's own; all
//! callers wait with a deadline.

use crate::Error;
use crate::config::Config;
use crate::poller::os;
use crate::stats::{Lateness, Stats};
use crate::worker::Worker;
use danki_model::EnvId;
use danki_record::{Connection, Recorder};
use hdrhistogram::Histogram;
use rustix::event::{EventfdFlags, eventfd};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a caller waits for the link's thread.
const DEADLINE: Duration = Duration::from_secs(1);
/// How long the end of a run waits for it: the capture may still have to be written (10 s).
const STOP_DEADLINE: Duration = Duration::from_secs(12);
/// Commands that may wait for the link's thread.
const COMMANDS: usize = 1024;

pub(crate) enum Command {
    Attach { env: EnvId, address: Ipv4Addr, tun: OwnedFd, ack: Ack<Result<(), Error>> },
    Detach { env: EnvId, ack: Ack<Option<OwnedFd>> },
    Hold { env: EnvId, ack: Ack<()> },
    Release { env: EnvId, after: Duration, ack: Ack<usize> },
    Stats { ack: Ack<Snapshot> },
    Open { ack: Ack<Vec<Connection>> },
    Stop { ack: Ack<Snapshot> },
}

/// Where the answer goes.
pub(crate) struct Ack<T>(SyncSender<T>);

impl<T> Ack<T> {
    /// The caller may have given up.
    pub(crate) fn send(self, answer: T) {
        let _ = self.0.try_send(answer);
    }
}

pub(crate) struct Snapshot {
    pub stats: Stats,
    pub lateness: Histogram<u64>,
}

/// A running link.
pub struct Link {
    handle: LinkHandle,
    thread: Option<JoinHandle<()>>,
}

/// Commands a running link; cheap to clone.
#[derive(Clone)]
pub struct LinkHandle {
    commands: SyncSender<Command>,
    wake: Arc<OwnedFd>,
    unconfirmed: Arc<AtomicU64>,
    last: Arc<Mutex<Stats>>,
}

impl Link {
    /// Starts the link's thread on the region's TUN.
    pub fn start(config: Config, region_tun: OwnedFd, recorder: Recorder) -> Result<Link, Error> {
        config.check()?;
        let (commands, receiver) = sync_channel(COMMANDS);
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let wake = Arc::new(eventfd(0, flags).map_err(os("cannot create an eventfd"))?);
        let worker = Worker::new(&config, region_tun, recorder, receiver, Arc::clone(&wake))?;
        let thread = std::thread::Builder::new()
            .name("danki-link".to_owned())
            .spawn(move || worker.run())
            .map_err(|source| Error::Os { what: "cannot start a thread", source })?;
        let (unconfirmed, last) = Default::default();
        Ok(Link { handle: LinkHandle { commands, wake, unconfirmed, last }, thread: Some(thread) })
    }

    /// For those who command it.
    pub fn handle(&self) -> LinkHandle {
        self.handle.clone()
    }

    /// Ends the thread: what is still inside is dropped, open connections are recorded as they are, the capture is completed.
    pub fn stop(mut self) -> Stats {
        self.end();
        self.handle.stats()
    }

    fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if let Ok(snapshot) = self.handle.call(STOP_DEADLINE, |ack| Command::Stop { ack }) {
            self.handle.keep(snapshot);
            let _ = thread.join(); // it only closes its descriptors now
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

impl LinkHandle {
    /// Connects an env, by its address in 10.0.0.0/8 and its TUN.
    pub fn attach(&self, env: EnvId, address: Ipv4Addr, tun: OwnedFd) -> Result<(), Error> {
        self.call(DEADLINE, |ack| Command::Attach { env, address, tun, ack })?
    }

    /// Disconnects an env: its connections are recorded, packets to it are dropped, those it sent travel on, its TUN is closed.
    pub fn detach(&self, env: EnvId) {
        let tun = self.call(DEADLINE, |ack| Command::Detach { env, ack });
        self.confirm(tun.map(drop));
    }

    /// Returns when it is in effect: what the env has sent by now is on its way, and from now on nothing is taken from it or
    /// delivered to it but bare acknowledgments, so that no keep-alive timer ends its connections. All else waits, in order. Holding a held or unknown env changes nothing.
    pub fn hold(&self, env: EnvId) {
        self.confirm(self.call(DEADLINE, |ack| Command::Hold { env, ack }));
    }

    /// Ends a hold. Returns when what has become due meanwhile is delivered: the number of packets.
    pub fn release(&self, env: EnvId) -> usize {
        self.release_after(env, Duration::ZERO)
    }

    /// As [`LinkHandle::release`], but what had waited for the env comes so much later (and is not counted); what it sends, and what
    /// comes to it when nothing had waited, passes at once.
    pub fn release_after(&self, env: EnvId, after: Duration) -> usize {
        let delivered = self.call(DEADLINE, |ack| Command::Release { env, after, ack });
        let count = delivered.as_ref().copied().unwrap_or(0);
        self.confirm(delivered.map(drop));
        count
    }

    /// Connections that are open, the newest 1,024 of them, without their pauses: those that have ended are recorded. None if the link
    /// does not answer.
    pub fn open(&self) -> Vec<Connection> {
        self.call(DEADLINE, |ack| Command::Open { ack }).unwrap_or_default()
    }

    /// Figures so far; the last known ones if the link has stopped.
    pub fn stats(&self) -> Stats {
        if let Ok(snapshot) = self.call(DEADLINE, |ack| Command::Stats { ack }) {
            self.keep(snapshot);
        }
        let mut stats = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        stats.unconfirmed = self.unconfirmed.load(Ordering::Relaxed);
        stats
    }

    fn keep(&self, snapshot: Snapshot) {
        let stats = Stats { lateness: Lateness::new(&snapshot.lateness), ..snapshot.stats };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }

    fn confirm(&self, outcome: Result<(), Error>) {
        if outcome.is_err() {
            self.unconfirmed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn call<T>(&self, within: Duration, command: impl FnOnce(Ack<T>) -> Command) -> Result<T, Error> {
        let (sender, answer) = sync_channel(1);
        self.commands.try_send(command(Ack(sender))).map_err(|refused| match refused {
            TrySendError::Full(_) => Error::NoAnswer(0),
            TrySendError::Disconnected(_) => Error::Stopped,
        })?;
        // Cannot fail on our own eventfd, short of 2^64 wake-ups that nobody read.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        answer.recv_timeout(within).map_err(|error| match error {
            RecvTimeoutError::Timeout => Error::NoAnswer(within.as_millis()),
            RecvTimeoutError::Disconnected => Error::Stopped,
        })
    }
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
