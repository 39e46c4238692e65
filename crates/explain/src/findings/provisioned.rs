//! On-demand cold starts beside provisioned envs: more requests at once than provisioned.

use super::{Cause, Finding, Look, count};
use crate::Part;
use danki_model::{EnvId, InitializationType};
use danki_record::{Change, Remedy, Start};

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let name = Some(look.variant.name.as_str());
    let of = |env: EnvId| look.facts.of_env(env).and_then(|e| e.initialization);
    let provisioned = look.facts.envs.iter().filter(|(id, e)| {
        let ours =
            e.variant.as_deref() == name || look.variant.invocations.iter().any(|(i, _)| i.env == **id);
        ours && e.initialization == Some(InitializationType::ProvisionedConcurrency)
    });
    let provisioned = provisioned.count();
    let spilled: Vec<_> = look
        .variant
        .invocations
        .iter()
        .map(|(i, _)| i)
        .filter(|i| of(i.env) == Some(InitializationType::OnDemand))
        .collect();
    if provisioned == 0 || spilled.is_empty() {
        return Vec::new();
    }
    let cold = spilled.iter().filter(|i| i.start == Start::Cold).count();
    let of_cold = look.variant.invocations.iter().filter(|(i, _)| i.start == Start::Cold);
    let waited_ms: f64 =
        of_cold.map(|(_, w)| (w.parts[Part::Init] + w.parts[Part::EnvWait]) as f64 / 1e6).sum();
    let envs = at_once(look);
    let text = format!(
        "{} of {} ran outside of the {}, {cold} of them as an on-demand cold start: more requests \
         at once than provisioned, or they came before the provisioned envs were ready.",
        spilled.len(),
        count(look.n(), "invocation"),
        count(provisioned, "provisioned env"),
    );
    let finding = look
        .finding(Cause::PcSpillover, text)
        .with("spilled", spilled.len() as f64, "1")
        .with("spilled_cold", cold as f64, "1")
        .with("provisioned_envs", provisioned as f64, "1")
        .examples(spilled.iter().map(|i| &i.request_id))
        .with("at_once", f64::from(envs), "1")
        .remedy(Remedy {
            change: Some(Change::ProvisionedConcurrency { envs }),
            ..look.saving(
                format!("Provision for the peak of requests at once ({envs} here), or let it scale on utilisation."),
                Some(waited_ms / look.n().max(1) as f64),
            )
        });
    vec![finding]
}

/// Most invocations at once.
fn at_once(look: &Look<'_>) -> u32 {
    let spans = || look.variant.invocations.iter().map(|(i, _)| (i.dispatched_ns, i.finished_ns));
    let during = |at_ns| spans().filter(|(from, to)| (*from..*to).contains(&at_ns)).count();
    let most = spans().map(|(from, _)| during(from)).max().unwrap_or(0);
    u32::try_from(most).unwrap_or(u32::MAX)
}
