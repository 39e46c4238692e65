//! One invocation at a time: A B A B, and whoever's gap is over first.

use crate::schedule::{Fire, Turn};

#[derive(Clone, Debug)]
pub struct Sequence {
    count: u32,
    gaps_ns: Vec<u64>,
    variants: Vec<Next>,
    in_flight: bool,
    last_end_ns: u64,
}

/// A variant's next invocation.
#[derive(Clone, Copy, Debug)]
struct Next {
    index: u32,
    due_ns: u64,
}

impl Sequence {
    pub fn new(count: u32, gaps_ns: Vec<u64>, variants: usize, start_ns: u64) -> Sequence {
        let variants = vec![Next { index: 0, due_ns: start_ns }; variants];
        Sequence { count, gaps_ns, variants, in_flight: false, last_end_ns: start_ns }
    }

    pub fn turn(&mut self, now_ns: u64) -> Turn {
        if self.in_flight {
            return Turn::WaitForEnd;
        }
        let waiting = self.variants.iter().enumerate().filter(|(_, next)| next.index < self.count);
        let Some((variant, next)) = waiting.min_by_key(|(variant, next)| (next.due_ns, next.index, *variant))
        else {
            return Turn::Done;
        };
        if next.due_ns > now_ns {
            return Turn::WaitUntil(next.due_ns);
        }
        // Another variant's invocation may have stood in the way: that is the schedule's doing, not lateness.
        let fire = Fire { variant, index: next.index, intended_ns: next.due_ns.max(self.last_end_ns) };
        self.in_flight = true;
        Turn::Fire(fire)
    }

    pub fn ended(&mut self, variant: usize, at_ns: u64) {
        self.in_flight = false;
        self.last_end_ns = self.last_end_ns.max(at_ns);
        let Some(next) = self.variants.get_mut(variant) else { return };
        let gap = self.gaps_ns.get(next.index as usize % self.gaps_ns.len().max(1)).copied().unwrap_or(0);
        *next = Next { index: next.index + 1, due_ns: at_ns.saturating_add(gap) };
    }
}
