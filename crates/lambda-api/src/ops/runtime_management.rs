//! PutRuntimeManagementConfig, GetRuntimeManagementConfig: kept and shown; the runtimes are this machine's interpreters.

use super::qualified;
use crate::api::Api;
use crate::arn;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use serde_json::{Value, json};
use std::sync::Arc;

pub fn put(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = qualified(request)?;
    let input: Value = request.json()?;
    let mode = input["UpdateRuntimeOn"].as_str().unwrap_or_default().to_owned();
    let version_arn = input["RuntimeVersionArn"].as_str().map(str::to_owned);
    if !["Auto", "FunctionUpdate", "Manual"].contains(&mode.as_str()) {
        let constraint = "Member must satisfy enum value set: [Manual, Auto, FunctionUpdate]";
        return Err(Fault::constraint(&mode, "updateRuntimeOn", constraint));
    }
    if mode == "Manual" && version_arn.is_none() {
        return Err(Fault::invalid(
            "You must specify Runtime Version ARN when UpdateRuntimeOn is set to Manual.",
        ));
    }
    api.change(|account| {
        account.find(api.region(), &name, qualifier.as_deref())?;
        let kept = json!({ "UpdateRuntimeOn": mode, "RuntimeVersionArn": version_arn });
        account.function_mut(api.region(), &name)?.runtime_update = kept;
        Ok(())
    })?;
    get(api, request)
}

pub fn get(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = qualified(request)?;
    let account = api.account();
    let found = account.find(api.region(), &name, qualifier.as_deref())?;
    let mut view = found.function.runtime_update.clone();
    view["FunctionArn"] = arn::function(api.region(), &name, qualifier.as_deref()).into();
    if view["RuntimeVersionArn"].is_null() {
        view.as_object_mut().and_then(|o| o.remove("RuntimeVersionArn"));
    }
    Ok(Reply::json(200, &view))
}
