//! The CPU quota held the function back: by how much, and what each memory size would leave.

use super::{Cause, Finding, Look, count};
use crate::variant::median;
use crate::{Part, SIZES_MB, Waterfall, predict};
use danki_model::billing::{Architecture, cost_usd};
use danki_model::{CpuModel, MemoryMb};
use danki_record::{Change, Invocation, Remedy};
use danki_stats::{LATTICE_MS, lattice_residual};

/// From this share of a variant's time on, throttling is worth a sentence.
const THROTTLED_SHARE: f64 = 0.05;
/// Durations are said to lie on the lattice when their median distance to it is below this, ms. Durations spread
/// evenly would be 5 ms away, AWS's own at 128 MB are 0.26 (published table T1).
const ON_LATTICE_MS: f64 = 2.0;
/// Durations needed before anything is said about their lattice.
const ENOUGH_DURATIONS: usize = 5;
/// Invocations that a prediction is made of; more would not change a median.
const PREDICTED: usize = 200;
/// A larger size is worth it while it takes off at least this share of the time left.
const WORTH: f64 = 0.10;

/// What a variant would be at one memory size.
#[derive(Clone, Copy, Debug)]
struct Size {
    mb: u32,
    /// Median Duration, ms.
    ms: f64,
    /// Share of Durations throttled.
    throttled: f64,
    usd_per_million: f64,
}

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let share = look.variant.share(Part::CpuThrottled);
    if share < THROTTLED_SHARE {
        return Vec::new();
    }
    let held: Vec<_> =
        look.variant.invocations.iter().filter(|(_, w)| w.parts[Part::CpuThrottled] > 0).collect();
    let Ok(residual) = lattice_residual(held.iter().map(|(i, _)| i.duration_ms), LATTICE_MS) else {
        return Vec::new();
    };
    let mut text = format!(
        "The CPU quota held the function back for {:.0} % of its time ({} of {}; {:.0} % was CPU in use): more memory \
         buys more CPU.",
        share * 100.0,
        held.len(),
        count(look.n(), "invocation"),
        look.variant.share(Part::CpuOn) * 100.0,
    );
    if held.len() >= ENOUGH_DURATIONS && residual < ON_LATTICE_MS {
        text.push_str(&format!(
            " Durations lie on the {LATTICE_MS:.0} ms lattice of quota periods (median distance {residual:.2} ms)."
        ));
    }
    let mut finding = look
        .finding(Cause::Throttled, text)
        .share(share)
        .with("throttled_share", share, "ratio")
        .with("throttled_invocations", held.len() as f64, "1")
        .with("lattice_residual_median", residual, "ms")
        .examples(held.iter().map(|(i, _)| &i.request_id));
    if let Some(sizes) =
        look.setting().and_then(|s| sizes(&look.variant.invocations, s.memory, look.context.cpu_model))
    {
        for size in &sizes {
            finding = finding
                .with(format!("throttled_share_at_{}", size.mb), size.throttled, "ratio")
                .with(format!("duration_at_{}", size.mb), size.ms, "ms")
                .with(format!("usd_per_million_at_{}", size.mb), size.usd_per_million, "USD");
        }
        finding.remedy = remedy(&sizes);
    }
    vec![finding]
}

/// The present size first, then those above it.
fn sizes(invocations: &[(Invocation, Waterfall)], now: MemoryMb, cpu: CpuModel) -> Option<Vec<Size>> {
    let step = invocations.len().div_ceil(PREDICTED).max(1);
    let sample: Vec<_> = invocations.iter().step_by(step).collect();
    let measured = median(sample.iter().map(|(i, _)| i.duration_ms))?;
    let at = |memory: MemoryMb| {
        let all: Vec<_> = sample.iter().map(|(_, w)| predict(w, memory, cpu)).collect();
        let ms = median(all.iter().map(|p| p.ms))?;
        let (sum, throttled) = all.iter().fold((0.0, 0.0), |(s, t), p| (s + p.ms, t + p.throttled_ms));
        Some((ms, if sum > 0.0 { throttled / sum } else { 0.0 }))
    };
    let sizes = std::iter::once(now.mb()).chain(SIZES_MB.into_iter().filter(|mb| *mb > now.mb()));
    let mut told = Vec::new();
    for mb in sizes {
        let memory = MemoryMb::try_from(mb).ok()?;
        let (predicted, throttled) = at(memory)?;
        let ms = if mb == now.mb() { measured } else { predicted.min(measured) };
        let usd = 1e6 * cost_usd((ms.ceil() as u64).max(1), memory, 512, Architecture::X86);
        told.push(Size { mb, ms, throttled, usd_per_million: usd });
    }
    Some(told)
}

/// The smallest size from which on the next one takes off little.
fn remedy(sizes: &[Size]) -> Option<Remedy> {
    let now = sizes.first()?;
    let enough =
        sizes.windows(2).find(|w| w[1].ms > w[0].ms * (1.0 - WORTH)).map_or(sizes.last(), |w| w.first())?;
    let best = if enough.mb == now.mb { sizes.get(1)? } else { enough };
    let text = format!(
        "{} MB instead of {}: about {:.1} ms instead of {:.1} at the median, {:.0} % throttled, USD {:.2} instead of \
         {:.2} per million.",
        best.mb,
        now.mb,
        best.ms,
        now.ms,
        best.throttled * 100.0,
        best.usd_per_million,
        now.usd_per_million,
    );
    Some(Remedy {
        text,
        saves_ms: Some(now.ms - best.ms),
        saves_usd_per_million: Some(now.usd_per_million - best.usd_per_million),
        change: Some(Change::Memory { mb: best.mb }),
    })
}
