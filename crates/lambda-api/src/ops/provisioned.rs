//! Provisioned concurrency (PC): put, get, list, delete. The account keeps what was asked for, by qualifier; the host allocates it, by
//! version, and says how far it is.

use super::{aliases, listed, qualified};
use crate::api::{Api, now_ms};
use crate::arn;
use crate::fault::{Fault, Kind};
use crate::request::{Outcome, Reply, Request};
use crate::store::{Account, Function, LATEST, Provisioned, view};
use danki_host::Refused;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    provisioned_concurrent_executions: Option<i64>,
}

pub fn put(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = subject(request)?;
    let input: Input = request.json()?;
    let asked = input.provisioned_concurrent_executions.unwrap_or(0);
    let requested = u32::try_from(asked).ok().filter(|n| *n > 0).ok_or_else(|| {
        let constraint = "Member must have value greater than or equal to 1";
        Fault::constraint(&asked.to_string(), "provisionedConcurrentExecutions", constraint)
    })?;
    let number = {
        let account = api.account();
        let number = target(api, &account, &name, &qualifier)?;
        check_overlap(account.function(api.region(), &name)?, &qualifier, &number)?;
        number
    };
    let Some(function) = api.fleet.get(&name, &number) else {
        return Err(not_ready(api, &name, &number));
    };
    let now = function.provision(requested).map_err(refused)?;
    let asked = Provisioned { requested, modified_ms: now_ms() };
    api.change(|account| {
        account.function_mut(api.region(), &name)?.provisioned.insert(qualifier.clone(), asked.clone());
        Ok(())
    })?;
    Ok(Reply::json(202, &describe(&asked, Some(now))))
}

pub fn get(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = subject(request)?;
    let account = api.account();
    let number = target(api, &account, &name, &qualifier)?;
    let asked = account.function(api.region(), &name)?.provisioned.get(&qualifier).ok_or_else(missing)?;
    let now = api.fleet.get(&name, &number).and_then(|f| f.provisioned());
    Ok(Reply::json(200, &describe(asked, now)))
}

/// GetProvisionedConcurrencyConfig and ListProvisionedConcurrencyConfigs share a path.
pub fn get_or_list(api: &Arc<Api>, request: &Request) -> Outcome {
    if request.query("List") != Some("ALL") {
        return get(api, request);
    }
    let (name, _) = qualified(request)?;
    listed(api, request, "ProvisionedConcurrencyConfigs", |account| {
        let function = account.function(api.region(), &name)?;
        Ok(function
            .provisioned
            .iter()
            .map(|(qualifier, asked)| {
                let version = function.resolve(qualifier).map(|v| v.number.as_str()).unwrap_or_default();
                let now = api.fleet.get(&name, version).and_then(|f| f.provisioned());
                let mut view = describe(asked, now);
                view["FunctionArn"] = arn::function(api.region(), &name, Some(qualifier)).into();
                view
            })
            .collect())
    })
}

pub fn delete(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = subject(request)?;
    let number = api.change(|account| {
        let number = target(api, account, &name, &qualifier)?;
        account.function_mut(api.region(), &name)?.provisioned.remove(&qualifier);
        Ok(number)
    })?;
    withdraw(api, &name, &number);
    Ok(Reply::empty(204))
}

/// Takes the provisioned concurrency of a version away.
pub fn withdraw(api: &Arc<Api>, name: &str, number: &str) {
    if let Some(function) = api.fleet.get(name, number) {
        function.deprovision();
    }
}

/// An alias with PC points elsewhere: it is allocated anew there.
pub fn alias_moved(api: &Arc<Api>, name: &str, alias: &str, from: &str, to: &str) {
    let requested = {
        let account = api.account();
        account.functions.get(name).and_then(|f| f.provisioned.get(alias)).map(|p| p.requested)
    };
    let Some(requested) = requested else { return };
    withdraw(api, name, from);
    if let Some(function) = api.fleet.get(name, to) {
        // What fitted on the one version fits on the other: they share the function's limits.
        function.provision(requested).ok();
    }
}

fn subject(request: &Request) -> Result<(String, String), Fault> {
    let (name, qualifier) = qualified(request)?;
    match qualifier {
        Some(q) if q == LATEST => Err(refused(Refused::Latest)),
        Some(qualifier) => Ok((name, qualifier)),
        None => Err(Fault::constraint("null", "qualifier", "Member must not be null")),
    }
}

/// The version that a qualifier leads to.
fn target(api: &Api, account: &Account, name: &str, qualifier: &str) -> Result<String, Fault> {
    let function = account.function(api.region(), name)?;
    let is_number = qualifier.chars().all(|c| c.is_ascii_digit());
    match function.resolve(qualifier) {
        Some(version) if version.number == LATEST => Err(refused(Refused::Latest)),
        Some(version) => Ok(version.number.clone()),
        None if is_number => {
            Err(Fault::function_not_found(&arn::function(api.region(), name, Some(qualifier))))
        }
        None => Err(aliases::missing(api, name, qualifier)),
    }
}

/// Not both a version and an alias of it (§6.2).
fn check_overlap(function: &Function, qualifier: &str, number: &str) -> Result<(), Fault> {
    let is_alias = qualifier != number;
    let mut others = function.provisioned.keys().filter(|other| *other != qualifier);
    let taken = others.any(|other| function.resolve(other).is_some_and(|v| v.number == number));
    match (taken, is_alias) {
        (false, _) => Ok(()),
        (true, true) => Err(Fault::conflict(
            "Alias can't be used for Provisioned Concurrency configuration on an already Provisioned version",
        )),
        (true, false) => Err(Fault::conflict("Version is pointed by a Provisioned Concurrency alias")),
    }
}

fn not_ready(api: &Api, name: &str, number: &str) -> Fault {
    let arn = arn::function(api.region(), name, Some(number));
    Fault::conflict(format!(
        "The operation cannot be performed at this time. An update is in progress for resource: {arn}"
    ))
}

fn missing() -> Fault {
    let message = "No Provisioned Concurrency Config found for this function";
    Fault::new(Kind::ProvisionedConcurrencyConfigNotFound, message)
}

fn refused(refused: Refused) -> Fault {
    Fault::invalid(refused.to_string())
}

fn describe(asked: &Provisioned, now: Option<danki_host::Provisioned>) -> Value {
    let (available, allocated) = now.as_ref().map_or((0, 0), |p| (p.available, p.allocated));
    let mut view = json!({
        "RequestedProvisionedConcurrentExecutions": asked.requested,
        "AvailableProvisionedConcurrentExecutions": available,
        "AllocatedProvisionedConcurrentExecutions": allocated,
        "Status": now.as_ref().map_or("IN_PROGRESS", |p| p.status.as_str()),
        "LastModified": view::time(asked.modified_ms),
    });
    if let Some(reason) = now.and_then(|p| p.reason) {
        view["StatusReason"] = reason.as_str().into();
    }
    view
}
