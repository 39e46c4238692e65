//! Layers by zip: publish, get, list, delete.

use super::create_function::{BODY_BYTES, CodeInput, code_of, too_large};
use super::listed;
use crate::api::{Api, now_ms};
use crate::arn;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use crate::store::{LayerVersion, view};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    #[serde(default)]
    content: CodeInput,
    #[serde(default)]
    description: String,
    license_info: Option<String>,
    #[serde(default)]
    compatible_runtimes: Vec<String>,
    #[serde(default)]
    compatible_architectures: Vec<String>,
}

pub fn publish(api: &Arc<Api>, request: &Request) -> Outcome {
    if request.body.len() > BODY_BYTES {
        return Err(too_large("PublishLayerVersion"));
    }
    let (name, _) = arn::layer_name(request.parameter("LayerName"));
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 140 || !name.chars().all(legal) {
        let pattern = "Member must satisfy regular expression pattern: [a-zA-Z0-9-_]+";
        return Err(Fault::constraint(&name, "layerName", pattern));
    }
    let input: Input = request.json()?;
    let version = LayerVersion {
        code: code_of(api, &input.content, "Zip")?,
        description: input.description,
        licence: input.license_info,
        runtimes: input.compatible_runtimes,
        architectures: input.compatible_architectures,
        created_ms: now_ms(),
    };
    let view = api.change(|account| {
        let layer = account.layers.entry(name.clone()).or_default();
        layer.next_version += 1;
        let number = layer.next_version;
        let view = whole(api, request, &name, number, &version);
        layer.versions.insert(number, version);
        Ok(view)
    })?;
    Ok(Reply::json(201, &view))
}

pub fn get(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, _) = arn::layer_name(request.parameter("LayerName"));
    let number = number(request)?;
    found(api, request, &name, number)
}

/// GetLayerVersionByArn, and ListLayers, which share a path.
pub fn list_or_by_arn(api: &Arc<Api>, request: &Request) -> Outcome {
    if request.query("find") == Some("LayerVersion") {
        let (name, number) = arn::layer_name(request.query("Arn").unwrap_or_default());
        return found(api, request, &name, number.unwrap_or(0));
    }
    listed(api, request, "Layers", |account| {
        let fits = |v: &LayerVersion| {
            let runtime = request.query("CompatibleRuntime");
            runtime.is_none_or(|r| v.runtimes.iter().any(|runtime| runtime == r))
        };
        let layers = account.layers.iter().filter(|(_, l)| l.versions.values().any(fits));
        Ok(layers.filter_map(|(name, layer)| view::layer(api.region(), name, layer)).collect())
    })
}

pub fn list_versions(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, _) = arn::layer_name(request.parameter("LayerName"));
    listed(api, request, "LayerVersions", |account| {
        let Some(layer) = account.layers.get(&name) else { return Ok(Vec::new()) };
        let newest_first = layer.versions.iter().rev();
        Ok(newest_first.map(|(number, v)| view::layer_version(api.region(), &name, *number, v)).collect())
    })
}

/// Deleting what is not there succeeds. Functions that use the version keep its files.
pub fn delete(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, _) = arn::layer_name(request.parameter("LayerName"));
    let number = number(request)?;
    api.change(|account| {
        if let Some(layer) = account.layers.get_mut(&name) {
            layer.versions.remove(&number);
        }
        Ok(())
    })?;
    Ok(Reply::empty(204))
}

/// The zip of a layer version.
pub fn content(api: &Arc<Api>, request: &Request) -> Outcome {
    let number = number(request)?;
    let zip = {
        let account = api.account();
        let version =
            account.layers.get(request.parameter("LayerName")).and_then(|l| l.versions.get(&number));
        version.and_then(|v| v.code.zip.clone())
    };
    let bytes = zip.and_then(|path| std::fs::read(path).ok());
    let bytes = bytes.ok_or_else(|| Fault::not_found("there is no zip of this layer version"))?;
    Ok(Reply { content_type: "application/zip", ..Reply::bytes(200, bytes.into()) })
}

fn number(request: &Request) -> Result<u64, Fault> {
    let text = request.parameter("VersionNumber");
    let number = text.parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| Fault::invalid("Layer Version Cannot be less than 1."))
}

fn found(api: &Arc<Api>, request: &Request, name: &str, number: u64) -> Outcome {
    let account = api.account();
    let version = account.layers.get(name).and_then(|l| l.versions.get(&number));
    let missing = || Fault::not_found("The resource you requested does not exist.");
    Ok(Reply::json(200, &whole(api, request, name, number, version.ok_or_else(missing)?)))
}

fn whole(api: &Api, request: &Request, name: &str, number: u64, version: &LayerVersion) -> Value {
    let mut view = view::layer_version(api.region(), name, number, version);
    view["LayerArn"] = arn::layer(api.region(), name, None).into();
    view["Content"] = json!({
        "Location": format!("http://{}/_danki/layer/{name}/{number}", request.host),
        "CodeSha256": version.code.sha256,
        "CodeSize": version.code.size,
    });
    view
}
