//! How asynchronous invocations of a function, version or alias are treated: put, update, get, list, delete.

use super::{listed, qualified};
use crate::api::{Api, now_ms};
use crate::arn;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use crate::store::{EventInvoke, LATEST, view};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    maximum_retry_attempts: Option<i64>,
    maximum_event_age_in_seconds: Option<i64>,
    destination_config: Option<Destinations>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Destinations {
    on_success: Target,
    on_failure: Target,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Target {
    destination: Option<String>,
}

pub fn put(api: &Arc<Api>, request: &Request) -> Outcome {
    change(api, request, EventInvoke::default())
}

pub fn update(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = subject(api, request)?;
    let now = {
        let account = api.account();
        let found = account.function(api.region(), &name)?.event_invoke.get(&qualifier).cloned();
        found.ok_or_else(|| missing(api, &name, &qualifier))?
    };
    change(api, request, now)
}

fn change(api: &Arc<Api>, request: &Request, mut config: EventInvoke) -> Outcome {
    let (name, qualifier) = subject(api, request)?;
    let input: Input = request.json()?;
    if input.maximum_retry_attempts.is_none()
        && input.maximum_event_age_in_seconds.is_none()
        && input.destination_config.is_none()
    {
        return Err(Fault::invalid(
            "You must specify at least one of error handling or destination setting.",
        ));
    }
    let retries = within(input.maximum_retry_attempts, "maximumRetryAttempts", 0, 2)?;
    let age = within(input.maximum_event_age_in_seconds, "maximumEventAgeInSeconds", 60, 21_600)?;
    config.retries = retries.or(config.retries);
    config.max_age_s = age.or(config.max_age_s);
    if let Some(destinations) = input.destination_config {
        check_target(api, &destinations.on_success)?;
        check_target(api, &destinations.on_failure)?;
        config.on_success = destinations.on_success.destination;
        config.on_failure = destinations.on_failure.destination;
    }
    config.modified_ms = now_ms();
    let view = view::event_invoke(api.region(), &name, &qualifier, &config);
    api.change(|account| {
        account.function_mut(api.region(), &name)?.event_invoke.insert(qualifier, config);
        Ok(())
    })?;
    Ok(Reply::json(200, &view))
}

pub fn get(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = subject(api, request)?;
    let account = api.account();
    let config = account.function(api.region(), &name)?.event_invoke.get(&qualifier);
    let config = config.ok_or_else(|| missing(api, &name, &qualifier))?;
    Ok(Reply::json(200, &view::event_invoke(api.region(), &name, &qualifier, config)))
}

pub fn list(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, _) = qualified(request)?;
    listed(api, request, "FunctionEventInvokeConfigs", |account| {
        let configs = account.function(api.region(), &name)?.event_invoke.iter();
        Ok(configs.map(|(q, config)| view::event_invoke(api.region(), &name, q, config)).collect())
    })
}

pub fn delete(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = subject(api, request)?;
    api.change(|account| {
        let gone = account.function_mut(api.region(), &name)?.event_invoke.remove(&qualifier);
        gone.map(drop).ok_or_else(|| missing(api, &name, &qualifier))
    })?;
    Ok(Reply::empty(204))
}

fn subject(api: &Api, request: &Request) -> Result<(String, String), Fault> {
    let (name, qualifier) = qualified(request)?;
    let qualifier = qualifier.unwrap_or_else(|| LATEST.to_owned());
    match api.account().find(api.region(), &name, Some(&qualifier)) {
        Ok(_) => Ok((name, qualifier)),
        Err(_) => Err(Fault::not_found("The function doesn't exist.")),
    }
}

fn missing(api: &Api, name: &str, qualifier: &str) -> Fault {
    let arn = arn::function(api.region(), name, Some(qualifier));
    Fault::not_found(format!("The function {arn} doesn't have an EventInvokeConfig"))
}

/// A function must be there; a file or a service that danki does not have becomes a file.
fn check_target(api: &Api, target: &Target) -> Result<(), Fault> {
    let Some(text) = &target.destination else { return Ok(()) };
    if text.starts_with("file:/") {
        return Ok(());
    }
    if !text.starts_with("arn:") {
        let pattern = "Member must satisfy regular expression pattern: \
                       $|kafka://([^.]([a-zA-Z0-9\\-_.]{0,248}))|arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\\-])+:.*";
        return Err(Fault::constraint(text, "destinationConfig.onFailure.destination", pattern));
    }
    if text.contains(":function:") {
        let name = arn::function_name(text)?;
        let account = api.account();
        account
            .find(api.region(), &name.name, name.qualifier.as_deref())
            .map_err(|_| Fault::invalid(format!("The destination ARN {text} is invalid.")))?;
    }
    Ok(())
}

fn within(asked: Option<i64>, member: &str, low: i64, high: i64) -> Result<Option<u32>, Fault> {
    let Some(asked) = asked else { return Ok(None) };
    let (bound, word) = if asked < low { (low, "greater") } else { (high, "less") };
    match u32::try_from(asked) {
        Ok(value) if (low..=high).contains(&asked) => Ok(Some(value)),
        _ => {
            let constraint = format!("Member must have value {word} than or equal to {bound}");
            Err(Fault::constraint(&asked.to_string(), member, &constraint))
        }
    }
}
