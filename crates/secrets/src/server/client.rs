//! The clients: a table with a bound, and what each is doing.

use crate::page::Page;
use crate::request::MAX_HEAD;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::os::fd::OwnedFd;
use std::time::Duration;
use zeroize::Zeroizing;

/// Clients at a time; the open agent's bound. Beyond it an idle one has to go, or the new one is refused.
const MOST: usize = 800;
/// Descriptors kept for everything else: upstream connections, listeners, the Extensions API.
const RESERVED: u64 = 160;

/// What a client is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing; it may stay so for hours.
    Idle,
    /// It has sent a part of a request.
    Reading,
    /// Its value is being fetched.
    Waiting,
    /// It is slow to take its answer.
    Writing,
}

/// A place in the table; a later client in the same place has another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    index: u32,
    generation: u32,
}

impl Slot {
    /// As epoll's user data.
    pub fn name(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The inverse.
    pub fn from_name(name: u64) -> Slot {
        let low = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default();
        Slot { index: low(name), generation: low(name >> 32) }
    }
}

/// One client.
pub struct Client {
    pub socket: OwnedFd,
    /// The beginning of a request; its head holds the token.
    pub input: Zeroizing<Vec<u8>>,
    /// The rest of an answer.
    output: Zeroizing<Vec<u8>>,
    sent: usize,
    pub phase: Phase,
    /// Whether the connection ends with the next answer.
    pub last: bool,
    /// Whether the other side will send no more.
    deaf: bool,
    /// Whether it waits for nothing either: there is no hurry to end the connection.
    pub gone: bool,
    /// What epoll watches it for; none: it does not know it yet.
    pub watched: Option<EventFlags>,
    /// When the phase began.
    since: Duration,
}

impl Client {
    pub fn new(socket: OwnedFd, since: Duration) -> Client {
        let (input, output) = (Zeroizing::default(), Zeroizing::default());
        let (phase, last, deaf, gone, watched) = (Phase::Idle, false, false, false, None);
        Client { socket, input, output, sent: 0, phase, last, deaf, gone, watched, since }
    }

    /// What it should be watched for.
    pub fn interest(&self) -> EventFlags {
        match self.phase {
            Phase::Writing => EventFlags::OUT,
            // Its end would be reported for ever.
            _ if self.deaf => EventFlags::empty(),
            Phase::Idle | Phase::Reading | Phase::Waiting => EventFlags::IN,
        }
    }

    /// A phase begins; a request that comes in pieces began with its first.
    pub fn begin(&mut self, phase: Phase, now: Duration) {
        if self.phase != phase {
            self.phase = phase;
            self.since = now;
        }
    }

    /// Keeps what cannot be used yet. False: it is too much.
    pub fn keep_input(&mut self, bytes: &[u8]) -> bool {
        if !bytes.is_empty() {
            // With room for the rest: a vector that grows leaves copies behind.
            self.input.reserve(bytes.len().max(2048));
            self.input.extend_from_slice(bytes);
        }
        // One whole head more than is ever looked at.
        self.input.len() <= 2 * MAX_HEAD
    }

    /// Sends an answer, or as much as fits. An error means that the other side has gone.
    pub fn send(&mut self, page: &Page, now: Duration) -> Result<(), Errno> {
        let last = self.last.then(|| page.last());
        let bytes = last.as_ref().map_or(page.bytes(), |bytes| bytes.as_slice());
        let written = match rustix::io::write(&self.socket, bytes) {
            Ok(written) => written,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return Err(error),
        };
        if written == bytes.len() {
            (self.phase, self.since) = (Phase::Idle, now);
            return Ok(());
        }
        self.output = Zeroizing::new(bytes[written..].to_vec());
        self.sent = 0;
        self.begin(Phase::Writing, now);
        Ok(())
    }

    /// Goes on sending.
    pub fn flush(&mut self) -> Result<(), Errno> {
        match rustix::io::write(&self.socket, &self.output[self.sent..]) {
            Ok(written) => self.sent += written,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if self.sent == self.output.len() {
            self.output = Zeroizing::default();
            self.phase = Phase::Idle;
        }
        Ok(())
    }

    /// The other side will send no more. Whether it may still want something.
    pub fn ended(&mut self) -> bool {
        (self.last, self.deaf) = (true, true);
        self.gone = self.phase != Phase::Waiting;
        !self.gone
    }
}

/// A client that was turned away.
pub struct TurnedAway<'a>(&'a OwnedFd);

impl TurnedAway<'_> {
    /// Says why, as far as the socket takes it at once.
    pub fn refuse(self) {
        let page = Page::text(429, "Connection limit exceeded");
        let _ = rustix::io::write(self.0, &page.last());
        let _ = rustix::net::shutdown(self.0, rustix::net::Shutdown::Write);
        // What is left unread would turn the end into a reset, and the answer might be lost with it.
        let _ = rustix::io::read(self.0, &mut [0_u8; 4096]);
    }
}

/// The table.
pub struct Clients {
    places: Vec<(u32, Option<Client>)>,
    free: Vec<u32>,
    most: usize,
    /// Whether any client may be slow: looking at all of them for each event would cost more than the event.
    watching: bool,
}

impl Clients {
    pub fn new() -> Clients {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from(descriptors.saturating_sub(RESERVED)).unwrap_or(MOST).clamp(1, MOST);
        Clients { places: Vec::new(), free: Vec::new(), most, watching: false }
    }

    /// Ends the client that has been idle for longest, if there must be room. If none is idle, the new one is turned away.
    pub fn make_room<'a>(&mut self, socket: &'a OwnedFd) -> Option<TurnedAway<'a>> {
        if self.places.len() - self.free.len() < self.most {
            return None;
        }
        let all = self.places.iter().zip(0_u32..);
        let idle = all.filter_map(|((generation, client), index)| {
            let client = client.as_ref().filter(|client| client.phase == Phase::Idle)?;
            Some((client.since, Slot { index, generation: *generation }))
        });
        match idle.min_by_key(|(since, _)| *since) {
            Some((_, slot)) => {
                self.forget(slot);
                None
            }
            None => Some(TurnedAway(socket)),
        }
    }

    /// Where the next client will be.
    pub fn next_slot(&mut self) -> Slot {
        let index = *self.free.last().unwrap_or(&u32::try_from(self.places.len()).unwrap_or(u32::MAX));
        let generation = self
            .places
            .get(usize::try_from(index).unwrap_or_default())
            .map_or(0, |(generation, _)| *generation);
        Slot { index, generation }
    }

    /// Puts a client there.
    pub fn insert(&mut self, slot: Slot, client: Client) {
        if self.free.last() == Some(&slot.index) {
            self.free.pop();
        } else {
            self.places.push((0, None));
        }
        self.put_back(slot, client);
    }

    /// Takes a client out for a moment: it is put back or forgotten.
    pub fn take(&mut self, slot: Slot) -> Option<Client> {
        self.place(slot)?.1.take()
    }

    /// Puts it back.
    pub fn put_back(&mut self, slot: Slot, client: Client) {
        self.watching |= client.is_slow();
        if let Some(place) = self.place(slot) {
            place.1 = Some(client);
        }
    }

    /// Ends a client, which may be taken out.
    pub fn forget(&mut self, slot: Slot) {
        if let Some(place) = self.place(slot) {
            place.1 = None;
            place.0 = place.0.wrapping_add(1) & 0x7fff_ffff; // the upper half of the names is not for clients
            self.free.push(slot.index);
        }
    }

    /// Whether any client must be watched for being slow.
    pub fn has_slow(&self) -> bool {
        self.watching
    }

    /// Those that have been slow for too long.
    pub fn slow(&mut self, now: Duration, patience: Duration) -> Vec<Slot> {
        let (mut over, mut watching) = (Vec::new(), false);
        for ((generation, client), index) in self.places.iter().zip(0_u32..) {
            if let Some(client) = client.as_ref().filter(|client| client.is_slow()) {
                watching = true;
                if now.saturating_sub(client.since) > patience {
                    over.push(Slot { index, generation: *generation });
                }
            }
        }
        self.watching = watching;
        over
    }

    fn place(&mut self, slot: Slot) -> Option<&mut (u32, Option<Client>)> {
        let place = self.places.get_mut(usize::try_from(slot.index).ok()?)?;
        (place.0 == slot.generation).then_some(place)
    }
}

impl Client {
    fn is_slow(&self) -> bool {
        matches!(self.phase, Phase::Reading | Phase::Writing)
    }
}
