//! Which memory size? What was measured per size, and which is best for what.

use danki_model::MemoryMb;
use danki_model::billing::{Architecture, cost_usd};
use danki_record::{Event, Invocation, VariantSummary};
use danki_runview::Run;

/// One memory size as measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// The variant.
    pub variant: String,
    /// MB.
    pub memory_mb: u32,
    /// Median Duration of invocations that found a warm env, ms.
    pub p50: f64,
    /// Its 95 % interval, if there were enough.
    pub p50_interval: Option<[f64; 2]>,
    /// 99th percentile of the same, ms.
    pub p99: f64,
    /// Longest init, ms: cold starts are told apart.
    pub init: Option<f64>,
    /// USD per million warm invocations, requests included.
    pub usd_per_million: f64,
    /// Share of Durations throttled.
    pub throttled: f64,
}

/// Positions of the best sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optimum {
    /// Cheapest.
    pub cost: usize,
    /// Fastest at the median; of sizes within 3 % of it, the smallest.
    pub speed: usize,
    /// Least p50 × cost: a per cent of time is worth a per cent of money.
    pub balanced: usize,
}

/// A larger size must be faster by more than this to be called faster.
const WORTH: f64 = 0.03;

/// What a run has measured per variant; those without warm invocations are left out.
pub fn sizes(run: &Run) -> Vec<Size> {
    let size = |v: &VariantSummary| {
        let warm = &v.warm_duration_ms;
        Some(Size {
            variant: v.name.clone(),
            memory_mb: v.memory_mb,
            p50: warm.p50?,
            p50_interval: warm.p50_interval,
            p99: warm.p99?,
            init: v.init_ms.iter().copied().reduce(f64::max),
            usd_per_million: usd_per_million(run, v)?,
            throttled: v.throttled_ratio,
        })
    };
    run.summary.variants.iter().filter_map(size).collect()
}

/// The best of them; none if there are none.
pub fn tuned(sizes: &[Size]) -> Option<Optimum> {
    let best = |by: &dyn Fn(&Size) -> f64| {
        let positions = 0..sizes.len();
        positions.min_by(|a, b| by(&sizes[*a]).total_cmp(&by(&sizes[*b])))
    };
    let fastest = sizes[best(&|s| s.p50)?].p50;
    let near = (0..sizes.len()).filter(|at| sizes[*at].p50 <= fastest * (1.0 + WORTH));
    Some(Optimum {
        cost: best(&|s| s.usd_per_million)?,
        speed: near.min_by_key(|at| sizes[*at].memory_mb)?,
        balanced: best(&|s| s.p50 * s.usd_per_million)?,
    })
}

/// Mean cost of invocations that found a warm env; of all, if none did.
pub(crate) fn usd_per_million(run: &Run, v: &VariantSummary) -> Option<f64> {
    let memory = MemoryMb::try_from(v.memory_mb).ok()?;
    let all = run.events.iter().filter_map(|event| match event {
        Event::Invocation(i) if i.variant == v.name && !i.ping => Some(i),
        _ => None,
    });
    let all: Vec<&Invocation> = all.collect();
    let warm: Vec<&Invocation> = all.iter().copied().filter(|i| i.init_ms.is_none()).collect();
    let counted = if warm.is_empty() { &all } else { &warm };
    if counted.is_empty() {
        return None;
    }
    let cost = |i: &&Invocation| cost_usd(i.billed_ms, memory, 512, Architecture::X86);
    Some(counted.iter().map(cost).sum::<f64>() / counted.len() as f64 * 1e6)
}
