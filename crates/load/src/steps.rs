//! Each variant goes its own way through the same steps; one invocation at a time, whoever's turn comes first.

use crate::Step;
use crate::schedule::{Fire, Turn, ns};

#[derive(Clone, Debug)]
pub struct Steps {
    program: Vec<Op>,
    variants: Vec<Way>,
    in_flight: bool,
    last_end_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Invoke,
    Wait(u64),
    UntilReady,
}

/// How far a variant is.
#[derive(Clone, Copy, Debug)]
struct Way {
    at: usize,
    index: u32,
    due_ns: u64,
    is_ready: bool,
}

impl Steps {
    pub fn new(steps: &[Step], variants: usize, time_scale: f64, start_ns: u64) -> Steps {
        let one = |step: &Step| match *step {
            Step::Invoke(n) => vec![Op::Invoke; n as usize],
            Step::WaitMs(ms) => vec![Op::Wait(ns(ms / 1_000.0 / time_scale))],
            Step::UntilPcReady => vec![Op::UntilReady],
        };
        let program: Vec<Op> = steps.iter().flat_map(one).collect();
        let mut way = Way { at: 0, index: 0, due_ns: start_ns, is_ready: false };
        way.advance(&program);
        Steps { program, variants: vec![way; variants], in_flight: false, last_end_ns: start_ns }
    }

    pub fn turn(&mut self, now_ns: u64) -> Turn {
        if self.in_flight {
            return Turn::WaitForEnd;
        }
        let invokes = |way: &Way| matches!(self.program.get(way.at), Some(Op::Invoke));
        let due = self.variants.iter().enumerate().filter(|(_, way)| invokes(way));
        let Some((variant, way)) = due.min_by_key(|(variant, way)| (way.due_ns, way.index, *variant)) else {
            let waits = self.variants.iter().any(|way| way.at < self.program.len());
            return if waits { Turn::WaitForReady } else { Turn::Done };
        };
        if way.due_ns > now_ns {
            return Turn::WaitUntil(way.due_ns);
        }
        // Another variant's invocation may have stood in the way: that is the schedule's doing, not lateness.
        let fire = Fire { variant, index: way.index, intended_ns: way.due_ns.max(self.last_end_ns) };
        self.in_flight = true;
        Turn::Fire(fire)
    }

    pub fn ended(&mut self, variant: usize, at_ns: u64) {
        self.in_flight = false;
        self.last_end_ns = self.last_end_ns.max(at_ns);
        if let Some(way) = self.variants.get_mut(variant) {
            (way.at, way.index, way.due_ns) = (way.at + 1, way.index + 1, at_ns);
            way.advance(&self.program);
        }
    }

    pub fn ready(&mut self, variant: usize, at_ns: u64) {
        let Some(way) = self.variants.get_mut(variant) else { return };
        way.is_ready = true;
        if let Some(Op::UntilReady) = self.program.get(way.at) {
            way.due_ns = way.due_ns.max(at_ns);
            way.advance(&self.program);
        }
    }
}

impl Way {
    /// To the next invocation, or to what it has to wait for.
    fn advance(&mut self, program: &[Op]) {
        while let Some(op) = program.get(self.at) {
            match op {
                Op::Invoke => return,
                Op::UntilReady if !self.is_ready => return,
                Op::UntilReady => {}
                Op::Wait(gap_ns) => self.due_ns = self.due_ns.saturating_add(*gap_ns),
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn fire(variant: usize, index: u32, intended_ns: u64) -> Turn {
        Turn::Fire(Fire { variant, index, intended_ns })
    }

    #[test]
    fn a_variant_waits_for_its_own_allocation_and_its_own_gaps() {
        let program =
            [Step::Invoke(1), Step::UntilPcReady, Step::Invoke(1), Step::WaitMs(30_000.0), Step::Invoke(1)];
        let mut steps = Steps::new(&program, 2, 10.0, 0);
        assert_eq!(steps.turn(0), fire(0, 0, 0));
        assert_eq!(steps.turn(0), Turn::WaitForEnd);
        steps.ended(0, S);
        assert_eq!(steps.turn(S), fire(1, 0, S), "one at a time");
        steps.ended(1, 2 * S);
        assert_eq!(steps.turn(2 * S), Turn::WaitForReady);
        steps.ready(1, 9 * S);
        assert_eq!(steps.turn(9 * S), fire(1, 1, 9 * S));
        steps.ended(1, 10 * S);
        // 30 s are 3 s at scale 10; the other one is not ready yet.
        assert_eq!(steps.turn(10 * S), Turn::WaitUntil(13 * S));
        steps.ready(0, 11 * S);
        assert_eq!(steps.turn(11 * S), fire(0, 1, 11 * S));
        steps.ended(0, 12 * S);
        assert_eq!(steps.turn(13 * S), fire(1, 2, 13 * S));
        steps.ended(1, 14 * S);
        assert_eq!(steps.turn(15 * S), fire(0, 2, 15 * S));
        steps.ended(0, 16 * S);
        assert_eq!(steps.turn(16 * S), Turn::Done);
    }

    #[test]
    fn who_is_ready_before_he_asks_does_not_wait() {
        let mut steps = Steps::new(&[Step::UntilPcReady, Step::Invoke(2)], 1, 1.0, 0);
        assert_eq!(steps.turn(0), Turn::WaitForReady);
        steps.ready(0, S);
        steps.ready(0, 2 * S);
        assert_eq!(steps.turn(5 * S), fire(0, 0, S));
        steps.ended(0, 6 * S);
        assert_eq!(steps.turn(6 * S), fire(0, 1, 6 * S));
    }
}
