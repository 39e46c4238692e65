//! Concurrency as Lambda's users know it: reservations, throttles, provisioned concurrency, forced states.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]

use danki_host::{Error as HostError, Forced, ProvisionStatus, Refused, Throttle};
use danki_lab::HostKeys;
use danki_model::metrics::{Metric, Subject};
use danki_model::{EnvId, InitializationType};
use danki_record::{Event, Start};
use danki_testkit::{
    Error, Function, Lab, Pending, Recorded, Reply, Settings, eventually, function, skipped,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn lab(name: &str) -> Option<Lab> {
    let host = HostKeys { pc_ready_after_init_s: Some(1.0), ..HostKeys::default() };
    (!skipped(name)).then(|| Lab::start(name, Settings { host, ..Settings::default() }).unwrap())
}

fn stop(lab: Lab) -> Recorded {
    let recorded = lab.stop().unwrap();
    assert_eq!(recorded.left, Vec::<String>::new());
    recorded
}

fn version<'lab>(lab: &'lab Lab, code: &str) -> Function<'lab> {
    let mut spec = lab.write("lambda_function.py", code).unwrap();
    spec.timeout_ms = 60_000;
    lab.deploy_version(spec, "1").unwrap()
}

const WHO: &str = "
import os
def handler(event, context):
    return [os.environ['AWS_LAMBDA_INITIALIZATION_TYPE'], os.environ['AWS_LAMBDA_FUNCTION_VERSION']]
";

/// A sleeping function that needs no interpreter: many of them fit the machine.
const SLEEPS: &str = r#"#!/bin/sh
api="http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation"
while :; do
  id=$(curl -s -D - -o /dev/null "$api/next" | tr -d '\r' | sed -n 's/^[Ll]ambda-[Rr]untime-[Aa]ws-[Rr]equest-[Ii]d: //p')
  sleep 15
  curl -s -X POST -d '"slept"' "$api/$id/response" >/dev/null
done
"#;

#[test]
fn a_burst_against_a_reservation_gets_so_many_envs_and_the_rest_throttles() {
    let Some(lab) = lab("burst") else { return };
    let mut spec = lab.write("bootstrap", SLEEPS).unwrap();
    spec.timeout_ms = 60_000;
    let name = spec.name.clone();
    let sleeps = lab.deploy(spec).unwrap();
    lab.host().set_reserved(&name, Some(50)).unwrap();
    let begun: Vec<Result<Pending<'_>, Error>> = (0..500).map(|_| sleeps.begin(&json!({}))).collect();
    let envs = sleeps.envs();
    let (running, throttled): (Vec<_>, Vec<_>) = begun.into_iter().partition(Result::is_ok);
    let reserved = Throttle::ReservedFunctionConcurrentInvocationLimitExceeded;
    let reason = |r: Result<_, Error>| match r {
        Err(Error::Host(HostError::Throttled(reason))) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => unreachable!("it was throttled"),
    };
    assert_eq!((running.len(), throttled.len(), envs), (50, 450, 50));
    assert!(throttled.into_iter().map(reason).all(|reason| reason == reserved));
    let of_function = |metric| lab.host().metrics().total(metric, &Subject::function(&name));
    let of_account = |metric| lab.host().metrics().total(metric, &Subject::default());
    assert_eq!(of_function(Metric::Invocations).sum, 50.0);
    assert_eq!((of_function(Metric::Throttles).sum, of_function(Metric::Throttles).count), (450.0, 500));
    assert_eq!(of_function(Metric::ConcurrentExecutions).max, 50.0);
    assert_eq!(of_account(Metric::ConcurrentExecutions).max, 50.0);
    assert_eq!(of_account(Metric::UnreservedConcurrentExecutions).max, 0.0);
    assert_eq!(of_account(Metric::ClaimedAccountConcurrency).max, 50.0);
    let served: BTreeSet<EnvId> =
        running.into_iter().map(|p| p.unwrap().wait().unwrap().invocation.env).collect();
    assert_eq!(served.len(), 50, "each in an env of its own");
    let recorded = stop(lab);
    let refused = recorded.events.iter().filter(|event| matches!(event, Event::Refused(_))).count();
    assert_eq!(refused, 450);
}

#[test]
fn a_hundred_envs_serve_thousands_of_calls_once_each_and_one_at_a_time() {
    let Some(lab) = lab("hundred") else { return };
    let mut spec = function("hello-provided").unwrap();
    spec.timeout_ms = 60_000;
    let hello = lab.deploy(spec).unwrap();
    let mut replies: Vec<Reply> = hello.invoke_together(100, &json!({})).unwrap();
    for _ in 0..10 {
        replies.extend(hello.invoke_together(100, &json!({})).unwrap());
    }
    assert_eq!(hello.envs(), 100, "warm calls need no more");
    let ids: BTreeSet<_> = replies.iter().map(|r| r.invocation.request_id.clone()).collect();
    assert_eq!((replies.len(), ids.len()), (1_100, 1_100), "none lost, none twice");
    assert!(replies.iter().all(|r| r.function_error.is_none()));
    let mut by_env: BTreeMap<EnvId, Vec<(u64, u64)>> = BTreeMap::new();
    for i in replies.iter().map(|r| &r.invocation) {
        by_env.entry(i.env).or_default().push((i.delivered_ns.unwrap(), i.finished_ns));
    }
    for (env, spans) in &mut by_env {
        spans.sort_unstable();
        assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0), "{env} was busy: {spans:?}");
    }
    stop(lab);
}

#[test]
fn provisioned_concurrency_is_warm_once_it_is_ready() {
    let Some(lab) = lab("provisioned") else { return };
    let who = version(&lab, WHO);
    let asked = who.ask_for(1).unwrap();
    assert_eq!((asked.status, asked.requested, asked.allocated), (ProvisionStatus::InProgress, 1, 0));
    let during = who.invoke(&json!({})).unwrap();
    assert_eq!((during.invocation.start, during.json()[0].clone()), (Start::Cold, json!("on-demand")));
    let ready = who.provision(1).unwrap();
    assert_eq!((ready.status, ready.allocated, ready.available), (ProvisionStatus::Ready, 1, 1));
    let first = who.invoke(&json!({})).unwrap();
    assert_eq!(first.json(), json!(["provisioned-concurrency", "1"]), "{:#?}", first.log);
    assert_eq!(first.invocation.start, Start::Warm);
    assert_eq!(first.invocation.initialization, InitializationType::ProvisionedConcurrency);
    // Its init was not on this call's path, but the first REPORT tells it; it is not billed to the call.
    assert!(first.reported("Init Duration").is_some() && first.invocation.init.is_none());
    assert_eq!(
        first.reported("Billed Duration"),
        Some(format!("{:.0}", first.invocation.duration_ms.ceil()))
    );
    let second = who.invoke(&json!({})).unwrap();
    assert_eq!((second.invocation.env, second.reported("Init Duration")), (first.invocation.env, None));
    // Idleness ends the on-demand env, not the provisioned one.
    assert_eq!(who.expire().unwrap(), 1);
    assert_eq!(who.envs(), 1);
    assert!(who.deprovision() && !who.deprovision());
    assert!(eventually(Duration::from_secs(5), || who.envs() == 0));
    let spec = lab.write("lambda_function.py", WHO).unwrap();
    let latest = lab.deploy(spec).unwrap().ask_for(1);
    assert!(matches!(latest, Err(Error::Refused(Refused::Latest))));
    stop(lab);
}

#[test]
fn calls_beyond_provisioned_concurrency_spill_over() {
    let Some(lab) = lab("spillover") else { return };
    let code = "import time\ndef handler(event, context):\n    time.sleep(0.5)\n";
    let mut spec = lab.write("lambda_function.py", code).unwrap();
    spec.timeout_ms = 60_000;
    let name = spec.name.clone();
    let sleeps = lab.deploy_version(spec, "1").unwrap();
    assert_eq!(sleeps.provision(2).unwrap().status, ProvisionStatus::Ready);
    let replies = sleeps.invoke_together(3, &json!({})).unwrap();
    let cold = replies.iter().filter(|r| r.invocation.start == Start::Cold).count();
    assert_eq!(cold, 1);
    let total = |metric| lab.host().metrics().total(metric, &Subject::function(&name));
    assert_eq!(total(Metric::ProvisionedConcurrencyInvocations).sum, 2.0);
    assert_eq!(total(Metric::ProvisionedConcurrencySpilloverInvocations).sum, 1.0);
    assert_eq!(total(Metric::ProvisionedConcurrentExecutions).max, 2.0);
    assert_eq!(total(Metric::ProvisionedConcurrencyUtilization).max, 1.0);
    stop(lab);
}

#[test]
fn a_failing_init_fails_the_allocation() {
    let Some(lab) = lab("failed-allocation") else { return };
    let broken = version(&lab, "raise ValueError('no')\n");
    let failed = broken.provision(2).unwrap();
    assert_eq!((failed.status, failed.allocated, failed.available), (ProvisionStatus::Failed, 0, 0));
    assert_eq!(failed.reason.map(|r| r.as_str()), Some("FUNCTION_ERROR_INIT_FAILURE"));
    assert!(eventually(Duration::from_secs(5), || broken.envs() == 0), "its envs are gone");
    stop(lab);
}

#[test]
fn a_provisioned_init_has_no_boost() {
    let Some(lab) = lab("unboosted") else { return };
    let code = "
import time
begin, used = time.monotonic(), time.process_time()
while time.process_time() - used < 0.2:
    pass
took = time.monotonic() - begin
def handler(event, context):
    return took
";
    let mut spec = lab.write("lambda_function.py", code).unwrap();
    spec.memory = danki_model::MemoryMb::try_from(256).unwrap();
    spec.timeout_ms = 60_000;
    let burns = lab.deploy_version(spec, "1").unwrap();
    let boosted = burns.invoke(&json!({})).unwrap().json().as_f64().unwrap();
    burns.provision(1).unwrap();
    let plain = burns.invoke(&json!({})).unwrap().json().as_f64().unwrap();
    // 256 MB buy a seventh of a CPU; a busy machine slows the boosted one too.
    assert!(plain > 1.0 && plain > 1.5 * boosted, "{plain} s, boosted {boosted} s");
    stop(lab);
}

#[test]
fn states_can_be_forced() {
    let Some(lab) = lab("forced") else { return };
    let who = version(&lab, WHO);
    let force = |forced| who.force(&json!({}), forced).unwrap().wait().unwrap().invocation;
    let warm = force(Forced::Warm);
    assert_eq!(warm.start, Start::Warm, "it was initialised first");
    let cold = force(Forced::Cold);
    assert!(cold.start == Start::Cold && cold.env != warm.env);
    let rested = force(Forced::IdleGap(Duration::from_millis(700)));
    assert_eq!((rested.start, rested.env), (Start::Warm, cold.env));
    assert!(rested.delivered_ns.unwrap() - cold.finished_ns >= 700_000_000);
    assert!(rested.dispatched_ns - rested.intended_ns < 100_000_000, "the gap is no lateness");
    let expired = force(Forced::Expired);
    assert_eq!(expired.start, Start::Cold);
    assert!(eventually(Duration::from_secs(5), || who.envs() == 2), "one was ended");
    let too_long = who.force(&json!({}), Forced::IdleGap(Duration::from_secs(4_000)));
    assert!(matches!(too_long, Err(Error::Host(HostError::IdleGap(_)))));
    stop(lab);
}
