//! Whose time the hypervisor took.
//!
//! The kernel tells it in steps of 10 ms, long after: an invocation of 9 ms that lost 2 sees no step, a later one sees those of
//! several. So a step is shared among all that ran since the step before it, danki itself too, by how much CPU each used: a CPU can
//! be taken only from who is running on it.

use danki_model::EnvId;
use danki_record::{CpuSample, CpuWaitCounted, CpuWaitSample, CpuWaitSeries, Span};

/// A step says nothing of what was longer ago: at least 1 % of a CPU is taken where it is worth telling.
const MEMORY_NS: u64 = 1_000_000_000;

/// What ran since the last step.
#[derive(Debug, Default)]
pub struct Thefts {
    taken_ns: u64,
    own_ns: u64,
    since_ns: u64,
    open: Vec<(EnvId, CpuSample)>,
    closed: Vec<Run>,
}

/// An env was watched for this time, and used so much CPU.
#[derive(Clone, Copy, Debug)]
struct Run {
    env: EnvId,
    span: Span,
    used_ns: u64,
}

impl Run {
    fn between(env: EnvId, first: CpuSample, last: CpuSample) -> Run {
        let span = Span { from_ns: first.at_ns, to_ns: last.at_ns };
        Run { env, span, used_ns: last.usage_ns.saturating_sub(first.usage_ns) }
    }
}

impl Thefts {
    /// An env is watched from now on.
    pub fn begin(&mut self, env: EnvId, first: CpuSample) {
        self.open.push((env, first));
    }

    /// No longer.
    pub fn end(&mut self, env: EnvId, last: CpuSample) {
        if let Some(at) = self.open.iter().position(|(open, _)| *open == env) {
            let (env, first) = self.open.swap_remove(at);
            self.closed.push(Run::between(env, first, last));
        }
    }

    /// So much was taken so far, and danki has used so much: each env's share of what is new. `latest` knows the last sample of each
    /// env that is watched.
    pub fn told(
        &mut self,
        (taken_ns, own_ns, at_ns): (u64, u64, u64),
        latest: impl Fn(EnvId) -> Option<CpuSample>,
    ) -> Vec<CpuWaitSeries> {
        self.since_ns = self.since_ns.max(at_ns.saturating_sub(MEMORY_NS));
        let since_ns = self.since_ns;
        self.closed.retain(|run| run.span.to_ns > since_ns);
        let step_ns = taken_ns.saturating_sub(self.taken_ns);
        if self.closed.is_empty() && self.open.is_empty() {
            self.own_ns = own_ns;
        }
        if step_ns == 0 {
            return Vec::new();
        }
        let mut runs = std::mem::take(&mut self.closed);
        for (env, first) in &mut self.open {
            if let Some(last) = latest(*env).filter(|last| last.at_ns > first.at_ns) {
                runs.push(Run::between(*env, *first, last));
                *first = last;
            }
        }
        let others_ns = own_ns.saturating_sub(self.own_ns);
        (self.taken_ns, self.own_ns, self.since_ns) = (taken_ns, own_ns, at_ns);
        let all_ns = others_ns + runs.iter().map(|run| run.used_ns).sum::<u64>();
        let lost_ns = |run: &Run| (step_ns as f64 * run.used_ns as f64 / all_ns as f64) as u64;
        runs.iter().filter(|run| run.used_ns > 0).map(|run| series(run, lost_ns(run))).collect()
    }
}

fn series(run: &Run, lost_ns: u64) -> CpuWaitSeries {
    let sample = |at_ns, waited_ns| CpuWaitSample { at_ns, waited_ns };
    let samples = vec![sample(run.span.from_ns, 0), sample(run.span.to_ns, lost_ns)];
    CpuWaitSeries { env: run.env, counted: CpuWaitCounted::Stolen, samples }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sample(at_ms: u64, used_ms: u64) -> CpuSample {
        CpuSample { at_ns: at_ms * MS, usage_ns: used_ms * MS, throttled_ns: 0 }
    }

    /// (env, from, to, lost), ms, with the CPU that env 2 has used up to `at`.
    fn told(thefts: &mut Thefts, taken: u64, own: u64, at: u64, used: u64) -> Vec<(u32, u64, u64, u64)> {
        let latest = |env| (env == EnvId(2)).then(|| sample(at, used));
        let all = thefts.told((taken * MS, own * MS, at * MS), latest);
        let of = |s: &CpuWaitSeries| {
            let (first, last) = (s.samples[0], s.samples[1]);
            (s.env.0, first.at_ns / MS, last.at_ns / MS, last.waited_ns / MS)
        };
        all.iter().map(of).collect()
    }

    #[test]
    fn a_step_is_shared_by_use_among_all_that_ran_since_the_last() {
        let mut thefts = Thefts::default();
        thefts.begin(EnvId(1), sample(1_000, 50));
        thefts.end(EnvId(1), sample(1_009, 52));
        assert_eq!(told(&mut thefts, 0, 0, 1_020, 0), []);
        thefts.begin(EnvId(2), sample(1_020, 0));
        // Of 8 ms of CPU env 1 used 2, env 2 5, danki 1.
        assert_eq!(told(&mut thefts, 16, 1, 1_041, 5), [(1, 1_000, 1_009, 4), (2, 1_020, 1_041, 10)]);
        // What was told is not told again, and what was used before is not blamed again.
        assert_eq!(told(&mut thefts, 16, 1, 1_061, 5), []);
        thefts.end(EnvId(2), sample(1_071, 6));
        assert_eq!(told(&mut thefts, 26, 2, 1_081, 6), [(2, 1_041, 1_071, 5)]);
        // Only danki ran.
        assert_eq!(told(&mut thefts, 36, 5, 1_101, 6), []);
    }

    #[test]
    fn a_step_does_not_blame_what_is_long_gone() {
        let mut thefts = Thefts::default();
        thefts.begin(EnvId(1), sample(0, 0));
        thefts.end(EnvId(1), sample(100, 50));
        thefts.end(EnvId(3), sample(60, 10));
        thefts.begin(EnvId(2), sample(2_000, 0));
        assert_eq!(told(&mut thefts, 10, 0, 3_000, 50), [(2, 2_000, 3_000, 10)]);
    }
}
