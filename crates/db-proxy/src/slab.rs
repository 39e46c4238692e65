//! Numbered places that are used again under new numbers.

use danki_db_pool::ClientId;

/// Values found by a number whose lower half is a place and whose upper half says how often the place was used.
pub(crate) struct Slab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The number that [`Slab::insert`] gives next.
    pub fn next_id(&self) -> ClientId {
        match self.free.last() {
            Some(&place) => id(self.places[place as usize].0 + 1, place),
            None => id(1, self.places.len() as u32),
        }
    }

    pub fn insert(&mut self, value: T) -> ClientId {
        let next = self.next_id();
        match self.free.pop() {
            Some(place) => self.places[place as usize] = (generation(next), Some(value)),
            None => self.places.push((generation(next), Some(value))),
        }
        next
    }

    pub fn get(&self, id: ClientId) -> Option<&T> {
        self.places.get(place(id)).filter(|(used, _)| *used == generation(id))?.1.as_ref()
    }

    pub fn get_mut(&mut self, id: ClientId) -> Option<&mut T> {
        self.places.get_mut(place(id)).filter(|(used, _)| *used == generation(id))?.1.as_mut()
    }

    pub fn remove(&mut self, id: ClientId) -> Option<T> {
        let (_, value) = self.places.get_mut(place(id)).filter(|(used, _)| *used == generation(id))?;
        let value = value.take()?;
        self.free.push(place(id) as u32);
        Some(value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &T)> {
        self.places.iter().enumerate().filter_map(|(place, (generation, value))| {
            value.as_ref().map(|value| (id(*generation, place as u32), value))
        })
    }
}

const fn id(generation: u32, place: u32) -> ClientId {
    // The top bit is the engine's, for connections to the database.
    ClientId(((generation as u64 & 0x7FFF_FFFF) << 32) | place as u64)
}

const fn place(id: ClientId) -> usize {
    (id.0 & 0xFFFF_FFFF) as usize
}

const fn generation(id: ClientId) -> u32 {
    (id.0 >> 32) as u32
}
