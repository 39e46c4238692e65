//! Function URL configurations: create, get, list, update, delete. A front serves them.

use super::{listed, qualified};
use crate::api::{Api, now_ms};
use crate::arn;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use crate::store::{LATEST, UrlConfig, view};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    auth_type: Option<String>,
    cors: Option<Value>,
    invoke_mode: Option<String>,
}

pub fn create(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = subject(api, request)?;
    let input: Input = request.json()?;
    let auth_type = auth(input.auth_type)?
        .ok_or_else(|| Fault::constraint("null", "authType", "Member must not be null"))?;
    let invoke_mode = mode(input.invoke_mode)?.unwrap_or_else(|| "BUFFERED".to_owned());
    // The id is 32 lower-case letters and digits on AWS.
    let id: String = api.uuid().chars().filter(|c| *c != '-').collect();
    let now = now_ms();
    let config =
        UrlConfig { id, auth_type, cors: input.cors, invoke_mode, created_ms: now, modified_ms: now };
    let view = api.change(|account| {
        let function = account.function_mut(api.region(), &name)?;
        if function.urls.contains_key(&qualifier) {
            let arn = arn::function(api.region(), &name, suffix(&qualifier));
            let message = format!(
                "Failed to create function url config for [functionArn = {arn}]. Error message:  FunctionUrlConfig exists for this Lambda function"
            );
            return Err(Fault::conflict(message));
        }
        let mut view = shown(api, function, &qualifier, &config);
        // A new one has no time of change: the shape of this answer lacks it.
        view.as_object_mut().and_then(|view| view.remove("LastModifiedTime"));
        function.urls.insert(qualifier.clone(), config);
        Ok(view)
    })?;
    Ok(Reply::json(201, &view))
}

pub fn get(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = subject(api, request)?;
    let account = api.account();
    let function = account.function(api.region(), &name)?;
    let config = function.urls.get(&qualifier).ok_or_else(missing)?;
    Ok(Reply::json(200, &shown(api, function, &qualifier, config)))
}

pub fn list(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, _) = qualified(request)?;
    listed(api, request, "FunctionUrlConfigs", |account| {
        let function = account.function(api.region(), &name)?;
        Ok(function.urls.iter().map(|(q, config)| shown(api, function, q, config)).collect())
    })
}

pub fn update(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = subject(api, request)?;
    let input: Input = request.json()?;
    let (auth_type, invoke_mode) = (auth(input.auth_type)?, mode(input.invoke_mode)?);
    let view = api.change(|account| {
        let function = account.function_mut(api.region(), &name)?;
        let mut config = function.urls.get(&qualifier).cloned().ok_or_else(missing)?;
        config.auth_type = auth_type.unwrap_or(config.auth_type);
        config.invoke_mode = invoke_mode.unwrap_or(config.invoke_mode);
        config.cors = input.cors.or(config.cors);
        config.modified_ms = now_ms();
        let view = shown(api, function, &qualifier, &config);
        function.urls.insert(qualifier, config);
        Ok(view)
    })?;
    Ok(Reply::json(200, &view))
}

pub fn delete(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = subject(api, request)?;
    api.change(|account| {
        let gone = account.function_mut(api.region(), &name)?.urls.remove(&qualifier);
        gone.map(drop).ok_or_else(missing)
    })?;
    Ok(Reply::empty(204))
}

fn shown(api: &Api, function: &crate::store::Function, qualifier: &str, config: &UrlConfig) -> Value {
    view::url(api.region(), function, qualifier, config)
}

fn subject(api: &Api, request: &Request) -> Result<(String, String), Fault> {
    let (name, qualifier) = qualified(request)?;
    let qualifier = qualifier.unwrap_or_else(|| LATEST.to_owned());
    let number = qualifier.chars().all(|c| c.is_ascii_digit());
    if number {
        let pattern =
            "Member must satisfy regular expression pattern: (^\\$LATEST$)|((?!^[0-9]+$)([a-zA-Z0-9-_]+))";
        return Err(Fault::constraint(&qualifier, "qualifier", pattern));
    }
    match api.account().find(api.region(), &name, Some(&qualifier)) {
        Ok(_) => Ok((name, qualifier)),
        Err(_) if qualifier == LATEST => Err(Fault::not_found("Function does not exist")),
        Err(fault) => Err(fault),
    }
}

fn suffix(qualifier: &str) -> Option<&str> {
    (qualifier != LATEST).then_some(qualifier)
}

fn missing() -> Fault {
    Fault::not_found("The resource you requested does not exist.")
}

fn auth(asked: Option<String>) -> Result<Option<String>, Fault> {
    choice(asked, "authType", &["AWS_IAM", "NONE"])
}

fn mode(asked: Option<String>) -> Result<Option<String>, Fault> {
    choice(asked, "invokeMode", &["BUFFERED", "RESPONSE_STREAM"])
}

fn choice(asked: Option<String>, member: &str, allowed: &[&str]) -> Result<Option<String>, Fault> {
    match asked {
        Some(asked) if !allowed.contains(&asked.as_str()) => {
            let constraint = format!("Member must satisfy enum value set: [{}]", allowed.join(", "));
            Err(Fault::constraint(&asked, member, &constraint))
        }
        asked => Ok(asked),
    }
}
