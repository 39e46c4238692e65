//! Init that is long by itself, and init that had to be done again.

use super::{Cause, Finding, Look, count};
use crate::EnvFacts;
use crate::cpu::buckets;
use crate::variant::median;
use danki_record::{Confidence, Span, Start};

/// CPU time in init above which it is called heavy, ms: bare Node and Python take 75 to 180 on a busy machine
/// (`explain-corpus`).
const HEAVY_CPU_MS: f64 = 300.0;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    heavy(look).into_iter().chain(repeated(look)).collect()
}

/// Init spans of the variant's envs, with the CPU used in each.
fn inits(look: &Look<'_>) -> Vec<(Span, f64)> {
    let name = Some(look.variant.name.as_str());
    let served = |id| look.variant.invocations.iter().any(|(i, _)| i.env == id);
    let envs = look.facts.envs.iter().filter(|(id, env)| env.variant.as_deref() == name || served(**id));
    envs.flat_map(|(_, env)| env.inits.iter().map(|span| (*span, cpu_ms(env, *span)))).collect()
}

fn cpu_ms(env: &EnvFacts, inside: Span) -> f64 {
    let within = |b: &crate::cpu::Bucket| b.span.from_ns >= inside.from_ns && b.span.to_ns <= inside.to_ns;
    let used = |series| buckets(series).into_iter().filter(within).map(|b| b.used_ns).sum::<u64>();
    env.cpu.iter().map(used).sum::<u64>() as f64 / 1e6
}

fn heavy(look: &Look<'_>) -> Option<Finding> {
    let all = inits(look);
    let cpu = median(all.iter().map(|(_, cpu)| *cpu))?;
    let span = median(all.iter().map(|(span, _)| span.len_ns() as f64 / 1e6))?;
    if cpu < HEAVY_CPU_MS {
        return None;
    }
    let cold: Vec<_> = look.variant.invocations.iter().filter(|(i, _)| i.start == Start::Cold).collect();
    let text = format!(
        "Init takes {span:.0} ms (median of {}), {cpu:.0} ms of it CPU: loading modules and what they do when loaded. Every \
         cold start pays it, and it is billed.",
        all.len(),
    );
    let finding = look
        .finding(Cause::InitHeavy, text)
        .with("init_median", span, "ms")
        .with("init_cpu_median", cpu, "ms")
        .with("inits", all.len() as f64, "1")
        .confidence(Confidence::High)
        .examples(cold.iter().map(|(i, _)| &i.request_id))
        .remedy(look.saving(
            "Load less: bundle and minify, import only the clients that are used, put off what the first request does not need. \
             More memory does not help: an on-demand init has a whole vCPU already.",
            None,
        ));
    Some(finding)
}

fn repeated(look: &Look<'_>) -> Option<Finding> {
    let again: Vec<_> =
        look.variant.invocations.iter().filter(|(i, _)| i.start == Start::Suppressed).collect();
    let init = median(again.iter().map(|(_, w)| w.parts[crate::Part::Init] as f64 / 1e6))?;
    let text = format!(
        "{} initialised again inside their Duration, {init:.1} ms at the median: the invocation before had ended the env's \
         processes (time-out, crash, exit).",
        count(again.len(), "invocation")
    );
    let finding = look
        .finding(Cause::InitRepeated, text)
        .with("suppressed", again.len() as f64, "1")
        .with("init_median", init, "ms")
        .examples(again.iter().map(|(i, _)| &i.request_id))
        .remedy(look.saving(
            "Catch the error, or raise the timeout: an ordinary exception keeps the env alive.",
            None,
        ));
    Some(finding)
}
