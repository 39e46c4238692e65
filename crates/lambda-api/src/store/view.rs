//! The store in AWS's JSON shapes.

use super::{
    Alias, EventInvoke, Function, ImageSettings, LastUpdate, Layer, LayerVersion, State, UrlConfig, Version,
};
use crate::arn;
use serde_json::{Map, Value, json};

/// `2026-11-21T20:30:00.000+0000`, as Lambda writes most times.
pub fn time(epoch_ms: u64) -> String {
    danki_model::time::iso(epoch_ms).replace('Z', "+0000")
}

/// `FunctionConfiguration`. `qualifier` becomes part of the ARN.
pub fn configuration(
    region: &str,
    name: &str,
    version: &Version,
    qualifier: Option<&str>,
) -> Map<String, Value> {
    let c = &version.configuration;
    let mut view = json!({
        "FunctionName": name,
        "FunctionArn": arn::function(region, name, qualifier),
        "Role": c.role,
        "CodeSize": version.code.size,
        "Description": c.description,
        "Timeout": c.timeout_s,
        "MemorySize": c.memory_mb,
        "LastModified": time(version.modified_ms),
        "CodeSha256": version.code.sha256,
        "Version": version.number,
        "TracingConfig": { "Mode": c.tracing },
        "RevisionId": version.revision,
        "PackageType": c.package_type,
        "Architectures": [c.architecture],
        "EphemeralStorage": { "Size": c.ephemeral_mb },
        "SnapStart": { "ApplyOn": "None", "OptimizationStatus": "Off" },
        "LoggingConfig": logging(name, version),
    });
    let object = view.as_object_mut().expect("made of an object just now");
    let mut put = |name: &str, value: Option<Value>| {
        object.extend(value.map(|value| (name.to_owned(), value)));
    };
    if c.package_type == "Zip" {
        put("Runtime", Some(c.runtime.clone().into()));
        put("Handler", Some(c.handler.clone().into()));
        put("RuntimeVersionConfig", runtime_version(&c.runtime));
    }
    if c.image != ImageSettings::default() {
        put("ImageConfigResponse", Some(json!({ "ImageConfig": c.image })));
    }
    put("Environment", c.environment.as_ref().map(|variables| json!({ "Variables": variables })));
    put("VpcConfig", c.vpc.clone());
    put("DeadLetterConfig", c.dead_letter.as_ref().map(|target| json!({ "TargetArn": target })));
    put("KMSKeyArn", c.kms_key.clone().map(Value::from));
    let layers = c.layers.iter().map(|arn| json!({ "Arn": arn, "CodeSize": 0 }));
    put("Layers", (!c.layers.is_empty()).then(|| layers.collect()));
    std::mem::take(object)
}

fn logging(name: &str, version: &Version) -> Value {
    let settings = &version.configuration.logging;
    let mut view = json!(settings);
    if settings.log_group.is_none() {
        view["LogGroup"] = danki_model::log::group_name(name).into();
    }
    view
}

fn runtime_version(runtime: &str) -> Option<Value> {
    let (_, arn) = danki_model::log::runtime_version(runtime.parse().ok()?);
    Some(json!({ "RuntimeVersionArn": arn }))
}

/// `FunctionConfiguration` with its states, which lists leave out.
pub fn with_state(region: &str, name: &str, version: &Version, qualifier: Option<&str>) -> Value {
    let mut view = configuration(region, name, version, qualifier);
    let mut put = |name: &str, value: &str| view.insert(name.to_owned(), value.into());
    match &version.state {
        State::Pending => {
            put("State", "Pending");
            put("StateReason", "The function is being created.");
            put("StateReasonCode", "Creating");
        }
        State::Active => {
            put("State", "Active");
        }
        State::Failed(reason) => {
            put("State", "Failed");
            put("StateReason", reason);
            put("StateReasonCode", "FunctionError");
        }
    }
    match &version.last_update {
        LastUpdate::InProgress => {
            put("LastUpdateStatus", "InProgress");
        }
        LastUpdate::Successful => {
            put("LastUpdateStatus", "Successful");
        }
        LastUpdate::Failed(reason) => {
            put("LastUpdateStatus", "Failed");
            put("LastUpdateStatusReason", reason);
            put("LastUpdateStatusReasonCode", "FunctionError");
        }
    }
    Value::Object(view)
}

/// `AliasConfiguration`.
pub fn alias(region: &str, function: &str, name: &str, alias: &Alias) -> Value {
    let mut view = json!({
        "AliasArn": arn::function(region, function, Some(name)),
        "Name": name,
        "FunctionVersion": alias.version,
        "Description": alias.description,
        "RevisionId": alias.revision,
    });
    if !alias.weights.is_empty() {
        view["RoutingConfig"] = json!({ "AdditionalVersionWeights": alias.weights });
    }
    view
}

/// `LayerVersionsListItem`, and most of `GetLayerVersionResponse`.
pub fn layer_version(region: &str, name: &str, number: u64, version: &LayerVersion) -> Value {
    let mut view = json!({
        "LayerVersionArn": arn::layer(region, name, Some(number)),
        "Version": number,
        "Description": version.description,
        "CreatedDate": time(version.created_ms),
    });
    if !version.runtimes.is_empty() {
        view["CompatibleRuntimes"] = json!(version.runtimes);
    }
    if !version.architectures.is_empty() {
        view["CompatibleArchitectures"] = json!(version.architectures);
    }
    if let Some(licence) = &version.licence {
        view["LicenseInfo"] = json!(licence);
    }
    view
}

/// `LayersListItem`, if the layer has a version.
pub fn layer(region: &str, name: &str, layer: &Layer) -> Option<Value> {
    let (number, latest) = layer.versions.last_key_value()?;
    Some(json!({
        "LayerName": name,
        "LayerArn": arn::layer(region, name, None),
        "LatestMatchingVersion": layer_version(region, name, *number, latest),
    }))
}

/// `FunctionEventInvokeConfig`.
pub fn event_invoke(region: &str, name: &str, qualifier: &str, config: &EventInvoke) -> Value {
    let target = |arn: &Option<String>| match arn {
        Some(arn) => json!({ "Destination": arn }),
        None => json!({}),
    };
    let mut view = json!({
        "LastModified": config.modified_ms as f64 / 1e3,
        "FunctionArn": arn::function(region, name, Some(qualifier)),
        "DestinationConfig": { "OnSuccess": target(&config.on_success), "OnFailure": target(&config.on_failure) },
    });
    if let Some(retries) = config.retries {
        view["MaximumRetryAttempts"] = retries.into();
    }
    if let Some(age) = config.max_age_s {
        view["MaximumEventAgeInSeconds"] = age.into();
    }
    view
}

/// `FunctionUrlConfig`.
pub fn url(region: &str, function: &Function, qualifier: &str, config: &UrlConfig) -> Value {
    let suffix = (qualifier != super::LATEST).then_some(qualifier);
    let mut view = json!({
        "FunctionUrl": format!("https://{}.lambda-url.{region}.on.aws/", config.id),
        "FunctionArn": arn::function(region, &function.name, suffix),
        "AuthType": config.auth_type,
        "CreationTime": danki_model::time::iso(config.created_ms),
        "LastModifiedTime": danki_model::time::iso(config.modified_ms),
        "InvokeMode": config.invoke_mode,
    });
    if let Some(cors) = &config.cors {
        view["Cors"] = cors.clone();
    }
    view
}
