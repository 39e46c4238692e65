//! Reserved concurrency: PutFunctionConcurrency, GetFunctionConcurrency, DeleteFunctionConcurrency.

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
    reserved_concurrent_executions: Option<i64>,
}

pub async fn put(api: Arc<Api>, request: Request) -> Outcome {
    let name = function_name(&request)?.name;
    let input: Input = request.json()?;
    api.account().function(api.region(), &name)?;
    let asked = input.reserved_concurrent_executions;
    let reserved = asked.and_then(|n| u32::try_from(n).ok()).ok_or_else(|| {
        let value = asked.map_or("null".to_owned(), |n| n.to_string());
        let constraint = "Member must have value greater than or equal to 0";
        Fault::constraint(&value, "reservedConcurrentExecutions", constraint)
    })?;
    let host = api.fleet.host().await?;
    host.set_reserved(&name, Some(reserved)).map_err(|refused| Fault::invalid(refused.to_string()))?;
    api.change(|account| {
        account.function_mut(api.region(), &name)?.reserved = Some(reserved);
        Ok(())
    })?;
    Ok(Reply::json(200, &json!({ "ReservedConcurrentExecutions": reserved })))
}

pub fn get(api: &Arc<Api>, request: &Request) -> Outcome {
    let name = function_name(request)?.name;
    let account = api.account();
    Ok(Reply::json(
        200,
        &match account.function(api.region(), &name)?.reserved {
            Some(reserved) => json!({ "ReservedConcurrentExecutions": reserved }),
            None => json!({}),
        },
    ))
}

pub async fn delete(api: Arc<Api>, request: Request) -> Outcome {
    let name = function_name(&request)?.name;
    api.account().function(api.region(), &name)?;
    let host = api.fleet.host().await?;
    host.set_reserved(&name, None).map_err(|refused| Fault::invalid(refused.to_string()))?;
    api.change(|account| {
        account.function_mut(api.region(), &name)?.reserved = None;
        Ok(())
    })?;
    Ok(Reply::empty(204))
}
