//! What the link's thread does when it is told to.

use crate::Error;
use crate::handle::{Command, Snapshot};
use crate::pcap::Capture;
use crate::worker::Worker;
use danki_model::EnvId;
use danki_sys::clock;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

/// Open connections that are told at once: the link's thread has little time.
const OPEN: usize = 1_024;

impl Worker {
    /// Does what was asked; false: stop.
    pub(crate) fn obey(&mut self) -> bool {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        loop {
            match self.commands.try_recv() {
                Ok(Command::Attach { env, address, tun, ack }) => ack.send(self.attach(env, address, tun)),
                Ok(Command::Detach { env, ack }) => ack.send(self.detach(env)),
                Ok(Command::Hold { env, ack }) => {
                    self.hold(env);
                    ack.send(());
                }
                Ok(Command::Release { env, after, ack }) => ack.send(self.release(env, after)),
                Ok(Command::Stats { ack }) => ack.send(self.snapshot()),
                Ok(Command::Open { ack }) => ack.send(self.ledger.newest(OPEN)),
                Ok(Command::Stop { ack }) => {
                    self.stopping = Some(ack);
                    return false;
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn attach(&mut self, env: EnvId, address: Ipv4Addr, tun: OwnedFd) -> Result<(), Error> {
        let port = self.router.attach(env, address)?;
        if let Err(error) = self.poller.add_env(port.0, tun.as_fd()) {
            self.router.detach(env);
            return Err(error);
        }
        self.tuns.insert(port, tun);
        Ok(())
    }

    /// The TUN is given back, to be closed by another thread: closing one can take 31 ms.
    fn detach(&mut self, env: EnvId) -> Option<OwnedFd> {
        let port = self.router.port(env)?;
        if !self.router.is_held(port) {
            self.drain_env(port);
        }
        let (_, dropped) = self.router.detach(env)?;
        self.stats.dropped_bound += dropped as u64;
        self.ledger.end_env(env, clock::monotonic_ns(), &mut self.events);
        self.waiting.remove(&port);
        let tun = self.tuns.remove(&port)?;
        self.poller.remove(tun.as_fd());
        Some(tun)
    }

    /// What the env has sent by now is on its way; after that nothing passes its edge but what `held` lets pass.
    fn hold(&mut self, env: EnvId) {
        let Some(port) = self.router.port(env).filter(|port| !self.router.is_held(*port)) else { return };
        self.drain_env(port);
        self.router.hold(port);
    }

    /// How many packets had waited for it and are delivered.
    fn release(&mut self, env: EnvId, after: Duration) -> usize {
        let Some(port) = self.router.port(env).filter(|port| self.router.is_held(*port)) else { return 0 };
        let before = self.stats.held;
        let now_ns = clock::monotonic_ns();
        self.router.release_at(port, now_ns, now_ns + after.as_nanos() as u64);
        while !self.deliver() {}
        for data in self.waiting.remove(&port).into_iter().flatten() {
            self.take_up(port, &data);
        }
        (self.stats.held - before) as usize
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut stats = self.stats.clone();
        stats.connections = self.ledger.opened();
        stats.connections_evicted = self.ledger.evicted();
        stats.pcap_dropped = self.capture.as_ref().map_or(0, Capture::dropped);
        Snapshot { stats, lateness: self.lateness.clone() }
    }
}
