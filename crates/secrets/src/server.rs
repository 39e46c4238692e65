//! The thread that serves: one epoll loop over listeners, clients and the bell of the other threads. A hit on a kept connection costs
//! it three system calls: wait, read, write. A hit on a connection of its own, as most clients make them, costs it two wake-ups: one
//! for the request, which the kernel holds the connection back for, and one for the connection's end.

mod client;
mod listen;

pub use listen::Listeners;

use crate::clock::now;
use crate::desk::{Desk, NOT_READY, Serving, UNEXPECTED, Verdict};
use crate::error::Error;
use crate::extension::Turn;
use crate::log::{Level, Log};
use crate::metrics::{self, Counts};
use crate::page::Page;
use crate::pool::{Done, Pool};
use crate::request::{self, Head, MAX_HEAD};
use crate::route::{Call, Dialect, Refusal, route};
use crate::run::{Bell, Event, Gate, Inbox};
use crate::upstream::{Upstream, batches};
use crate::wanted::{Service, Wanted};
use client::{Client, Clients, Phase, Slot};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// How often at least that is looked at, while somebody is slow.
const TICK: Duration = Duration::from_secs(1);
/// Connections that clients have ended are closed so many at a time, or after a tick. To close one takes the kernel a quarter of all
/// that it does for a hit, most of it for code and data that are in no cache; the second in a row costs a fraction of the first.
const PARTED: usize = 16;
/// Events handled per wake-up.
const AT_ONCE: usize = 64;

/// Names of what is not a client; clients have their slot's name, which has other upper bits.
const BELL: u64 = u64::MAX;
const FIRST_LISTENER: u64 = u64::MAX - 8;

/// All state of the serving thread.
pub struct Server {
    epoll: OwnedFd,
    listeners: Listeners,
    clients: Clients,
    desk: Desk<Slot>,
    pools: [Pool; 2],
    upstream: Arc<Upstream>,
    bell: Bell,
    log: Log,
    /// Where bytes are read to; what is not used at once moves to the client.
    scratch: Zeroizing<Vec<u8>>,
    /// The function whose metrics are written, and what was counted when they were.
    counted: Option<(String, Counts)>,
    at_first_turn: Vec<Wanted>,
    gate: Option<Gate>,
    patience: Duration,
    /// What clients have ended and is to be closed, and when the first of these was.
    parted: Vec<OwnedFd>,
    parted_at: Duration,
}

impl Server {
    /// Ready to run.
    pub fn new(
        listeners: Listeners,
        desk: Desk<Slot>,
        pools: [Pool; 2],
        upstream: Arc<Upstream>,
        bell: Bell,
        log: Log,
        patience: Duration,
    ) -> Result<Server, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(kernel("epoll_create"))?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN).map_err(kernel("epoll_ctl"))?;
        for (name, listener) in (FIRST_LISTENER..).zip(listeners.all()) {
            epoll::add(&epoll, listener, EventData::new_u64(name), EventFlags::IN)
                .map_err(kernel("epoll_ctl"))?;
        }
        Ok(Server {
            epoll,
            listeners,
            clients: Clients::new(),
            desk,
            pools,
            upstream,
            bell,
            log,
            scratch: Zeroizing::new(vec![0; 16 * 1024]),
            counted: None,
            at_first_turn: Vec::new(),
            gate: None,
            patience,
            parted: Vec::with_capacity(PARTED),
            parted_at: Duration::ZERO,
        })
    }

    /// Writes a line of metrics at each turn.
    pub fn count_for(&mut self, function: &str) {
        self.counted = Some((function.to_owned(), Counts::default()));
    }

    /// Fetches these.
    pub fn prefetch(&mut self, list: &[Wanted]) {
        for batch in batches(self.desk.prefetch(list)) {
            self.submit(batch);
        }
    }

    /// Fetches these, but not before the first invocation.
    pub fn prefetch_at_first_turn(&mut self, list: Vec<Wanted>) {
        self.at_first_turn = list;
    }

    /// Opens the gate when nothing is being fetched any more.
    pub fn when_prefetched(&mut self, gate: Gate) {
        self.gate = Some(gate);
        self.open_gate();
    }

    /// Serves until the environment ends.
    pub fn run(mut self, inbox: &Inbox) -> Result<(), Error> {
        let mut ready = Vec::with_capacity(AT_ONCE);
        loop {
            ready.clear();
            let tick = TICK.min(self.patience);
            let must_tick = self.clients.has_slow() || !self.parted.is_empty();
            let timeout = must_tick.then(|| rustix::event::Timespec {
                tv_sec: i64::try_from(tick.as_secs()).unwrap_or(1),
                tv_nsec: tick.subsec_nanos().into(),
            });
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut ready), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::Kernel { what: "epoll_wait", error: error.into() }),
            }
            for event in &ready {
                match event.data.u64() {
                    BELL => {
                        if self.hear(inbox)? {
                            return Ok(());
                        }
                    }
                    name if name >= FIRST_LISTENER => self.accept(name),
                    name => self.attend(Slot::from_name(name), event.flags),
                }
            }
            if timeout.is_some() {
                self.tick(tick);
            }
        }
    }

    /// What the other threads have to say; whether it is the end.
    fn hear(&mut self, inbox: &Inbox) -> Result<bool, Error> {
        self.bell.quiet();
        while let Ok(event) = inbox.try_recv() {
            match event {
                Event::Done(done) => self.done(done),
                Event::Lost(error) => return Err(error),
                Event::Turn(turn) => {
                    self.count();
                    if turn == Turn::Shutdown {
                        return Ok(true);
                    }
                    self.begin_turn();
                }
            }
        }
        Ok(false)
    }

    fn begin_turn(&mut self) {
        let before = self.desk.serving();
        self.desk.invoked();
        if before != self.desk.serving() {
            self.log.line(Level::Info, "ready to serve traffic");
        }
        let list = std::mem::take(&mut self.at_first_turn);
        self.prefetch(&list);
    }

    fn done(&mut self, done: Done) {
        if let Err(failure) = &done.outcome {
            let (operation, service) = match done.wanted.service() {
                Service::SecretsManager => ("GetSecretValue", "Secrets Manager"),
                Service::ParameterStore => ("GetParameter", "SSM"),
            };
            self.log.line(
                Level::Error,
                format_args!("{operation} request encountered an error: operation error {service}: {operation}, {failure}"),
            );
        }
        let outcome = done.outcome.map(|body| Page::json(200, &body));
        let finished = self.desk.finish(&done.wanted, outcome, done.began, now());
        if finished.again {
            self.submit(vec![done.wanted]);
        }
        for (slot, page) in finished.answers {
            self.answer_waiting(slot, &page);
        }
        self.open_gate();
    }

    fn open_gate(&mut self) {
        if self.desk.is_idle()
            && let Some(gate) = self.gate.take()
        {
            // It has room for one and is used once; nobody waits if the program is no extension.
            let _ = gate.try_send(());
        }
    }

    fn submit(&self, batch: Vec<Wanted>) {
        let Some(first) = batch.first() else { return };
        let [secrets, parameters] = &self.pools;
        match first.service() {
            Service::SecretsManager => secrets.submit(batch),
            Service::ParameterStore => parameters.submit(batch),
        }
    }

    fn count(&mut self) {
        if let Some((function, before)) = &mut self.counted {
            let line = metrics::line(&self.desk.counts.since(before), function, now().epoch);
            *before = self.desk.counts;
            if let Some(line) = line {
                self.log.raw(&line);
            }
        }
    }

    fn accept(&mut self, name: u64) {
        let index = usize::try_from(name - FIRST_LISTENER).unwrap_or_default();
        // One only: to ask in vain for another costs a call, and epoll tells if there is one.
        let Some(socket) = self.listeners.accept(index) else { return };
        if let Some(turned_away) = self.clients.make_room(&socket) {
            self.desk.counts.refused += 1;
            turned_away.refuse();
            return;
        }
        let slot = self.clients.next_slot();
        self.clients.insert(slot, Client::new(socket, now().monotonic));
        // Its request is there already, as a rule.
        self.attend(slot, EventFlags::IN);
    }

    fn attend(&mut self, slot: Slot, flags: EventFlags) {
        let Some(mut client) = self.clients.take(slot) else { return };
        let alive = if client.phase == Phase::Writing {
            client.flush().is_ok() && (client.phase == Phase::Writing || self.after_answer(slot, &mut client))
        } else if flags.intersects(EventFlags::ERR | EventFlags::HUP) && !flags.contains(EventFlags::IN) {
            false
        } else {
            self.read(slot, &mut client)
        };
        self.put_back(slot, client, alive);
    }

    /// Reads once, and serves what is whole. False: the connection is over.
    fn read(&mut self, slot: Slot, client: &mut Client) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let length = match rustix::io::read(&client.socket, scratch.as_mut_slice()) {
            Ok(length) => length,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                self.scratch = scratch;
                return true;
            }
            Err(_) => 0,
        };
        let alive = if length == 0 {
            // It may have closed its half only, and still wait.
            client.ended()
        } else if client.input.is_empty() && client.phase != Phase::Waiting {
            let used = self.serve(slot, client, &scratch[..length]);
            used.is_some_and(|used| client.keep_input(&scratch[used..length]))
        } else {
            client.keep_input(&scratch[..length]) && self.after_answer(slot, client)
        };
        self.scratch = scratch;
        alive
    }

    /// Serves what waits in the client's own buffer.
    fn after_answer(&mut self, slot: Slot, client: &mut Client) -> bool {
        if client.phase == Phase::Waiting {
            return true;
        }
        if client.last || client.input.is_empty() {
            return !client.last;
        }
        let input = std::mem::take(&mut client.input);
        let used = self.serve(slot, client, &input);
        used.is_some_and(|used| client.keep_input(&input[used..]))
    }

    /// Serves the whole requests in `bytes`; how many bytes they were. None: the connection is over.
    fn serve(&mut self, slot: Slot, client: &mut Client, bytes: &[u8]) -> Option<usize> {
        let mut used = 0;
        while used < bytes.len() {
            let (page, last) = match request::head(&bytes[used..]) {
                Ok(None) if bytes.len() - used > MAX_HEAD => {
                    (Some(Page::text(431, "the request's head is too long")), true)
                }
                Ok(None) => {
                    client.begin(Phase::Reading, now().monotonic);
                    return Some(used);
                }
                Err(request::Malformed) => (Some(Page::text(400, "the request is not HTTP/1.1")), true),
                Ok(Some(head)) => {
                    used += head.length;
                    (self.respond(slot, &head), head.close || head.has_body)
                }
            };
            client.last |= last;
            let Some(page) = page else {
                client.begin(Phase::Waiting, now().monotonic);
                return Some(used);
            };
            client.send(&page, now().monotonic).ok()?;
            if client.phase == Phase::Writing {
                return Some(if client.last { bytes.len() } else { used });
            }
            if client.last {
                return None;
            }
        }
        Some(used)
    }

    /// The answer to a request, unless it has to wait.
    fn respond(&mut self, slot: Slot, head: &Head<'_>) -> Option<Rc<Page>> {
        let refusal = match self.screen(head) {
            Ok(Call::Ping) => return Some(Page::text(200, "healthy")),
            Ok(Call::Fetch(fetch)) => {
                let (verdict, start) = self.desk.ask(slot, &fetch, now());
                if start {
                    self.submit(vec![fetch.wanted]);
                }
                return match verdict {
                    Verdict::Answer(page) => Some(page),
                    Verdict::Wait => None,
                };
            }
            Err(page) => page,
        };
        self.desk.counts.refused += 1;
        Some(refusal)
    }

    /// What is asked for, if it may be asked for. Refusals are the open agent's where AWS's extension has shown none.
    fn screen(&self, head: &Head<'_>) -> Result<Call, Rc<Page>> {
        if head.forwarded {
            return Err(Page::text(400, "Forwarded"));
        }
        if !head.get {
            return Err(Page::text(405, "Not allowed"));
        }
        if head.has_body {
            return Err(Page::text(413, "a request has no body here"));
        }
        if self.desk.serving() == Serving::NotYet && route(head.target) != Ok(Call::Ping) {
            return Err(Page::text(400, NOT_READY));
        }
        let call = route(head.target).map_err(|refusal| match refusal {
            Refusal::NotFound => Page::text(404, "404 page not found"),
            Refusal::BadQuery => Page::text(400, UNEXPECTED),
            Refusal::UnknownParameter(name) => Page::text(400, &format!("unknown parameter: {name}")),
        })?;
        if let Call::Fetch(fetch) = &call
            && !self.upstream.credentials.knows(head.token.unwrap_or_default())
        {
            return Err(match fetch.dialect {
                Dialect::Layer => {
                    Page::text(401, "the X-Aws-Parameters-Secrets-Token header is missing or wrong")
                }
                Dialect::Agent => Page::text(403, "Bad Token"),
            });
        }
        Ok(call)
    }

    fn answer_waiting(&mut self, slot: Slot, page: &Page) {
        let Some(mut client) = self.clients.take(slot) else { return };
        client.phase = Phase::Idle;
        let sent = client.send(page, now().monotonic).is_ok();
        let alive = sent && (client.phase == Phase::Writing || self.after_answer(slot, &mut client));
        self.put_back(slot, client, alive);
    }

    fn put_back(&mut self, slot: Slot, mut client: Client, alive: bool) {
        if alive && self.watch(slot, &mut client).is_ok() {
            self.clients.put_back(slot, client);
            return;
        }
        self.clients.forget(slot);
        if client.gone && client.watched.is_some() && epoll::delete(&self.epoll, &client.socket).is_ok() {
            if self.parted.is_empty() {
                self.parted_at = now().monotonic;
            }
            self.parted.push(client.socket);
            if self.parted.len() >= PARTED {
                self.parted.clear();
            }
        }
    }

    /// Has epoll watch a client for what its phase needs. One whose first answer was its last has never been watched.
    fn watch(&self, slot: Slot, client: &mut Client) -> Result<(), rustix::io::Errno> {
        let (interest, name) = (client.interest(), EventData::new_u64(slot.name()));
        match client.watched.replace(interest) {
            None => epoll::add(&self.epoll, &client.socket, name, interest),
            Some(before) if before != interest => epoll::modify(&self.epoll, &client.socket, name, interest),
            Some(_) => Ok(()),
        }
    }

    fn tick(&mut self, tick: Duration) {
        if now().monotonic.saturating_sub(self.parted_at) > tick {
            self.parted.clear();
        }
        if !self.clients.has_slow() {
            return;
        }
        for slot in self.clients.slow(now().monotonic, self.patience) {
            self.desk.counts.refused += 1;
            self.clients.forget(slot);
        }
    }
}

fn kernel(what: &'static str) -> impl Fn(rustix::io::Errno) -> Error {
    move |error| Error::Kernel { what, error: error.into() }
}
