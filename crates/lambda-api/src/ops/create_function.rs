//! CreateFunction.

use crate::api::{Api, now_ms};
use crate::code::{self, LOCAL_BUCKET, ZIP_BYTES};
use crate::fault::{Fault, Kind};
use crate::request::{Outcome, Reply, Request};
use crate::store::{Change, CodeOf, Configuration, Function, LATEST, LastUpdate, State, Version, view};
use crate::{arn, deploy};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Largest body of a request with code: 50 MB in base64, and settings (AWS's own number, in its message).
pub const BODY_BYTES: usize = 70_167_211;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    function_name: String,
    #[serde(default)]
    code: CodeInput,
    package_type: Option<String>,
    architectures: Option<Vec<String>>,
    #[serde(default)]
    publish: bool,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(flatten)]
    settings: Change,
}

/// `FunctionCode`, and the code members of UpdateFunctionCode and PublishLayerVersion.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CodeInput {
    pub zip_file: Option<String>,
    pub s3_bucket: Option<String>,
    pub s3_key: Option<String>,
    pub image_uri: Option<String>,
}

pub fn create_function(api: &Arc<Api>, request: &Request) -> Outcome {
    if request.body.len() > BODY_BYTES {
        return Err(too_large("CreateFunction"));
    }
    let input: Input = request.json()?;
    let name = arn::function_name(&input.function_name)?.name;
    if name.len() > danki_model::limits::NAME_CHARS {
        let constraint = "Member must have length less than or equal to 64";
        return Err(Fault::constraint(&name, "functionName", constraint));
    }
    if api.account().functions.contains_key(&name) {
        return Err(Fault::conflict(format!("Function already exist: {name}")));
    }
    let architecture = architecture(input.architectures)?;
    let package_type = match check_required(&input.package_type, &input.settings)? {
        true => "Image".to_owned(),
        false => "Zip".to_owned(),
    };
    let before = Configuration { architecture, package_type, ..Configuration::default() };
    let settings = input.settings.apply(&before)?;
    check_layers(api, &settings.layers)?;
    let code = code_of(api, &input.code, &settings.package_type)?;
    let function = new_function(api, name.clone(), settings, code, input.tags);
    let made = api.change(|account| {
        if account.functions.contains_key(&name) {
            return Err(Fault::conflict(format!("Function already exist: {name}")));
        }
        account.functions.insert(name.clone(), function);
        Ok(())
    });
    made?;
    deploy::deploy(api, &name, LATEST);
    if input.publish {
        return super::versions::publish(api, &name, String::new(), 201);
    }
    let account = api.account();
    let function = account.function(api.region(), &name)?;
    Ok(Reply::json(201, &view::with_state(api.region(), &name, &function.latest, None)))
}

fn new_function(
    api: &Api,
    name: String,
    configuration: Configuration,
    code: CodeOf,
    tags: BTreeMap<String, String>,
) -> Function {
    let latest = Version {
        number: LATEST.to_owned(),
        configuration,
        code,
        revision: api.uuid(),
        modified_ms: now_ms(),
        state: State::Pending,
        last_update: LastUpdate::InProgress,
    };
    Function {
        name,
        latest,
        versions: BTreeMap::new(),
        next_version: 1,
        aliases: BTreeMap::new(),
        tags,
        reserved: None,
        provisioned: BTreeMap::new(),
        event_invoke: BTreeMap::new(),
        urls: BTreeMap::new(),
        permissions: BTreeMap::new(),
        recursion: "Terminate".to_owned(),
        runtime_update: json!({ "UpdateRuntimeOn": "Auto" }),
    }
}

/// Whether it is an image, and whether everything is there that its kind needs.
fn check_required(package_type: &Option<String>, settings: &Change) -> Result<bool, Fault> {
    let is_image = match package_type.as_deref() {
        Some("Image") => true,
        None | Some("Zip") => false,
        Some(other) => {
            let constraint = "Member must satisfy enum value set: [Image, Zip]";
            return Err(Fault::constraint(other, "packageType", constraint));
        }
    };
    let for_zips = [
        ("runtime", settings.runtime.is_some()),
        ("handler", settings.handler.is_some()),
        ("layers", settings.layers.as_ref().is_some_and(|layers| !layers.is_empty())),
    ];
    match for_zips.iter().find(|(_, given)| *given) {
        Some((member, _)) if is_image => {
            return Err(Fault::invalid(format!(
                "Please don't provide {member} when the intended function PackageType is Image."
            )));
        }
        _ if !is_image && (settings.runtime.is_none() || settings.handler.is_none()) => {
            return Err(Fault::invalid(
                "Runtime and Handler are mandatory parameters for functions created with deployment packages.",
            ));
        }
        _ => {}
    }
    if settings.role.is_none() {
        return Err(Fault::constraint("null", "role", "Member must not be null"));
    }
    Ok(is_image)
}

fn architecture(asked: Option<Vec<String>>) -> Result<String, Fault> {
    let asked = asked.unwrap_or_else(|| vec!["x86_64".to_owned()]);
    match asked.as_slice() {
        [one] if one == "x86_64" || one == "arm64" => Ok(one.clone()),
        other => Err(Fault::constraint(
            &format!("[{}]", other.join(", ")),
            "architectures",
            "Member must satisfy constraint: [Member must satisfy enum value set: [x86_64, arm64], Member must not be null]",
        )),
    }
}

pub fn check_layers(api: &Api, layers: &[String]) -> Result<(), Fault> {
    let account = api.account();
    layers.iter().try_for_each(|layer| deploy::layer_dir(&account, layer).map(drop))
}

pub fn too_large(operation: &str) -> Fault {
    let message = format!("Request must be smaller than {BODY_BYTES} bytes for the {operation} operation");
    Fault::new(Kind::RequestEntityTooLarge, message)
}

/// The code of a request: a zip in it, an uploaded one, a directory, or an image.
pub fn code_of(api: &Api, input: &CodeInput, package_type: &str) -> Result<CodeOf, Fault> {
    match (&input.image_uri, package_type == "Image") {
        (Some(uri), true) => return code::image(uri),
        (None, false) => {}
        (None, true) => return Err(Fault::invalid("Please provide ImageUri when the PackageType is Image.")),
        (Some(_), false) => {
            return Err(Fault::invalid("Please don't provide ImageUri when the PackageType is Zip."));
        }
    }
    match (&input.zip_file, &input.s3_bucket, &input.s3_key) {
        (Some(zip), None, None) => {
            let zip = code::decode(zip)?;
            if zip.len() > ZIP_BYTES {
                return Err(Fault::invalid(format!("Zipped size must be smaller than {ZIP_BYTES} bytes")));
            }
            code::unpack(&zip, &api.code_dir())
        }
        (None, Some(bucket), Some(path)) if bucket == LOCAL_BUCKET => code::local(path),
        (None, Some(bucket), Some(key)) => {
            let zip = api.buckets.object(bucket, key).map_err(|missing| {
                let (code, message) = missing.words();
                Fault::invalid(format!(
                    "Error occurred while GetObject. S3 Error Code: {code}. S3 Error Message: {message}"
                ))
            })?;
            code::unpack(&zip, &api.code_dir())
        }
        (Some(_), ..) => Err(Fault::invalid(
            "Please do not provide other FunctionCode parameters when providing a ZipFile.",
        )),
        _ => Err(Fault::invalid("Please provide a source for function code.")),
    }
}
