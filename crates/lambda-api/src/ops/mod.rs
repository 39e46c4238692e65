//! The operations of Lambda's API: one file each, or one for a family that shares everything. `routes` names them all.

pub mod account_settings;
pub mod aliases;
pub mod code_location;
pub mod concurrency;
pub mod create_function;
pub mod delete_function;
pub mod event_invoke;
pub mod get_function;
pub mod invoke;
pub mod invoke_async;
pub mod invoke_stream;
pub mod layers;
pub mod permissions;
pub mod provisioned;
pub mod recursion;
pub mod runtime_management;
pub mod tags;
pub mod tail_logs;
pub mod update_code;
pub mod update_configuration;
pub mod urls;
pub mod versions;

use crate::api::Api;
use crate::arn::{self, FunctionName};
use crate::fault::Fault;
use crate::request::Request;
use crate::store;

/// The function that a request is about.
fn function_name(request: &Request) -> Result<FunctionName, Fault> {
    arn::function_name(request.parameter("FunctionName"))
}

/// The function and the qualifier that a request is about.
fn qualified(request: &Request) -> Result<(String, Option<String>), Fault> {
    let name = function_name(request)?;
    let qualifier = store::qualifier(&name, request.query("Qualifier"))?;
    Ok((name.name, qualifier))
}

/// A list's answer: the page, and where the next begins.
fn listed(
    api: &Api,
    request: &Request,
    key: &str,
    all: impl FnOnce(&store::Account) -> Result<Vec<serde_json::Value>, Fault>,
) -> crate::request::Outcome {
    let items = all(&api.account())?;
    let (items, next) = request.page().of(items);
    let mut view = serde_json::json!({ key: items });
    if let Some(next) = next {
        view["NextMarker"] = next.into();
    }
    Ok(crate::request::Reply::json(200, &view))
}
