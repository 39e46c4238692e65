//! PutFunctionRecursionConfig, GetFunctionRecursionConfig: kept and shown. Chains through destinations end at 16 in any case.

use super::function_name;
use crate::api::Api;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    #[serde(default)]
    recursive_loop: String,
}

pub fn put(api: &Arc<Api>, request: &Request) -> Outcome {
    let name = function_name(request)?.name;
    let input: Input = request.json()?;
    if !["Allow", "Terminate"].contains(&input.recursive_loop.as_str()) {
        let constraint = "Member must satisfy enum value set: [Terminate, Allow]";
        return Err(Fault::constraint(&input.recursive_loop, "recursiveLoop", constraint));
    }
    api.change(|account| {
        account.function_mut(api.region(), &name)?.recursion.clone_from(&input.recursive_loop);
        Ok(())
    })?;
    Ok(Reply::json(200, &json!({ "RecursiveLoop": input.recursive_loop })))
}

pub fn get(api: &Arc<Api>, request: &Request) -> Outcome {
    let name = function_name(request)?.name;
    let account = api.account();
    let setting = &account.function(api.region(), &name)?.recursion;
    Ok(Reply::json(200, &json!({ "RecursiveLoop": setting })))
}
