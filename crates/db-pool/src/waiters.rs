//! The clients that wait, in the order of their coming.

use crate::{ClientId, Key, Wish};
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub wish: Wish,
    pub since_ns: u64,
    pub deadline_ns: u64,
    pub overtaken: u32,
}

/// A place in the queue: lower is earlier.
pub(crate) type Place = u64;

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    queue: BTreeMap<Place, Waiter>,
    of_key: HashMap<Key, BTreeSet<Place>>,
    of_client: HashMap<ClientId, Place>,
    deadlines: BTreeSet<(u64, Place)>,
    next: Place,
}

impl Waiters {
    pub fn len(&self) -> u32 {
        self.queue.len() as u32
    }

    pub fn push(&mut self, waiter: Waiter) {
        self.next += 1;
        self.restore(self.next, waiter);
    }

    pub fn remove(&mut self, place: Place) -> Option<Waiter> {
        let waiter = self.queue.remove(&place)?;
        self.deadlines.remove(&(waiter.deadline_ns, place));
        self.of_client.remove(&waiter.wish.client);
        if let Some(places) = self.of_key.get_mut(&waiter.wish.key) {
            places.remove(&place);
            if places.is_empty() {
                self.of_key.remove(&waiter.wish.key);
            }
        }
        Some(waiter)
    }

    /// Back to its place.
    pub fn restore(&mut self, place: Place, waiter: Waiter) {
        self.of_key.entry(waiter.wish.key).or_default().insert(place);
        self.of_client.insert(waiter.wish.client, place);
        self.deadlines.insert((waiter.deadline_ns, place));
        self.queue.insert(place, waiter);
    }

    pub fn of_client(&self, client: ClientId) -> Option<Place> {
        self.of_client.get(&client).copied()
    }

    pub fn first(&self) -> Option<(Place, &Waiter)> {
        self.queue.iter().next().map(|(place, waiter)| (*place, waiter))
    }

    pub fn first_of(&self, key: Key) -> Option<Place> {
        self.of_key.get(&key)?.first().copied()
    }

    pub fn count_of(&self, key: Key) -> u32 {
        self.of_key.get(&key).map_or(0, |places| places.len() as u32)
    }

    /// The keys that are waited for, the longest waiting first.
    pub fn keys_in_order(&self) -> Vec<Key> {
        let mut keys: Vec<_> =
            self.of_key.iter().map(|(key, places)| (places.first().copied(), *key)).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }

    /// Somebody behind the first is served before it.
    pub fn overtake_first(&mut self) {
        if let Some((_, waiter)) = self.queue.iter_mut().next() {
            waiter.overtaken += 1;
        }
    }

    pub fn due(&self, now_ns: u64) -> Option<Place> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now_ns).map(|(_, place)| *place)
    }

    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }
}
