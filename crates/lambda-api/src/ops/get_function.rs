//! GetFunction, GetFunctionConfiguration, ListFunctions.

use super::{listed, qualified};
use crate::api::Api;
use crate::request::{Outcome, Reply, Request};
use crate::store::{LATEST, view};
use serde_json::{Value, json};
use std::sync::Arc;

pub fn get_function(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = qualified(request)?;
    let account = api.account();
    let found = account.find(api.region(), &name, qualifier.as_deref())?;
    let location = format!("http://{}/_danki/code/{name}/{}", request.host, found.version.number);
    let mut answer = json!({
        "Configuration": view::with_state(api.region(), &name, found.version, qualifier.as_deref()),
        "Code": match found.version.configuration.package_type.as_str() {
            "Image" => {
                let uri = found.version.code.dir.to_string_lossy();
                json!({ "RepositoryType": "ECR", "ImageUri": uri, "ResolvedImageUri": uri })
            }
            _ => json!({ "RepositoryType": "S3", "Location": location }),
        },
    });
    if !found.function.tags.is_empty() {
        answer["Tags"] = json!(found.function.tags);
    }
    if let Some(reserved) = found.function.reserved {
        answer["Concurrency"] = json!({ "ReservedConcurrentExecutions": reserved });
    }
    Ok(Reply::json(200, &answer))
}

pub fn get_function_configuration(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = qualified(request)?;
    let account = api.account();
    let found = account.find(api.region(), &name, qualifier.as_deref())?;
    Ok(Reply::json(200, &view::with_state(api.region(), &name, found.version, qualifier.as_deref())))
}

pub fn list_functions(api: &Arc<Api>, request: &Request) -> Outcome {
    let all_versions = request.query("FunctionVersion") == Some("ALL");
    listed(api, request, "Functions", |account| {
        let mut items = Vec::new();
        for function in account.functions.values() {
            let qualifier = all_versions.then_some(LATEST);
            let latest = view::configuration(api.region(), &function.name, &function.latest, qualifier);
            items.push(Value::Object(latest));
            for version in function.versions.values().filter(|_| all_versions) {
                let view = view::configuration(api.region(), &function.name, version, Some(&version.number));
                items.push(Value::Object(view));
            }
        }
        Ok(items)
    })
}
