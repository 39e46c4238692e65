//! Clients that send their next invocation when the last one has ended.
//!
//! Variants alternate in blocks: in a block all clients work on one variant, and a block begins when the one before has
//! ended. A single client needs no blocks longer than one invocation.

use crate::Stop;
use crate::schedule::{Fire, Turn, ns};
use std::collections::VecDeque;

/// Blocks per variant with several clients: each costs a pause in which clients run out of work.
const BLOCKS: u32 = 5;

#[derive(Clone, Debug)]
pub struct Closed {
    /// Blocks not yet begun.
    blocks: VecDeque<(usize, Share)>,
    current: Option<Block>,
    clients: u32,
    next_index: Vec<u32>,
    in_flight: u32,
    last_end_ns: u64,
}

/// How much of a load a block has.
#[derive(Clone, Copy, Debug)]
enum Share {
    Count(u32),
    Until(u64),
}

#[derive(Clone, Debug)]
struct Block {
    variant: usize,
    left: Share,
    /// Since when each idle client is ready.
    ready_ns: VecDeque<u64>,
}

impl Closed {
    pub fn new(clients: u32, stop: Stop, variants: usize, start_ns: u64) -> Closed {
        let shares = shares(clients, stop);
        let blocks = shares.into_iter().flat_map(|share| (0..variants).map(move |v| (v, share))).collect();
        Closed {
            blocks,
            current: None,
            clients,
            next_index: vec![0; variants],
            in_flight: 0,
            last_end_ns: start_ns,
        }
    }

    pub fn turn(&mut self, now_ns: u64) -> Turn {
        loop {
            if let Some(fire) = self.fire(now_ns) {
                return Turn::Fire(fire);
            }
            if self.in_flight > 0 {
                return Turn::WaitForEnd;
            }
            let Some((variant, share)) = self.blocks.pop_front() else { return Turn::Done };
            let left = match share {
                Share::Count(_) => share,
                Share::Until(length_ns) => Share::Until(now_ns.saturating_add(length_ns)),
            };
            let ready_ns = (0..self.clients).map(|_| self.last_end_ns).collect();
            self.current = Some(Block { variant, left, ready_ns });
        }
    }

    fn fire(&mut self, now_ns: u64) -> Option<Fire> {
        let block = self.current.as_mut()?;
        match &mut block.left {
            Share::Count(0) => return None,
            Share::Until(end_ns) if now_ns >= *end_ns => return None,
            Share::Count(n) if !block.ready_ns.is_empty() => *n -= 1,
            Share::Count(_) | Share::Until(_) => {}
        }
        let intended_ns = block.ready_ns.pop_front()?;
        let index = &mut self.next_index[block.variant];
        let fire = Fire { variant: block.variant, index: *index, intended_ns };
        *index += 1;
        self.in_flight += 1;
        Some(fire)
    }

    pub fn ended(&mut self, at_ns: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.last_end_ns = self.last_end_ns.max(at_ns);
        if let Some(block) = &mut self.current {
            block.ready_ns.push_back(at_ns);
        }
    }
}

fn shares(clients: u32, stop: Stop) -> Vec<Share> {
    match stop {
        Stop::Count(count) if clients == 1 => vec![Share::Count(1); count as usize],
        Stop::Count(count) => {
            let blocks = (count / clients / BLOCKS).clamp(1, BLOCKS);
            (0..blocks).map(|b| Share::Count(count / blocks + u32::from(b < count % blocks))).collect()
        }
        Stop::Seconds(seconds) => {
            let blocks = seconds.floor().clamp(1.0, f64::from(BLOCKS));
            let share = Share::Until(ns(seconds / blocks));
            std::iter::successors(Some(1.0), |b| (*b < blocks).then_some(b + 1.0)).map(|_| share).collect()
        }
    }
}
