//! A secret or parameter that is fetched again in each invocation. An env's first invocation must fetch and says nothing; so of envs that had
//! one invocation each, nothing is said.

use super::{Cause, Finding, Look, count};
use crate::variant::median;
use danki_record::{Change, Remedy};
use std::collections::{BTreeMap, BTreeSet};

/// Services that hold secrets and parameters.
const STORES: [&str; 2] = ["secretsmanager", "ssm"];
/// Invocations needed, and the share of them that must fetch.
const ENOUGH: usize = 3;
const NEARLY_EACH: f64 = 0.9;
/// The AWS Parameters and Secrets Lambda Extension's switch, and its default time to live.
const CACHE: &str = "PARAMETERS_SECRETS_EXTENSION_CACHE_ENABLED";
const TTL_S: &str = "300";

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut served = BTreeSet::new();
    let later: BTreeSet<_> = look
        .variant
        .invocations
        .iter()
        .filter(|(i, _)| !served.insert(i.env))
        .map(|(i, _)| &i.request_id)
        .collect();
    let mut fetches: BTreeMap<&str, (BTreeSet<_>, Vec<f64>)> = BTreeMap::new();
    for (id, call) in look.calls().filter(|(_, call)| STORES.contains(&call.service.as_str())) {
        let (ids, ms) = fetches.entry(call.service.as_str()).or_default();
        ids.insert(id);
        ms.push(call.ms());
    }
    let again = |ids: &BTreeSet<_>| ids.intersection(&later).count() as f64;
    let each = |(ids, _): &(BTreeSet<_>, Vec<f64>)| again(ids) >= NEARLY_EACH * later.len() as f64;
    let found = fetches.into_iter().filter(|(_, of)| later.len() >= ENOUGH && each(of));
    found.filter_map(|(service, (ids, ms))| {
        let one = median(ms.iter().copied())?;
        let saving = ms.iter().sum::<f64>() / look.n() as f64;
        let text = format!(
            "{} of {} fetch from {service}, {one:.1} ms each time (median): the value is not kept from one invocation to the next.",
            ids.len(),
            count(look.n(), "invocation"),
        );
        let finding = look
            .finding(Cause::SecretPerInvocation, text)
            .with("fetches", ms.len() as f64, "1")
            .with("fetch_median", one, "ms")
            .share(ms.iter().sum::<f64>() / look.total_ms().max(f64::MIN_POSITIVE))
            .examples(ids.iter().copied())
            .remedy(remedy(look, service, saving));
        Some(finding)
    })
    .collect()
}

fn remedy(look: &Look<'_>, service: &str, saving: f64) -> Remedy {
    let none = BTreeMap::new();
    let (text, change) = cache(look.setting().map_or(&none, |s| &s.environment), service);
    Remedy { change, ..look.saving(text, Some(saving)) }
}

/// An extension that was told not to cache is told to; without one it is the function's code that must keep the value.
fn cache(environment: &BTreeMap<String, String>, service: &str) -> (String, Option<Change>) {
    let is = |name: &str, value: &str| environment.get(name).is_some_and(|v| v.eq_ignore_ascii_case(value));
    let change = |name: &str, value: &str| {
        Some(Change::Environment { name: name.to_owned(), value: value.to_owned() })
    };
    let ttl = if service == "ssm" { "SSM_PARAMETER_STORE_TTL" } else { "SECRETS_MANAGER_TTL" };
    if is(CACHE, "false") {
        (format!("Let the secrets extension cache: {CACHE}=true."), change(CACHE, "true"))
    } else if is(ttl, "0") {
        let text = format!("Let the secrets extension cache: {ttl}={TTL_S}, its default, in seconds.");
        (text, change(ttl, TTL_S))
    } else {
        let text =
            "Keep it in a variable outside of the handler with a time to live, or use the secrets extension.";
        (text.to_owned(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_that_does_not_cache_is_told_to() {
        let check = |name: &str, value: &str, service: &str, expect: Option<(&str, &str)>| {
            let environment = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            let (_, change) = cache(&environment, service);
            let expect = expect
                .map(|(name, value)| Change::Environment { name: name.to_owned(), value: value.to_owned() });
            assert_eq!(change, expect, "{name}={value} {service}");
        };
        check(CACHE, "False", "ssm", Some((CACHE, "true")));
        check(CACHE, "true", "ssm", None);
        check("SECRETS_MANAGER_TTL", "0", "secretsmanager", Some(("SECRETS_MANAGER_TTL", "300")));
        check("SECRETS_MANAGER_TTL", "0", "ssm", None);
        check("SSM_PARAMETER_STORE_TTL", "0", "ssm", Some(("SSM_PARAMETER_STORE_TTL", "300")));
        check("SSM_PARAMETER_STORE_TTL", "60", "ssm", None);
    }
}
