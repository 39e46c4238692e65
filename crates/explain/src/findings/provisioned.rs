//! On-demand cold starts beside provisioned envs: more requests at once than provisioned.

use super::{Cause, Finding, Look, count};
use danki_model::{EnvId, InitializationType};
use danki_record::Start;

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
        .remedy(
            look.saving("Provision for the peak of requests at once, or let it scale on utilisation.", None),
        );
    vec![finding]
}
