//! What was fetched, with its age: the least recently used goes first. A thousand entries at most (AWS's own bound), so the one to go
//! is found by looking at all of them; that happens once per fetch, which takes a thousand times longer.

use crate::clock::Now;
use crate::page::Page;
use crate::upstream::Failure;
use crate::wanted::Wanted;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// What a fetch brought.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The value, as the answer that carries it.
    Value(Rc<Page>),
    /// Why there is none.
    Failure(Rc<Failure>),
}

/// Outcomes by what was wanted. A capacity of 0 keeps nothing.
#[derive(Debug)]
pub struct Cache {
    entries: HashMap<Wanted, Entry>,
    capacity: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    outcome: Outcome,
    at: Now,
    used: u64,
}

impl Cache {
    /// An empty cache.
    pub fn new(capacity: usize) -> Cache {
        Cache { entries: HashMap::new(), capacity, uses: 0 }
    }

    /// An outcome and its age, if it is there; it then counts as used.
    pub fn get(&mut self, wanted: &Wanted, now: Now) -> Option<(Outcome, Duration)> {
        let entry = self.entries.get_mut(wanted)?;
        self.uses += 1;
        entry.used = self.uses;
        Some((entry.outcome.clone(), now.since(entry.at)))
    }

    /// Keeps an outcome that was true at a moment; says whether another had to go.
    pub fn put(&mut self, wanted: &Wanted, outcome: Outcome, at: Now) -> bool {
        if self.capacity == 0 {
            return false;
        }
        let full = self.entries.len() >= self.capacity && !self.entries.contains_key(wanted);
        if full {
            let oldest =
                self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(wanted, _)| wanted.clone());
            oldest.and_then(|oldest| self.entries.remove(&oldest));
        }
        self.uses += 1;
        self.entries.insert(wanted.clone(), Entry { outcome, at, used: self.uses });
        full
    }

    /// Forgets one.
    pub fn remove(&mut self, wanted: &Wanted) {
        self.entries.remove(wanted);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str) -> Wanted {
        Wanted::Parameter { name: name.to_owned(), decrypt: false }
    }

    fn put(cache: &mut Cache, name: &str) -> bool {
        cache.put(&wanted(name), Outcome::Value(Page::json(200, name.as_bytes())), Now::default())
    }

    fn holds(cache: &mut Cache, name: &str) -> bool {
        cache.get(&wanted(name), Now::default()).is_some()
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = Cache::new(2);
        assert!(!put(&mut cache, "a") && !put(&mut cache, "b"));
        assert!(holds(&mut cache, "a"));
        assert!(put(&mut cache, "c"));
        assert!(holds(&mut cache, "a") && holds(&mut cache, "c") && !holds(&mut cache, "b"));
        assert!(!put(&mut cache, "a"));
        assert_eq!(cache.len(), 2);
    }

    #[test]
    fn no_capacity_keeps_nothing() {
        let mut cache = Cache::new(0);
        assert!(!put(&mut cache, "a") && cache.is_empty());
    }

    #[test]
    fn age_is_told() {
        let mut cache = Cache::new(1);
        put(&mut cache, "a");
        let later = Now { monotonic: Duration::from_secs(3), epoch: Duration::ZERO };
        assert_eq!(cache.get(&wanted("a"), later).expect("kept").1, Duration::from_secs(3));
        cache.remove(&wanted("a"));
        assert!(!holds(&mut cache, "a"));
    }
}
