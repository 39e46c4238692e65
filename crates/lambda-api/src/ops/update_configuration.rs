//! UpdateFunctionConfiguration.

use super::create_function::check_layers;
use super::function_name;
use super::update_code::{begin_update, touch};
use crate::api::Api;
use crate::deploy;
use crate::request::{Outcome, Reply, Request};
use crate::store::{Change, LATEST, view};
use std::sync::Arc;

pub fn update_function_configuration(api: &Arc<Api>, request: &Request) -> Outcome {
    let name = function_name(request)?.name;
    let mut change: Change = request.json()?;
    check_layers(api, change.layers.as_deref().unwrap_or_default())?;
    let revision = change.revision_id.take();
    let changed = api.change(|account| {
        let function = account.function_mut(api.region(), &name)?;
        begin_update(api, &name, &mut function.latest, revision.as_deref())?;
        function.latest.configuration = change.apply(&function.latest.configuration)?;
        touch(api, &mut function.latest);
        Ok(function.latest.clone())
    })?;
    deploy::deploy(api, &name, LATEST);
    Ok(Reply::json(200, &view::with_state(api.region(), &name, &changed, None)))
}
