//! From the account's settings to a function that can be invoked.

use crate::api::Api;
use crate::arn;
use crate::fault::Fault;
use crate::store::{Account, Function, LATEST, LastUpdate, LogSettings, State, Version};
use danki_model::{FunctionSpec, ImageSpec, Logging, MemoryMb, Runtime, UnknownRuntime};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Deploys a version in the background, then says in the account how it went: `Active` and `Successful`, or why not.
pub fn deploy(api: &Arc<Api>, function: &str, number: &str) {
    let (api, function, number) = (Arc::clone(api), function.to_owned(), number.to_owned());
    tokio::spawn(async move { deploy_now(&api, &function, &number).await });
}

/// As [`deploy`], and waits.
pub async fn deploy_now(api: &Arc<Api>, function: &str, number: &str) {
    let asked = {
        let account = api.account();
        let version = account.functions.get(function).and_then(|f| f.version(number));
        version.map(|v| (v.revision.clone(), specification(&account, api.region(), function, v)))
    };
    let Some((revision, specification)) = asked else { return };
    let deployed = match specification {
        Ok(specification) => api.fleet.deploy(specification, number).await,
        Err(fault) => Err(fault.message),
    };
    let next_revision = api.uuid();
    let noted = api.change(|account| {
        let function = account.functions.get_mut(function);
        let version = function.and_then(|f| f.version_mut(number)).filter(|v| v.revision == revision);
        if let Some(version) = version {
            settle(version, deployed, next_revision);
        }
        Ok(())
    });
    // A state that cannot be kept is said to whoever changes it next.
    noted.ok();
}

fn settle(version: &mut Version, deployed: Result<(), String>, revision: String) {
    let first = version.state == State::Pending;
    match deployed {
        Ok(()) => (version.state, version.last_update) = (State::Active, LastUpdate::Successful),
        Err(reason) => {
            if first {
                version.state = State::Failed(reason.clone());
            }
            version.last_update = LastUpdate::Failed(reason);
        }
    }
    version.revision = revision;
}

/// What of a function is to be there again.
struct Kept {
    name: String,
    versions: Vec<String>,
    reserved: Option<u32>,
    /// Version and amount.
    provisioned: Vec<(String, u32)>,
}

impl Kept {
    fn of(function: &Function) -> Kept {
        let provisioned = function.provisioned.iter();
        Kept {
            name: function.name.clone(),
            versions: function.versions.keys().map(u64::to_string).chain([LATEST.to_owned()]).collect(),
            reserved: function.reserved,
            provisioned: provisioned
                .filter_map(|(q, p)| Some((function.resolve(q)?.number.clone(), p.requested)))
                .collect(),
        }
    }
}

/// Deploys everything that was kept, and its concurrency.
pub async fn restore(api: Arc<Api>) {
    let all: Vec<Kept> = api.account().functions.values().map(Kept::of).collect();
    for Kept { name, versions, reserved, provisioned } in all {
        for number in &versions {
            deploy_now(&api, &name, number).await;
        }
        let Ok(host) = api.fleet.host().await else { return };
        // What was accepted once fits again, unless the account's limit was lowered; then the function runs without.
        host.set_reserved(&name, reserved).ok();
        for (number, requested) in provisioned {
            if let Some(function) = api.fleet.get(&name, &number) {
                function.provision(requested).ok();
            }
        }
    }
}

fn specification(
    account: &Account,
    region: &str,
    name: &str,
    version: &Version,
) -> Result<FunctionSpec, Fault> {
    let c = &version.configuration;
    let (runtime, image) = match c.package_type.as_str() {
        "Image" => (Runtime::Provided, Some(image(version))),
        _ => (c.runtime.parse().map_err(|e: UnknownRuntime| Fault::invalid(e.to_string()))?, None),
    };
    // An image's code is a file; what stands for it is where it lies.
    let code = match &image {
        Some(image) => image.archive.parent().unwrap_or(&image.archive).to_path_buf(),
        None => version.code.dir.clone(),
    };
    let memory = MemoryMb::try_from(c.memory_mb).map_err(|e| Fault::invalid(e.to_string()))?;
    let layers: Result<Vec<PathBuf>, Fault> = c.layers.iter().map(|arn| layer_dir(account, arn)).collect();
    Ok(FunctionSpec {
        name: name.to_owned(),
        runtime,
        handler: c.handler.clone(),
        code,
        layers: layers?,
        memory,
        timeout_ms: u64::from(c.timeout_s) * 1_000,
        ephemeral_mb: c.ephemeral_mb,
        environment: c.environment.clone().unwrap_or_default(),
        region: region.to_owned(),
        logging: logging(&c.logging),
        image,
    })
}

fn image(version: &Version) -> ImageSpec {
    let settings = version.configuration.image.clone();
    ImageSpec {
        archive: version.code.dir.clone(),
        entry_point: settings.entry_point,
        command: settings.command,
        working_directory: settings.working_directory,
    }
}

/// The store has the API's words, which are `model`'s too.
fn logging(settings: &LogSettings) -> Logging {
    let words = json!({
        "format": settings.log_format,
        "application": settings.application_log_level.as_deref().unwrap_or("INFO"),
        "system": settings.system_log_level.as_deref().unwrap_or("INFO"),
        "group": settings.log_group,
    });
    serde_json::from_value(words).expect("the words were checked when they came")
}

/// Where a layer version's files are.
pub fn layer_dir(account: &Account, text: &str) -> Result<PathBuf, Fault> {
    let (name, number) = arn::layer_name(text);
    let found = number.and_then(|n| account.layers.get(&name)?.versions.get(&n));
    found
        .map(|v| v.code.dir.clone())
        .ok_or_else(|| Fault::invalid(format!("Layer version {text} does not exist.")))
}
