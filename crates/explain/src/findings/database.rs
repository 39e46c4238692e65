//! Connections to a database: waited for, tied down, or opened by everybody at once.

use super::{Cause, Finding, Look, count};
use crate::DatabaseSetting;
use crate::database::{connections, summarise, waited_in};
use danki_record::{Change, DatabaseCounts, Remedy};

/// Waiting for connections must take this share of the variant's time or of p95, or end in vain.
const WAIT_SHARE: f64 = 0.05;
/// Nearly every invocation opens a connection, and there are enough of them.
const NEARLY_ALL: f64 = 0.9;
const ENOUGH: usize = 10;
/// Concurrency that an AWS account has without asking (Lambda's quotas).
const ACCOUNT: u32 = 1_000;
/// RDS Proxy's price in us-east-1: USD per hour and vCPU of the database, of which it counts 2 at the least (aws.amazon.com/rds/proxy/pricing).
const USD_PER_VCPU_HOUR: f64 = 0.015;
const HOURS_PER_MONTH: f64 = 730.0;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let Some(setting) = look.context.databases.get(&look.variant.name) else { return Vec::new() };
    let of_variant = |name: &Option<String>| name.as_deref() == Some(&*look.variant.name);
    let envs: Vec<_> = look.facts.envs.values().filter(|env| of_variant(&env.variant)).collect();
    let counts = summarise(setting, look.facts, Some(look.variant), &envs);
    match &setting.proxy {
        Some(proxy) => pool_wait(look, &counts, proxy).into_iter().chain(pins(look, &counts)).collect(),
        None => {
            let kept = envs.iter().all(|env| connections(env).count() <= 1);
            storm(look, &counts, setting, kept).into_iter().collect()
        }
    }
}

fn pool_wait(look: &Look<'_>, counts: &DatabaseCounts, proxy: &str) -> Option<Finding> {
    let waits: Vec<(f64, _)> = look
        .variant
        .invocations
        .iter()
        .map(|(i, _)| (waited_in(i, look.facts) as f64 / 1e6, &i.request_id))
        .collect();
    let waited_ms: f64 = waits.iter().map(|(ms, _)| ms).sum();
    let share = waited_ms / look.total_ms().max(f64::MIN_POSITIVE);
    if share < WAIT_SHARE && counts.wait_share_of_p95 < WAIT_SHARE && counts.borrow_timeouts == 0 {
        return None;
    }
    let in_vain = match counts.borrow_timeouts {
        0 => String::new(),
        n => format!(" {} waited in vain, for the whole borrow timeout.", count(n as usize, "client")),
    };
    let text = format!(
        "Waiting for one of the proxy's connections to the database ({proxy}: {} at most at once, for {} sessions) is {:.0} % of p95 and \
         {:.0} % of all time; {:.0} ms at p95 of {} borrows.{in_vain}",
        counts.peak,
        counts.clients,
        counts.wait_share_of_p95 * 100.0,
        share * 100.0,
        counts.borrow_wait_ms.p95.unwrap_or(0.0),
        counts.borrow_wait_ms.n,
    );
    let mut longest = waits;
    longest.sort_by(|a, b| b.0.total_cmp(&a.0));
    let advice = match counts.pins {
        0 => {
            "A larger MaxConnectionsPercent, or shorter transactions: the pool is smaller than the concurrency."
        }
        _ => "End the pinning (below) first; then a larger MaxConnectionsPercent.",
    };
    let n = look.n().max(1) as f64;
    Some(
        look.finding(Cause::DbPoolWait, text)
            .with("wait_share_of_p95", counts.wait_share_of_p95, "ratio")
            .with("wait_share", share, "ratio")
            .with("borrow_wait_p95", counts.borrow_wait_ms.p95.unwrap_or(0.0), "ms")
            .with("borrow_timeouts", counts.borrow_timeouts as f64, "1")
            .with("peak", counts.peak as f64, "1")
            .share(share)
            .examples(longest.into_iter().map(|(_, id)| id))
            .remedy(Remedy { change: Some(Change::NoDbProxy), ..look.saving(advice, Some(waited_ms / n)) }),
    )
}

fn pins(look: &Look<'_>, counts: &DatabaseCounts) -> Option<Finding> {
    let (cause, most) = counts.pinned_by.iter().max_by_key(|(_, n)| **n)?;
    let text = format!(
        "{} of {} sessions were tied to a connection to the database for as long as they lasted, {most} of them so: {cause}. Until such a \
         session ends nobody else has its connection, though it asks nothing.",
        counts.pins, counts.clients,
    );
    let remedy = look.saving(
        "Prepare on the client's side (PDO: ATTR_EMULATE_PREPARES, Connector/J: useServerPrepStmts=false), put SETs into the proxy's \
         InitQuery, or use danki's proxy in mode smart, which prepares statements again where they are needed.",
        None,
    );
    Some(
        look.finding(Cause::DbPin, text)
            .with("pins", counts.pins as f64, "1")
            .with("sessions", counts.clients as f64, "1")
            .with("by_this_statement", *most as f64, "1")
            .remedy(remedy),
    )
}

fn storm(look: &Look<'_>, counts: &DatabaseCounts, setting: &DatabaseSetting, kept: bool) -> Option<Finding> {
    let per_invocation = counts.clients as f64 / look.n().max(1) as f64;
    if look.n() < ENOUGH || kept || per_invocation < NEARLY_ALL {
        return None;
    }
    let max = setting.max_connections;
    let enough =
        if max >= ACCOUNT { "more than an account's 1,000" } else { "fewer than an account's 1,000" };
    let text = format!(
        "Each invocation opened a connection to the database of its own: {} in {} invocations, {} at most at once of the {max} that it \
         allows. As many environments at once as that, {enough}, leave none for anybody: from there on a proxy is worth its wait{}.",
        counts.clients,
        look.n(),
        counts.peak,
        monthly(&setting.class),
    );
    let remedy = look.saving(
        "Keep the connection from one invocation to the next (PDO: ATTR_PERSISTENT, or a variable outside of the handler): one for each \
         environment. A proxy where the environments are more than the connections.",
        None,
    );
    Some(
        look.finding(Cause::DbConnectionStorm, text)
            .with("opened", counts.opened as f64, "1")
            .with("per_invocation", per_invocation, "1")
            .with("peak", counts.peak as f64, "1")
            .with("max_connections", f64::from(max), "1")
            .remedy(Remedy { change: Some(Change::DbProxy), ..remedy }),
    )
}

/// What RDS Proxy costs before a database of this class; nothing where its CPUs are not known.
fn monthly(class: &str) -> String {
    let vcpus = match class.rsplit('.').next().unwrap_or_default() {
        "micro" | "small" | "medium" | "large" => 2,
        "xlarge" => 4,
        size => match size.strip_suffix("xlarge").and_then(|n| n.parse::<u32>().ok()) {
            Some(times) => times * 4,
            None => return String::new(),
        },
    };
    let usd = f64::from(vcpus) * USD_PER_VCPU_HOUR * HOURS_PER_MONTH;
    format!(" and, before a {class}, its USD {usd:.2} a month (us-east-1)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_paid_by_the_database_s_cpus() {
        let check = |class: &str, usd: &str| assert!(monthly(class).contains(usd), "{}", monthly(class));
        check("db.m5.large", "USD 21.90 a month");
        check("db.r5.4xlarge", "USD 175.20 a month");
        assert_eq!(monthly("other"), "");
    }
}
