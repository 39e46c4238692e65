//! What an invocation would take at another memory size: its own sequence of CPU and waiting, played against another quota.
//!
//! From a waterfall come stretches of CPU (which a quota stretches) and of waiting (which it does not); throttles are left
//! out, as they are the quota's. They are replayed with the other size's quota per period, over several offsets of the
//! period's begin, because a run does not choose its own; the mean of the offsets counts.
//!
//! Limits: one thread at a time (a second vCPU above 1,769 MB buys nothing here); endpoints do not get faster; waiting that
//! was hidden behind a throttle does not come back.

use crate::{Part, Waterfall};
use danki_model::{CpuModel, MemoryMb, PERIOD_US, VCPU_MB};

/// Memory sizes worth a prediction: the usual steps, and the one that buys a whole vCPU.
pub const SIZES_MB: [u32; 6] = [128, 256, 512, 1_024, 1_769, 3_008];

/// Offsets of the period's begin that are tried.
const OFFSETS: u64 = 5;
const PERIOD_NS: u64 = PERIOD_US * 1_000;

/// A prediction for one invocation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Predicted {
    /// From the event's delivery to the response, ms.
    pub ms: f64,
    /// Of it throttled, ms.
    pub throttled_ms: f64,
}

/// What an invocation would take with `memory`, on cores as `cpu` says.
pub fn predict(w: &Waterfall, memory: MemoryMb, cpu: CpuModel) -> Predicted {
    let quota_ns = PERIOD_NS * u64::from(memory.mb()) / u64::from(VCPU_MB);
    let mut sum = Predicted::default();
    for k in 0..OFFSETS {
        let one = replay(w, cpu, quota_ns, PERIOD_NS * k / OFFSETS);
        sum.ms += one.ms / OFFSETS as f64;
        sum.throttled_ms += one.throttled_ms / OFFSETS as f64;
    }
    sum
}

fn replay(w: &Waterfall, cpu: CpuModel, quota_ns: u64, offset_ns: u64) -> Predicted {
    let mut clock = Clock { now: offset_ns, left: quota_ns, quota_ns, throttled: 0 };
    for s in &w.segments {
        match s.part {
            // What the quota, the platform or this machine took is not the function's.
            Part::EnvWait | Part::Init | Part::Thaw | Part::CpuThrottled | Part::CpuWait => {}
            Part::CpuOn => clock.run(cpu.lambda_ns(s.span.len_ns())),
            _ => clock.wait(s.span.len_ns()),
        }
    }
    Predicted { ms: (clock.now - offset_ns) as f64 / 1e6, throttled_ms: clock.throttled as f64 / 1e6 }
}

/// Time under a quota.
struct Clock {
    now: u64,
    /// Of this period's quota.
    left: u64,
    quota_ns: u64,
    throttled: u64,
}

impl Clock {
    fn until_refill(&self) -> u64 {
        PERIOD_NS - self.now % PERIOD_NS
    }

    fn wait(&mut self, ns: u64) {
        if ns >= self.until_refill() {
            self.left = self.quota_ns;
        }
        self.now += ns;
    }

    fn run(&mut self, mut ns: u64) {
        if self.quota_ns >= PERIOD_NS {
            self.now += ns;
            return;
        }
        // Whole periods at once: from a refill on, each one runs for the quota and is throttled for the rest.
        while ns > 0 {
            if self.left == self.quota_ns && self.now.is_multiple_of(PERIOD_NS) && ns > self.quota_ns {
                let periods = (ns - 1) / self.quota_ns;
                ns -= periods * self.quota_ns;
                self.now += periods * PERIOD_NS;
                self.throttled += periods * (PERIOD_NS - self.quota_ns);
            }
            let step = ns.min(self.left).min(self.until_refill());
            let refilled = step == self.until_refill();
            (self.now, self.left, ns) = (self.now + step, self.left - step, ns - step);
            if refilled {
                self.left = self.quota_ns;
            } else if self.left == 0 && ns > 0 {
                let pause = self.until_refill();
                self.now += pause;
                self.throttled += pause;
                self.left = self.quota_ns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PartTimes, Segment};
    use danki_model::RequestId;
    use danki_record::Span;
    use proptest::prelude::*;

    fn invocation(pieces: &[(Part, u64)]) -> Waterfall {
        let mut now = 0;
        let segment = |&(part, us): &(Part, u64)| {
            let span = Span { from_ns: now, to_ns: now + us * 1_000 };
            now = span.to_ns;
            Segment { part, span }
        };
        let segments: Vec<Segment> = pieces.iter().map(segment).collect();
        Waterfall {
            request_id: RequestId("r".to_owned()),
            span: Span { from_ns: 0, to_ns: now },
            parts: PartTimes::default(),
            inclusive: PartTimes::default(),
            segments,
            calls: Vec::new(),
        }
    }

    fn memory(mb: u32) -> MemoryMb {
        MemoryMb::try_from(mb).expect("in range")
    }

    #[test]
    fn cpu_is_stretched_and_waiting_is_not() {
        let w =
            invocation(&[(Part::CpuOn, 10_000), (Part::CpuThrottled, 120_000), (Part::ServiceTime, 5_000)]);
        let whole = predict(&w, memory(1_769), CpuModel::Host);
        assert!((whole.ms - 15.0).abs() < 1e-6 && whole.throttled_ms == 0.0, "{whole:?}");
        // 10 ms of CPU in portions of 1.447 ms: six whole periods and a bit.
        let small = predict(&w, memory(128), CpuModel::Host);
        assert!((105.0..=130.0).contains(&small.ms), "{small:?}");
        let long = predict(&invocation(&[(Part::CpuOn, 60_000_000)]), memory(128), CpuModel::Host);
        assert!((long.ms / (60_000.0 * 1_769.0 / 128.0) - 1.0).abs() < 0.01, "{long:?}");
        // Half the speed of a Lambda vCPU: there it is 5 ms of CPU.
        let there = predict(&w, memory(1_769), CpuModel::Scaled { factor: 0.5 });
        assert!((there.ms - 10.0).abs() < 1e-6, "{there:?}");
    }

    proptest! {
        #[test]
        fn more_memory_is_never_slower(cpu in prop::collection::vec((0_u64..50_000, 0_u64..50_000), 1..6)) {
            let pieces: Vec<(Part, u64)> =
                cpu.iter().flat_map(|(on, wait)| [(Part::CpuOn, *on), (Part::ServiceTime, *wait)]).collect();
            let w = invocation(&pieces);
            let times: Vec<Predicted> = SIZES_MB.iter().map(|mb| predict(&w, memory(*mb), CpuModel::Host)).collect();
            let needed = cpu.iter().map(|(on, wait)| (on + wait) as f64 / 1e3).sum::<f64>();
            for p in &times {
                prop_assert!((p.ms - p.throttled_ms - needed).abs() < 1e-3, "{p:?} {needed}");
            }
            prop_assert!(times.windows(2).all(|t| t[1].ms <= t[0].ms + 20.0), "{times:?}");
        }
    }
}
