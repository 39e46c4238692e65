//! UpdateFunctionCode.

use super::create_function::{BODY_BYTES, CodeInput, code_of, too_large};
use super::function_name;
use crate::api::{Api, now_ms};
use crate::deploy;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use crate::store::{LATEST, LastUpdate, Version, view};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    #[serde(flatten)]
    code: CodeInput,
    #[serde(default)]
    publish: bool,
    #[serde(default)]
    dry_run: bool,
    revision_id: Option<String>,
    architectures: Option<Vec<String>>,
}

pub fn update_function_code(api: &Arc<Api>, request: &Request) -> Outcome {
    if request.body.len() > BODY_BYTES {
        return Err(too_large("UpdateFunctionCode"));
    }
    let name = function_name(request)?.name;
    let input: Input = request.json()?;
    let package_type = api.account().function(api.region(), &name)?.latest.configuration.package_type.clone();
    let code = code_of(api, &input.code, &package_type)?;
    let changed = api.change(|account| {
        let function = account.function_mut(api.region(), &name)?;
        begin_update(api, &name, &mut function.latest, input.revision_id.as_deref())?;
        let mut next = function.latest.clone();
        next.code = code;
        if let Some([architecture]) = input.architectures.as_deref() {
            next.configuration.architecture = architecture.clone();
        }
        touch(api, &mut next);
        if !input.dry_run {
            function.latest = next.clone();
        }
        Ok(next)
    })?;
    if input.dry_run {
        return Ok(Reply::json(200, &view::with_state(api.region(), &name, &changed, None)));
    }
    deploy::deploy(api, &name, LATEST);
    if input.publish {
        return super::versions::publish(api, &name, String::new(), 200);
    }
    Ok(Reply::json(200, &view::with_state(api.region(), &name, &changed, None)))
}

/// One change at a time, and only of the revision that the caller saw.
pub fn begin_update(
    api: &Api,
    name: &str,
    version: &mut Version,
    revision: Option<&str>,
) -> Result<(), Fault> {
    if revision.is_some_and(|revision| revision != version.revision) {
        return Err(Fault::revision());
    }
    if version.last_update == LastUpdate::InProgress {
        let arn = crate::arn::function(api.region(), name, None);
        let message = format!(
            "The operation cannot be performed at this time. An update is in progress for resource: {arn}"
        );
        return Err(Fault::conflict(message));
    }
    Ok(())
}

/// A change begins: AWS answers `InProgress`, and the old version serves until it is done.
pub fn touch(api: &Api, version: &mut Version) {
    version.modified_ms = now_ms();
    version.revision = api.uuid();
    version.last_update = LastUpdate::InProgress;
}
