//! Aliases: names for versions, with weights between two of them. An alias with provisioned concurrency takes it along when it moves.

use super::{function_name, listed, provisioned};
use crate::api::Api;
use crate::arn;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use crate::store::{Alias, Function, LATEST, view};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    name: Option<String>,
    function_version: Option<String>,
    description: Option<String>,
    routing_config: Option<Routing>,
    revision_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Routing {
    #[serde(default)]
    additional_version_weights: BTreeMap<String, f64>,
}

pub fn create_alias(api: &Arc<Api>, request: &Request) -> Outcome {
    let function = function_name(request)?.name;
    let input: Input = request.json()?;
    let name = input.name.unwrap_or_default();
    let number = input.function_version.unwrap_or_default();
    check_name(&name)?;
    let weights = input.routing_config.map(|r| r.additional_version_weights).unwrap_or_default();
    let revision = api.uuid();
    let view = api.change(|account| {
        let entry = account.function_mut(api.region(), &function)?;
        if entry.aliases.contains_key(&name) {
            let arn = arn::function(api.region(), &function, Some(&name));
            return Err(Fault::conflict(format!("Alias already exists: {arn}")));
        }
        check_version(api, entry, &number)?;
        check_weights(api, entry, &number, &weights)?;
        let description = input.description.unwrap_or_default();
        let alias = Alias { version: number, description, weights, revision };
        let view = view::alias(api.region(), &function, &name, &alias);
        entry.aliases.insert(name, alias);
        Ok(view)
    })?;
    Ok(Reply::json(201, &view))
}

pub fn get_alias(api: &Arc<Api>, request: &Request) -> Outcome {
    let (function, name) = (function_name(request)?.name, request.parameter("Name"));
    let account = api.account();
    let alias = account.function(api.region(), &function)?.aliases.get(name);
    let alias = alias.ok_or_else(|| missing(api, &function, name))?;
    Ok(Reply::json(200, &view::alias(api.region(), &function, name, alias)))
}

pub fn list_aliases(api: &Arc<Api>, request: &Request) -> Outcome {
    let function = function_name(request)?.name;
    let version = request.query("FunctionVersion");
    listed(api, request, "Aliases", |account| {
        let aliases = account.function(api.region(), &function)?.aliases.iter();
        let wanted = aliases.filter(|(_, alias)| version.is_none_or(|v| v == alias.version));
        Ok(wanted.map(|(name, alias)| view::alias(api.region(), &function, name, alias)).collect())
    })
}

pub fn update_alias(api: &Arc<Api>, request: &Request) -> Outcome {
    let (function, name) = (function_name(request)?.name, request.parameter("Name"));
    let input: Input = request.json()?;
    let revision = api.uuid();
    let (view, from, to) = api.change(|account| {
        let entry = account.function_mut(api.region(), &function)?;
        let mut alias = entry.aliases.get(name).cloned().ok_or_else(|| missing(api, &function, name))?;
        if input.revision_id.as_ref().is_some_and(|r| *r != alias.revision) {
            return Err(Fault::revision());
        }
        let from = alias.version.clone();
        if let Some(number) = input.function_version {
            check_version(api, entry, &number)?;
            alias.version = number;
        }
        if let Some(routing) = input.routing_config {
            check_weights(api, entry, &alias.version, &routing.additional_version_weights)?;
            alias.weights = routing.additional_version_weights;
        }
        alias.description = input.description.unwrap_or(alias.description);
        alias.revision = revision;
        let to = alias.version.clone();
        let view = view::alias(api.region(), &function, name, &alias);
        entry.aliases.insert(name.to_owned(), alias);
        Ok((view, from, to))
    })?;
    if from != to {
        provisioned::alias_moved(api, &function, name, &from, &to);
    }
    Ok(Reply::json(200, &view))
}

/// Deleting what is not there succeeds, as on AWS.
pub fn delete_alias(api: &Arc<Api>, request: &Request) -> Outcome {
    let (function, name) = (function_name(request)?.name, request.parameter("Name"));
    let gone = api.change(|account| {
        let entry = account.function_mut(api.region(), &function)?;
        let gone = entry.aliases.remove(name);
        let provisioned = entry.provisioned.remove(name).is_some();
        Ok(gone.filter(|_| provisioned))
    })?;
    if let Some(alias) = gone {
        provisioned::withdraw(api, &function, &alias.version);
    }
    Ok(Reply::empty(204))
}

pub fn missing(api: &Api, function: &str, name: &str) -> Fault {
    Fault::not_found(format!("Cannot find alias arn: {}", arn::function(api.region(), function, Some(name))))
}

fn check_name(name: &str) -> Result<(), Fault> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let number = !name.is_empty() && name.chars().all(|c| c.is_ascii_digit());
    if (1..=128).contains(&name.len()) && name.chars().all(legal) && !number {
        return Ok(());
    }
    let pattern = "Member must satisfy regular expression pattern: (?!^[0-9]+$)([a-zA-Z0-9-_]+)";
    Err(Fault::constraint(name, "name", pattern))
}

fn check_version(api: &Api, function: &Function, number: &str) -> Result<(), Fault> {
    match function.version(number) {
        Some(_) => Ok(()),
        None => Err(Fault::function_not_found(&arn::function(api.region(), &function.name, Some(number)))),
    }
}

fn check_weights(
    api: &Api,
    function: &Function,
    number: &str,
    weights: &BTreeMap<String, f64>,
) -> Result<(), Fault> {
    if weights.is_empty() {
        return Ok(());
    }
    if weights.len() > 1 {
        return Err(Fault::invalid("Number of items in AdditionalVersionWeights cannot be greater than 1"));
    }
    if number == LATEST {
        return Err(Fault::invalid("$LATEST is not supported for an alias pointing to more than 1 version"));
    }
    for (other, weight) in weights {
        if !(0.0..=1.0).contains(weight) {
            let constraint = "Map value must satisfy constraint: [Member must have value less than or equal to 1.0, \
                              Member must have value greater than or equal to 0.0, Member must not be null]";
            let value = format!("{{{other}={weight}}}");
            return Err(Fault::constraint(&value, "routingConfig.additionalVersionWeights", constraint));
        }
        if other == number {
            return Err(Fault::invalid(format!(
                "Invalid function version {other}. Function version {other} is already included in routing configuration."
            )));
        }
        if other == LATEST {
            return Err(Fault::invalid(
                "$LATEST is not supported for an alias pointing to more than 1 version",
            ));
        }
        check_version(api, function, other)?;
    }
    Ok(())
}
