//! Whose turn is it, and since when?

use crate::closed::Closed;
use crate::open::Open;
use crate::sequence::Sequence;
use crate::steps::Steps;
use crate::{Load, Stop};

/// An invocation to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fire {
    /// Which variant, counted from 0.
    pub variant: usize,
    /// Its ordinal within the variant, from 0.
    pub index: u32,
    /// When the schedule wanted it sent, ns.
    pub intended_ns: u64,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Send this one.
    Fire(Fire),
    /// Nothing to do before this time, unless an invocation ends.
    WaitUntil(u64),
    /// Nothing to do before an invocation ends.
    WaitForEnd,
    /// Nothing to do before [`Schedule::ready`].
    WaitForReady,
    /// All have been sent and have ended.
    Done,
}

/// The load of all variants of one repetition. Pure: time is an argument.
#[derive(Clone, Debug)]
pub struct Schedule {
    kind: Kind,
    total: Option<u64>,
}

#[derive(Clone, Debug)]
enum Kind {
    Sequence(Sequence),
    Steps(Steps),
    Closed(Closed),
    Open(Open),
}

impl Schedule {
    /// A schedule that begins at `start_ns`. `time_scale` divides gaps; `seed` decides random arrivals, which are the same
    /// for every variant.
    pub fn new(load: &Load, variants: usize, seed: u64, time_scale: f64, start_ns: u64) -> Schedule {
        let kind = match load {
            Load::Sequence { count, gaps_ms } => {
                let gaps = gaps_ms.iter().map(|gap| ns(gap / 1_000.0 / time_scale)).collect();
                Kind::Sequence(Sequence::new(*count, gaps, variants, start_ns))
            }
            Load::Steps { steps } => Kind::Steps(Steps::new(steps, variants, time_scale, start_ns)),
            Load::Closed { clients, stop } => Kind::Closed(Closed::new(*clients, *stop, variants, start_ns)),
            Load::Open { rate_per_s, stop, arrivals, max_in_flight } => {
                let gaps = crate::open::gaps(*rate_per_s, *stop, *arrivals, seed);
                Kind::Open(Open::new(gaps, *max_in_flight, variants, start_ns))
            }
        };
        let total = match load {
            Load::Open { stop: Stop::Seconds(_), .. } => None,
            _ => load.count().map(|count| u64::from(count) * variants as u64),
        };
        Schedule { kind, total }
    }

    /// How many invocations it will ask for, if that is known.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// What to do at `now_ns`.
    pub fn turn(&mut self, now_ns: u64) -> Turn {
        match &mut self.kind {
            Kind::Sequence(s) => s.turn(now_ns),
            Kind::Steps(s) => s.turn(now_ns),
            Kind::Closed(c) => c.turn(now_ns),
            Kind::Open(o) => o.turn(now_ns),
        }
    }

    /// Tells that an invocation of a variant ended at `at_ns`: its connections idle from then on.
    pub fn ended(&mut self, variant: usize, at_ns: u64) {
        match &mut self.kind {
            Kind::Sequence(s) => s.ended(variant, at_ns),
            Kind::Steps(s) => s.ended(variant, at_ns),
            Kind::Closed(c) => c.ended(at_ns),
            Kind::Open(o) => o.ended(at_ns),
        }
    }

    /// Tells that the provisioned concurrency of a variant is READY since `at_ns`, or that it has none.
    pub fn ready(&mut self, variant: usize, at_ns: u64) {
        if let Kind::Steps(steps) = &mut self.kind {
            steps.ready(variant, at_ns);
        }
    }
}

/// Seconds as whole nanoseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "loads last at most days")]
pub fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

#[cfg(test)]
mod tests;
