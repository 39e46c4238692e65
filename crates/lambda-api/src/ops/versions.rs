//! PublishVersion, ListVersionsByFunction.

use super::{function_name, listed};
use crate::api::{Api, now_ms};
use crate::deploy;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use crate::store::{LastUpdate, State, Version, view};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    #[serde(rename = "CodeSha256")]
    code_sha256: Option<String>,
    #[serde(default)]
    description: String,
    revision_id: Option<String>,
}

pub fn publish_version(api: &Arc<Api>, request: &Request) -> Outcome {
    let name = function_name(request)?.name;
    let input: Input = request.json()?;
    {
        let account = api.account();
        let latest = &account.function(api.region(), &name)?.latest;
        if input.revision_id.as_ref().is_some_and(|r| *r != latest.revision) {
            return Err(Fault::revision());
        }
        let current = &latest.code.sha256;
        if let Some(asked) = input.code_sha256.as_ref().filter(|asked| *asked != current) {
            return Err(Fault::invalid(format!(
                "CodeSHA256 ({asked}) is different from current CodeSHA256 in $LATEST ({current}). Please try again \
                 with the CodeSHA256 in $LATEST."
            )));
        }
    }
    publish(api, &name, input.description, 201)
}

/// Publishes `$LATEST`, unless nothing has changed since the last version: then that one is the answer.
pub fn publish(api: &Arc<Api>, name: &str, description: String, status: u16) -> Outcome {
    let (version, new) = api.change(|account| {
        let function = account.function_mut(api.region(), name)?;
        let mut next = function.latest.clone();
        if !description.is_empty() {
            next.configuration.description = description;
        }
        if let Some(last) = function.versions.values().last().filter(|last| same(last, &next)) {
            return Ok((last.clone(), false));
        }
        let number = function.next_version;
        next.number = number.to_string();
        (next.revision, next.modified_ms) = (api.uuid(), now_ms());
        (next.state, next.last_update) = (State::Pending, LastUpdate::InProgress);
        function.next_version += 1;
        function.versions.insert(number, next.clone());
        Ok((next, true))
    })?;
    if new {
        deploy::deploy(api, name, &version.number);
    }
    Ok(Reply::json(status, &view::with_state(api.region(), name, &version, Some(&version.number))))
}

fn same(last: &Version, next: &Version) -> bool {
    last.code == next.code && last.configuration == next.configuration && !next.code.local
}

pub fn list_versions(api: &Arc<Api>, request: &Request) -> Outcome {
    let name = function_name(request)?.name;
    listed(api, request, "Versions", |account| {
        let function = account.function(api.region(), &name)?;
        let all = std::iter::once(&function.latest).chain(function.versions.values());
        Ok(all.map(|v| Value::Object(view::configuration(api.region(), &name, v, Some(&v.number)))).collect())
    })
}
