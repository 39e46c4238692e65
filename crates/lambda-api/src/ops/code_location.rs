//! Where GetFunction's `Code.Location` leads: the zip as it was uploaded.

use crate::api::Api;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use std::sync::Arc;

pub fn code_location(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, number) = (request.parameter("FunctionName"), request.parameter("Version"));
    let zip = {
        let account = api.account();
        account.find(api.region(), name, Some(number))?.version.code.zip.clone()
    };
    let Some(path) = zip else {
        return Err(Fault::not_found(
            "the code is a directory or an image of this machine, there is no zip of it",
        ));
    };
    let bytes =
        std::fs::read(&path).map_err(|e| Fault::service(format!("cannot read {}: {e}", path.display())))?;
    Ok(Reply { content_type: "application/zip", ..Reply::bytes(200, bytes.into()) })
}
