//! Arrivals at computed times, whether or not earlier invocations have ended.
//!
//! Variants alternate in blocks of arrivals; a block begins when the one before has ended. All variants get the same
//! arrivals, so that a comparison does not hang on who drew the burst.

use crate::schedule::{Fire, Turn, ns};
use crate::{Arrivals, Stop};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::ops::Range;

/// Blocks per variant; each costs the time until its last invocation has ended.
const BLOCKS: usize = 5;
/// Smallest block worth that cost.
const BLOCK_MIN: usize = 20;

#[derive(Clone, Debug)]
pub struct Open {
    /// Time from each arrival's predecessor, ns.
    gaps_ns: Vec<u64>,
    /// Blocks not yet begun: variant and arrivals.
    blocks: VecDeque<(usize, Range<usize>)>,
    current: Option<Block>,
    max_in_flight: u32,
    in_flight: u32,
    last_end_ns: u64,
}

#[derive(Clone, Debug)]
struct Block {
    variant: usize,
    arrivals: Range<usize>,
    due_ns: u64,
}

impl Open {
    pub fn new(gaps_ns: Vec<u64>, max_in_flight: u32, variants: usize, start_ns: u64) -> Open {
        let blocks = (gaps_ns.len() / BLOCK_MIN).clamp(1, BLOCKS);
        let edge = |b: usize| gaps_ns.len() * b / blocks;
        let blocks =
            (0..blocks).flat_map(|b| (0..variants).map(move |v| (v, edge(b)..edge(b + 1)))).collect();
        Open { gaps_ns, blocks, current: None, max_in_flight, in_flight: 0, last_end_ns: start_ns }
    }

    pub fn turn(&mut self, now_ns: u64) -> Turn {
        loop {
            if let Some(block) = &mut self.current
                && !block.arrivals.is_empty()
            {
                if block.due_ns > now_ns {
                    return Turn::WaitUntil(block.due_ns);
                }
                if self.in_flight >= self.max_in_flight {
                    return Turn::WaitForEnd;
                }
                self.in_flight += 1;
                return Turn::Fire(block.fire(&self.gaps_ns));
            }
            if self.in_flight > 0 {
                return Turn::WaitForEnd;
            }
            let Some((variant, arrivals)) = self.blocks.pop_front() else { return Turn::Done };
            let first = self.gaps_ns.get(arrivals.start).copied().unwrap_or(0);
            self.current = Some(Block { variant, due_ns: self.last_end_ns.saturating_add(first), arrivals });
        }
    }

    pub fn ended(&mut self, at_ns: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.last_end_ns = self.last_end_ns.max(at_ns);
    }
}

impl Block {
    fn fire(&mut self, gaps_ns: &[u64]) -> Fire {
        let index = u32::try_from(self.arrivals.start).expect("a load has at most a million arrivals");
        let fire = Fire { variant: self.variant, index, intended_ns: self.due_ns };
        self.arrivals.start += 1;
        self.due_ns = self.due_ns.saturating_add(gaps_ns.get(self.arrivals.start).copied().unwrap_or(0));
        fire
    }
}

/// The times between arrivals, ns.
pub fn gaps(rate_per_s: f64, stop: Stop, arrivals: Arrivals, seed: u64) -> Vec<u64> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let gap_s = std::iter::repeat_with(|| match arrivals {
        Arrivals::Uniform => 1.0 / rate_per_s,
        Arrivals::Poisson => -(1.0 - rng.random::<f64>()).ln() / rate_per_s,
    });
    match stop {
        Stop::Count(count) => gap_s.take(count as usize).map(ns).collect(),
        Stop::Seconds(seconds) => {
            let mut at = 0.0;
            let before_the_end = gap_s.take_while(|gap| {
                at += gap;
                at <= seconds
            });
            before_the_end.map(ns).collect()
        }
    }
}
