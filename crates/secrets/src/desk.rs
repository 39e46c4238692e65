//! All decisions, and nothing else: what is answered from the cache, who waits for whom, what is fetched. No clock, no socket; `W`
//! names a client that waits.
//!
//! One key has at most one upstream call under way, however many clients want it: the second waits with the first. Only `refreshNow`
//! must not join a call that began before it, since that call may have read the old value; it waits for the next one.

use crate::cache::{Cache, Outcome};
use crate::clock::Now;
use crate::metrics::Counts;
use crate::page::Page;
use crate::route::{Dialect, Fetch};
use crate::shape;
use crate::upstream::Failure;
use crate::wanted::{Service, Wanted};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// How long what may be answered from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Entries of the cache; 0: none.
    pub capacity: usize,
    /// Time to live of a secret; 0: never cached.
    pub secret_ttl: Duration,
    /// The same of a parameter.
    pub parameter_ttl: Duration,
    /// How long past its time a value is answered while a newer one is fetched.
    pub stale_while_revalidate: Duration,
    /// How long past its time a value is answered if upstream cannot be reached.
    pub stale_if_error: Duration,
    /// How long a definite refusal is answered from memory.
    pub negative: Duration,
    /// Whether errors say what upstream said.
    pub detailed: bool,
}

impl Policy {
    fn ttl(&self, wanted: &Wanted) -> Duration {
        match wanted.service() {
            Service::SecretsManager => self.secret_ttl,
            Service::ParameterStore => self.parameter_ttl,
        }
    }
}

/// What a client gets at once.
#[derive(Debug)]
pub enum Verdict {
    /// This.
    Answer(Rc<Page>),
    /// Nothing yet: [`Desk::finish`] will name it.
    Wait,
}

/// What follows from the end of a fetch.
#[derive(Debug)]
pub struct Finished<W> {
    /// Who gets what.
    pub answers: Vec<(W, Rc<Page>)>,
    /// Whether the same must be fetched once more.
    pub again: bool,
}

/// The state of the extension.
#[derive(Debug)]
pub struct Desk<W> {
    policy: Policy,
    cache: Cache,
    /// Bounded by the connections, each of which waits for one thing, and by the prefetch list.
    flights: HashMap<Wanted, Flight<W>>,
    serving: Serving,
    /// What happened so far.
    pub counts: Counts,
}

/// What may be done before the first invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// Nothing: AWS's extension refuses.
    NotYet,
    /// Answer, but keep nothing: the memory may become a snapshot (SnapStart).
    WithoutCache,
    /// Everything.
    Yes,
}

#[derive(Debug)]
struct Flight<W> {
    waiters: Vec<Waiter<W>>,
    /// Who needs a call that begins after this one.
    later: Vec<Waiter<W>>,
    keep: bool,
}

#[derive(Debug)]
struct Waiter<W> {
    who: W,
    dialect: Dialect,
    /// Will have nothing but what this call brings.
    refresh: bool,
}

impl<W> Desk<W> {
    /// An empty one.
    pub fn new(policy: Policy, serving: Serving) -> Desk<W> {
        let cache = Cache::new(policy.capacity);
        Desk { policy, cache, flights: HashMap::new(), serving, counts: Counts::default() }
    }

    /// A client asks. The second value says that a fetch must be started.
    pub fn ask(&mut self, who: W, fetch: &Fetch, now: Now) -> (Verdict, bool) {
        if self.serving == Serving::NotYet {
            self.counts.refused += 1;
            return (Verdict::Answer(Page::text(400, NOT_READY)), false);
        }
        if !fetch.refresh
            && let Some((page, revalidate)) = self.remembered(fetch, now)
        {
            let start = revalidate && self.open(&fetch.wanted);
            return (Verdict::Answer(page), start);
        }
        let waiter = Waiter { who, dialect: fetch.dialect, refresh: fetch.refresh };
        let start = self.open(&fetch.wanted);
        if start {
            self.counts.misses += 1;
        } else {
            self.counts.joined += 1;
        }
        if let Some(flight) = self.flights.get_mut(&fetch.wanted) {
            let queue = if fetch.refresh && !start { &mut flight.later } else { &mut flight.waiters };
            queue.push(waiter);
        }
        (Verdict::Wait, start)
    }

    /// Which of these must be fetched, before anybody asks.
    pub fn prefetch(&mut self, list: &[Wanted]) -> Vec<Wanted> {
        if self.serving == Serving::WithoutCache {
            return Vec::new();
        }
        list.iter().filter(|wanted| self.open(wanted)).cloned().collect()
    }

    /// A fetch that began at `began` has ended.
    pub fn finish(
        &mut self,
        wanted: &Wanted,
        outcome: Result<Rc<Page>, Failure>,
        began: Now,
        now: Now,
    ) -> Finished<W> {
        let Some(flight) = self.flights.remove(wanted) else {
            return Finished { answers: Vec::new(), again: false };
        };
        let outcome = match outcome {
            Ok(page) => Outcome::Value(page),
            Err(failure) => Outcome::Failure(Rc::new(failure)),
        };
        let stale = self.learn(wanted, &outcome, flight.keep, began, now);
        let answers = flight.waiters.into_iter().map(|waiter| {
            let outcome = stale.as_ref().filter(|_| !waiter.refresh).unwrap_or(&outcome);
            (waiter.who, self.render(outcome, waiter.dialect))
        });
        let answers = answers.collect();
        let again = !flight.later.is_empty();
        if again {
            self.counts.fetches += 1;
            let keep = self.serving == Serving::Yes;
            self.flights.insert(wanted.clone(), Flight { waiters: flight.later, later: Vec::new(), keep });
        }
        Finished { answers, again }
    }

    /// An invocation has begun. The first one after a restored snapshot finds nothing from before.
    pub fn invoked(&mut self) {
        if self.serving == Serving::WithoutCache {
            self.cache.clear();
        }
        self.serving = Serving::Yes;
    }

    /// Whether clients are answered.
    pub fn serving(&self) -> Serving {
        self.serving
    }

    /// Whether anything is being fetched.
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }

    /// What the cache has to say, and whether it should be fetched anew nevertheless.
    fn remembered(&mut self, fetch: &Fetch, now: Now) -> Option<(Rc<Page>, bool)> {
        let (outcome, age) = self.cache.get(&fetch.wanted, now)?;
        let ttl = self.policy.ttl(&fetch.wanted);
        let revalidate = match &outcome {
            Outcome::Value(_) if age < ttl => {
                self.counts.hits += 1;
                false
            }
            Outcome::Value(_) if age < ttl + self.policy.stale_while_revalidate => {
                self.counts.stale += 1;
                true
            }
            Outcome::Failure(_) if age < self.policy.negative => {
                self.counts.negative += 1;
                false
            }
            _ => return None,
        };
        Some((self.render(&outcome, fetch.dialect), revalidate))
    }

    /// Begins a flight unless there is one.
    fn open(&mut self, wanted: &Wanted) -> bool {
        if self.flights.contains_key(wanted) {
            return false;
        }
        self.counts.fetches += 1;
        let keep = self.serving != Serving::WithoutCache;
        self.flights.insert(wanted.clone(), Flight { waiters: Vec::new(), later: Vec::new(), keep });
        true
    }

    /// Keeps what is worth it. Returns the old value if it stands in for a failure.
    fn learn(
        &mut self,
        wanted: &Wanted,
        outcome: &Outcome,
        keep: bool,
        began: Now,
        now: Now,
    ) -> Option<Outcome> {
        let ttl = self.policy.ttl(wanted);
        match outcome {
            Outcome::Value(_) => {
                if keep && !ttl.is_zero() {
                    // As old as the request for it: upstream may have read it right then.
                    self.counts.evicted += u64::from(self.cache.put(wanted, outcome.clone(), began));
                }
                None
            }
            Outcome::Failure(failure) => {
                self.counts.failures += 1;
                let old = self.cache.get(wanted, now);
                let usable = old.filter(|(old, age)| {
                    matches!(old, Outcome::Value(_))
                        && !failure.is_definite()
                        && *age < ttl + self.policy.stale_if_error
                });
                if let Some((old, _)) = usable {
                    self.counts.stale += u64::from(!self.policy.stale_if_error.is_zero());
                    return Some(old).filter(|_| !self.policy.stale_if_error.is_zero());
                }
                if failure.is_definite() {
                    self.cache.remove(wanted);
                    if keep && !self.policy.negative.is_zero() {
                        self.counts.evicted += u64::from(self.cache.put(wanted, outcome.clone(), began));
                    }
                }
                None
            }
        }
    }

    fn render(&self, outcome: &Outcome, dialect: Dialect) -> Rc<Page> {
        match (outcome, dialect) {
            (Outcome::Value(page), Dialect::Layer) => Rc::clone(page),
            (Outcome::Value(page), Dialect::Agent) => match shape::agent(page.body()) {
                Some(body) => Page::json(200, &body),
                None => Page::text(400, UNEXPECTED),
            },
            (Outcome::Failure(failure), Dialect::Layer) if !self.policy.detailed => {
                Page::text(failure.status_as_aws(), UNEXPECTED)
            }
            (Outcome::Failure(failure), _) => Page::json(failure.status(), failure.json().as_bytes()),
        }
    }
}

/// AWS's answer before the first invocation.
pub const NOT_READY: &str = "not ready to serve traffic, please wait";
/// AWS's answer to whatever goes wrong behind it.
pub const UNEXPECTED: &str = "an unexpected error occurred while executing request";

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
