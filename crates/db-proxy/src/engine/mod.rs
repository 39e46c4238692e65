//! One event loop: a listener, its clients, the connections to its database, and the pool between them.
//!
//! A single thread on epoll, level-triggered, one read per wake-up: what a small query costs is six system calls, and no task is
//! woken to wake another. A generic async runtime costs twice as much per query here.

mod clients;
mod lend;
mod open;
mod servers;
mod target;

use crate::conduit::Conduit;
use crate::config::Config;
use crate::event::{Event, Sink};
use crate::metrics::Metrics;
use crate::protocol::Protocol;
use crate::running::Resolve;
use crate::slab::Slab;
use crate::tls::Tls;
use crate::turn::Turn;
use crate::{Error, pool_limits};
use danki_db_pool::{Act, ClientId, ConnId, Key, Pool};
use danki_sys::clock::monotonic_ns;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::Shutdown;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use target::Place;

/// Bytes read at once.
const SCRATCH: usize = 64 * 1024;
/// Connections taken per wake-up, so that a flood of them does not keep others waiting.
const ACCEPTS: usize = 64;
/// How often idle clients and the pool are looked at.
const HOUSEKEEPING_NS: u64 = 1_000_000_000;
/// How often the database is asked how it is.
const PROBE_NS: u64 = 60_000_000_000;
/// The same while it does not answer.
const PROBE_AGAIN_NS: u64 = 1_000_000_000;
/// A login, a client's or our own, takes no longer.
const LOGIN_NS: u64 = 10_000_000_000;
/// RDS Proxy closes clients' connections at this age.
const CLIENT_AGE_NS: u64 = 24 * 3600 * 1_000_000_000;

const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
/// Set in the tokens of connections to the database.
const SERVER: u64 = 1 << 63;

pub(crate) struct Client<P: Protocol> {
    conduit: Conduit,
    session: P::Client,
    /// Received and not used yet.
    input: Vec<u8>,
    /// So much may wait there: more than usual while a message is awaited that is understood as a whole.
    ahead: usize,
    server: Option<ConnId>,
    last: Option<ConnId>,
    waiting: bool,
    ready: bool,
    ended: bool,
    accepted_ns: u64,
    active_ns: u64,
    borrowed_ns: u64,
    began_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Pooled,
    Probe,
}

pub(crate) struct Server<P: Protocol> {
    conduit: Conduit,
    session: P::Server,
    input: Vec<u8>,
    client: Option<ClientId>,
    role: Role,
    key: Key,
    connecting: bool,
    ready: bool,
    ended: bool,
    pinned: bool,
    opened_ns: u64,
    /// How often the database had moved when it was opened.
    moves: u64,
}

/// What the outside asks of a running engine.
pub(crate) enum Order {
    Reload(Box<Config>),
    /// The database's name has these addresses now.
    Target(Vec<SocketAddr>),
    Stop,
}

pub(crate) struct Parts {
    pub config: Arc<Config>,
    pub listener: OwnedFd,
    pub target: Vec<SocketAddr>,
    pub resolve: Resolve,
    pub tls: Tls,
    pub wake: Arc<OwnedFd>,
    pub orders: Receiver<Order>,
    /// For threads that the engine starts.
    pub own_orders: Sender<Order>,
    pub metrics: Arc<Metrics>,
    pub sink: Sink,
}

pub(crate) struct Engine<P: Protocol> {
    parts: Parts,
    poll: OwnedFd,
    protocol: P,
    pool: Pool,
    clients: Slab<Client<P>>,
    servers: HashMap<ConnId, Server<P>>,
    turn: Turn,
    acts: Vec<Act>,
    resume: VecDeque<ClientId>,
    scratch: Vec<u8>,
    listening: bool,
    database_max: u32,
    probing: Option<ConnId>,
    probe_at_ns: u64,
    probes: u64,
    place: Place,
    /// Numbers of probes, far above the pool's.
    next_probe: u64,
    housekeeping_ns: u64,
    stop_by_ns: Option<u64>,
}

impl<P: Protocol> Engine<P> {
    pub fn new(parts: Parts) -> Result<Self, Error> {
        let system = |what| move |error: rustix::io::Errno| Error::System { what, error: error.into() };
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("epoll"))?;
        epoll::add(&poll, &*parts.wake, EventData::new_u64(WAKE), EventFlags::IN).map_err(system("epoll"))?;
        let database_max = parts.config.target.max_connections.unwrap_or(100);
        Ok(Self {
            poll,
            protocol: P::new(Arc::clone(&parts.config)),
            pool: Pool::new(pool_limits(&parts.config, database_max)),
            clients: Slab::new(),
            servers: HashMap::new(),
            turn: Turn::default(),
            acts: Vec::new(),
            resume: VecDeque::new(),
            scratch: vec![0; SCRATCH],
            listening: false,
            database_max,
            probing: None,
            probe_at_ns: 0,
            probes: 0,
            place: Place::default(),
            next_probe: 1 << 62,
            housekeeping_ns: 0,
            stop_by_ns: None,
            parts,
        })
    }

    /// Serves until it is told to stop and has nothing left to finish.
    pub fn run(mut self) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        loop {
            self.housekeeping(monotonic_ns());
            if self.stop_by_ns.is_some_and(|by_ns| self.clients.len() == 0 || monotonic_ns() >= by_ns) {
                break;
            }
            let timeout = self.timeout();
            events.clear();
            match epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    (self.parts.sink)(&Event::Failed { what: format!("epoll: {error}") });
                    break;
                }
            }
            for event in &events {
                self.event(event.data.u64(), event.flags);
                self.settle();
            }
        }
        self.end();
    }

    fn event(&mut self, token: u64, flags: EventFlags) {
        match token {
            LISTENER => self.accept(),
            WAKE => self.orders(),
            token if token & SERVER != 0 => self.server_event(ConnId(token & !SERVER), flags),
            token => self.client_event(ClientId(token), flags),
        }
    }

    fn timeout(&self) -> rustix::time::Timespec {
        let now_ns = monotonic_ns();
        let next_ns =
            self.pool.next_deadline_ns().unwrap_or(u64::MAX).min(self.housekeeping_ns).min(self.probe_at_ns);
        let left_ns = next_ns.saturating_sub(now_ns).min(HOUSEKEEPING_NS);
        rustix::time::Timespec {
            tv_sec: (left_ns / 1_000_000_000) as i64,
            tv_nsec: (left_ns % 1_000_000_000) as i64,
        }
    }

    /// Does what the pool and the turns have asked for, until nothing is left.
    fn settle(&mut self) {
        loop {
            if !self.acts.is_empty() {
                let acts = std::mem::take(&mut self.acts);
                for act in acts {
                    self.act(act);
                }
            } else if let Some(client) = self.resume.pop_front() {
                self.pump(client);
            } else {
                return;
            }
        }
    }

    fn orders(&mut self) {
        let mut count = [0; 8];
        let _empty_is_fine = rustix::io::read(&*self.parts.wake, &mut count);
        loop {
            match self.parts.orders.try_recv() {
                Ok(Order::Reload(config)) => self.reload(*config),
                Ok(Order::Target(addresses)) => self.found(addresses),
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => return self.stop(),
                Err(TryRecvError::Empty) => return,
            }
        }
    }

    fn reload(&mut self, config: Config) {
        self.parts.config = Arc::new(config);
        self.protocol.reconfigure(Arc::clone(&self.parts.config));
        self.limit(self.parts.config.target.max_connections.unwrap_or(self.database_max));
        (self.parts.sink)(&Event::Reloaded);
    }

    /// The database allows so many connections.
    fn limit(&mut self, database_max: u32) {
        self.database_max = database_max;
        let limits = pool_limits(&self.parts.config, database_max);
        self.parts.metrics.max_database_connections_allowed.store(u64::from(limits.max), Relaxed);
        if limits != *self.pool.limits() {
            self.pool.set_limits(monotonic_ns(), limits, &mut self.acts);
        }
    }

    /// No new clients; those in a transaction may finish it.
    fn stop(&mut self) {
        if self.stop_by_ns.is_none() {
            self.stop_by_ns =
                Some(monotonic_ns() + self.parts.config.drain_timeout_s.saturating_mul(1_000_000_000));
            if self.listening {
                let _already_gone = epoll::delete(&self.poll, &self.parts.listener);
                self.listening = false;
            }
            // Who comes now is refused by the kernel, and tries elsewhere; in the backlog he would wait for the end.
            let _already_shut = rustix::net::shutdown(&self.parts.listener, Shutdown::Read);
            (self.parts.sink)(&Event::Draining { clients: self.clients.len() });
        }
        self.housekeeping_ns = 0;
    }

    fn housekeeping(&mut self, now_ns: u64) {
        if self.pool.next_deadline_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            self.pool.tick(now_ns, &mut self.acts);
            self.settle();
        }
        if now_ns >= self.probe_at_ns {
            self.start_probe(now_ns);
        }
        if now_ns < self.housekeeping_ns {
            return;
        }
        self.housekeeping_ns = now_ns + if self.stop_by_ns.is_some() { 50_000_000 } else { HOUSEKEEPING_NS };
        self.pool.tick(now_ns, &mut self.acts);
        self.settle();
        self.retire_clients(now_ns);
        self.retire_servers(now_ns);
        self.settle();
        self.publish();
    }

    /// The gauges.
    fn publish(&self) {
        let metrics = &self.parts.metrics;
        let counts = self.pool.counts();
        metrics.client_connections.store(self.clients.len() as u64, Relaxed);
        metrics.database_connections.store(u64::from(counts.connections - counts.opening), Relaxed);
        metrics.database_connections_currently_borrowed.store(u64::from(counts.lent), Relaxed);
        metrics.waiting_clients.store(u64::from(counts.waiting), Relaxed);
        let (mut pinned, mut open, mut tls) = (0, 0, 0);
        for server in self.servers.values() {
            pinned += u64::from(server.pinned);
            open += u64::from(self.protocol.in_transaction(&server.session));
            tls += u64::from(server.conduit.is_tls());
        }
        metrics.database_connections_currently_session_pinned.store(pinned, Relaxed);
        metrics.database_connections_currently_in_transaction.store(open, Relaxed);
        metrics.database_connections_with_tls.store(tls, Relaxed);
    }

    fn end(&mut self) {
        let clients: Vec<_> = self.clients.iter().map(|(id, _)| id).collect();
        for client in clients {
            self.dismiss(client, crate::protocol::Farewell::Stop);
        }
        self.acts.clear();
        self.servers.clear();
        self.publish();
    }

    /// Tells epoll what is worth waking up for.
    fn watch(poll: &OwnedFd, token: u64, conduit: &mut Conduit, read: bool) {
        let mut interest = if read { EventFlags::IN | EventFlags::RDHUP } else { EventFlags::empty() };
        if conduit.is_behind() {
            interest |= EventFlags::OUT;
        }
        if interest != conduit.interest {
            // A descriptor that is open and was added cannot be refused.
            let _modified = epoll::modify(poll, conduit.fd(), EventData::new_u64(token), interest);
            conduit.interest = interest;
        }
    }

    fn add(poll: &OwnedFd, token: u64, conduit: &mut Conduit, interest: EventFlags) -> bool {
        conduit.interest = interest;
        epoll::add(poll, conduit.fd().as_fd(), EventData::new_u64(token), interest).is_ok()
    }
}
