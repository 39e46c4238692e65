//! Can this machine do what an experiment asks for? Added up before anything runs.

use crate::Error;
use crate::experiment::{Experiment, Variant};
use crate::machine;
use danki_load::Load;
use danki_model::CpuModel;

/// What link, region and danki itself take of the CPUs while a run is on, in CPUs: the link's thread spins briefly
/// before each release, the region terminates TLS. An estimate that errs on the small side.
const OWN_CPUS: f64 = 0.2;
/// How long an invocation may be taken to last when an open load's concurrency is estimated.
const OPEN_DURATION_S: f64 = 0.2;

/// CPUs that may be busy at once on the experiment's behalf.
pub fn cpus_needed(experiment: &Experiment) -> f64 {
    let at_once = match &experiment.load {
        Load::Sequence { .. } | Load::Steps { .. } => 1.0,
        Load::Closed { clients, .. } => f64::from(*clients),
        Load::Open { rate_per_s, max_in_flight, .. } => {
            (rate_per_s * OPEN_DURATION_S).clamp(1.0, f64::from(*max_in_flight))
        }
    };
    // Variants never run at the same time.
    let largest = experiment.variants.iter().map(|v| v.function.memory.vcpus()).fold(0.0, f64::max);
    // Their provisioned envs initialise at the same time.
    let provisioned =
        |v: &Variant| f64::from(v.provisioned_concurrency.unwrap_or(0)) * v.function.memory.vcpus();
    let ahead: f64 = experiment.variants.iter().map(provisioned).sum();
    (at_once * largest).max(ahead) + OWN_CPUS
}

/// Refuses an experiment that the machine cannot run faithfully. With `force` the refusal becomes a caveat.
pub fn check(experiment: &Experiment, cpus: u32, force: bool) -> Result<Option<String>, Error> {
    let needed = cpus_needed(experiment);
    if needed <= f64::from(cpus) {
        return Ok(None);
    }
    let what = format!(
        "the experiment may keep {needed:.1} CPUs busy at once (memory/1,769 each, and {OWN_CPUS} for danki), this machine has {cpus}"
    );
    if force {
        return Ok(Some(format!("saturated: {what}; run by --force")));
    }
    Err(Error::Demand { what: format!("{what}: results would not be Lambda's") })
}

/// Whether this machine can run a variant of an experiment faithfully.
pub fn fits(experiment: &Experiment, variant: &Variant) -> bool {
    let alone = Experiment { variants: vec![variant.clone()], ..experiment.clone() };
    cpus_needed(&alone) <= f64::from(machine::cpus())
}

/// How CPU quotas are set on a machine whose core does `factor` Lambda vCPUs. Refuses what cannot be scaled soundly.
pub fn cpu_model(experiment: &Experiment, factor: Option<f64>) -> Result<CpuModel, Error> {
    let model = experiment.host.cpu_model.unwrap_or_default().with(factor)?;
    for variant in &experiment.variants {
        model.quota_us(variant.function.memory)?;
    }
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use std::path::Path;

    #[test]
    fn more_than_the_machine_has_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("index.js"), "").expect("written");
        let holds = |memory: u32, load: &str, fits: bool| {
            let text = format!("name = 'x'\n[function]\ndir = '.'\nmemory_mb = {memory}\n[load]\n{load}");
            let e = Experiment::parse(&text, "x", Path::new(dir.path()), &Options::default()).expect("fine");
            assert_eq!(check(&e, 2, false).is_ok(), fits, "{memory} MB {load}: {}", cpus_needed(&e));
            assert_eq!(check(&e, 2, true).expect("forced").is_none(), fits);
        };
        holds(1_769, "kind = 'sequence'\ncount = 1", true);
        holds(10_240, "kind = 'sequence'\ncount = 1", false);
        holds(128, "kind = 'closed'\nclients = 20\ninvocations = 40", true);
        holds(1_769, "kind = 'closed'\nclients = 2\ninvocations = 4", false);
        let ahead = "[[variant]]\nname = 'pc'\nprovisioned_concurrency";
        holds(1_769, &format!("kind = 'sequence'\ncount = 1\n{ahead} = 1"), true);
        holds(1_769, &format!("kind = 'sequence'\ncount = 1\n{ahead} = 2"), false);
        holds(128, "kind = 'open'\nrate_per_s = 50\ncount = 40", true);
    }

    #[test]
    fn quotas_are_scaled_for_all_variants_or_for_none() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("index.js"), "").expect("written");
        let experiment = |cpu_model: &str, memory: &str| {
            let text = format!(
                "name = 'x'\n[host]\ncpu_model = '{cpu_model}'\n[function]\ndir = '.'\nmemory_mb = {memory}"
            );
            Experiment::parse(&text, "x", Path::new(dir.path()), &Options::default()).expect("fine")
        };
        let both = "128\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\nmemory_mb = 1_769";
        assert_eq!(cpu_model(&experiment("host", both), None).expect("not scaled"), CpuModel::Host);
        let half = CpuModel::Scaled { factor: 0.5 };
        assert_eq!(cpu_model(&experiment("scaled", "128"), Some(0.5)).expect("sound"), half);
        for (memory, factor) in [("128", None), ("128", Some(1.6)), (both, Some(0.5))] {
            let refused = cpu_model(&experiment("scaled", memory), factor);
            assert!(matches!(&refused, Err(Error::Scale(_))), "{memory} {factor:?}: {refused:?}");
        }
    }
}
