//! DeleteFunction: the whole function, or one version.

use super::qualified;
use crate::api::Api;
use crate::arn;
use crate::fault::Fault;
use crate::request::{Outcome, Reply, Request};
use crate::store::LATEST;
use std::sync::Arc;

pub fn delete_function(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = qualified(request)?;
    match qualifier.as_deref() {
        None => delete_all(api, &name)?,
        Some(LATEST) => {
            return Err(Fault::invalid("$LATEST version cannot be deleted without deleting the function."));
        }
        Some(number) => delete_version(api, &name, number)?,
    }
    Ok(Reply::empty(204))
}

fn delete_all(api: &Arc<Api>, name: &str) -> Result<(), Fault> {
    api.change(|account| {
        account.function(api.region(), name)?;
        account.functions.remove(name);
        Ok(())
    })?;
    api.fleet.remove(name, None);
    if let Some(host) = api.fleet.host_now() {
        // Giving a reservation back is never refused.
        host.set_reserved(name, None).ok();
    }
    Ok(())
}

fn delete_version(api: &Arc<Api>, name: &str, qualifier: &str) -> Result<(), Fault> {
    api.change(|account| {
        let function = account.function_mut(api.region(), name)?;
        if function.aliases.contains_key(qualifier) {
            return Err(Fault::invalid("Deletion of aliases is not currently supported."));
        }
        let missing = || Fault::function_not_found(&arn::function(api.region(), name, Some(qualifier)));
        let number: u64 = qualifier.parse().map_err(|_| missing())?;
        let aliases: Vec<&str> = function
            .aliases
            .iter()
            .filter(|(_, a)| a.version == qualifier || a.weights.contains_key(qualifier))
            .map(|(alias, _)| alias.as_str())
            .collect();
        if !aliases.is_empty() {
            let message =
                format!("Version was not deleted because it is used by aliases: [{}]", aliases.join(", "));
            return Err(Fault::conflict(message));
        }
        function.versions.remove(&number).map(drop).ok_or_else(missing)?;
        function.provisioned.remove(qualifier);
        Ok(())
    })?;
    api.fleet.remove(name, Some(qualifier));
    Ok(())
}
