//! TagResource, UntagResource, ListTags, for functions.

use crate::api::Api;
use crate::arn;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tags of a function (AWS's quotas page).
const TAGS: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    tags: BTreeMap<String, String>,
}

pub fn tag(api: &Arc<Api>, request: &Request) -> Outcome {
    let name = function(request)?;
    let input: Input = request.json()?;
    api.change(|account| {
        let function = account.function_mut(api.region(), &name)?;
        let mut tags = function.tags.clone();
        tags.extend(input.tags);
        if tags.len() > TAGS {
            return Err(Fault::invalid("Number of tags exceeds resource tag limit."));
        }
        function.tags = tags;
        Ok(())
    })?;
    Ok(Reply::empty(204))
}

pub fn untag(api: &Arc<Api>, request: &Request) -> Outcome {
    let name = function(request)?;
    let keys: Vec<&str> =
        request.query.iter().filter(|(key, _)| key == "tagKeys").map(|(_, value)| value.as_str()).collect();
    if keys.is_empty() {
        return Err(Fault::constraint("null", "tagKeys", "Member must not be null"));
    }
    api.change(|account| {
        let function = account.function_mut(api.region(), &name)?;
        keys.iter().for_each(|key| drop(function.tags.remove(*key)));
        Ok(())
    })?;
    Ok(Reply::empty(204))
}

pub fn list(api: &Arc<Api>, request: &Request) -> Outcome {
    let name = function(request)?;
    let account = api.account();
    let tags = &account.function(api.region(), &name)?.tags;
    Ok(Reply::json(200, &json!({ "Tags": tags })))
}

fn function(request: &Request) -> Result<String, Fault> {
    let name = arn::function_name(request.parameter("Resource"))?;
    match name.qualifier {
        Some(_) => Err(Fault::invalid(
            "Tags on function aliases and versions are not supported. Please specify a function ARN.",
        )),
        None => Ok(name.name),
    }
}
