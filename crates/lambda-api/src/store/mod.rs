//! What the account holds: functions with their versions and aliases, layers, tags, limits. Plain data; who changes it holds the lock.

mod configuration;
mod function;
mod layer;
mod persist;
pub mod view;

pub use configuration::{Change, Configuration, ImageSettings, LogSettings};
pub use function::{
    Alias, CodeOf, EventInvoke, Function, LATEST, LastUpdate, Permission, Provisioned, State, UrlConfig,
    Version,
};
pub use layer::{Layer, LayerVersion};
pub use persist::Persist;

use crate::arn::{self, FunctionName};
use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An account in one region.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Account {
    pub functions: BTreeMap<String, Function>,
    pub layers: BTreeMap<String, Layer>,
    /// Names of roles that were created.
    #[serde(default)]
    pub roles: BTreeMap<String, crate::services::iam::Role>,
}

/// A version that a name and a qualifier lead to.
pub struct Found<'a> {
    pub function: &'a Function,
    pub version: &'a Version,
    /// The alias on the way.
    pub alias: Option<&'a str>,
}

impl Account {
    pub fn function(&self, region: &str, name: &str) -> Result<&Function, Fault> {
        let missing = || Fault::function_not_found(&arn::function(region, name, None));
        self.functions.get(name).ok_or_else(missing)
    }

    pub fn function_mut(&mut self, region: &str, name: &str) -> Result<&mut Function, Fault> {
        let missing = || Fault::function_not_found(&arn::function(region, name, None));
        self.functions.get_mut(name).ok_or_else(missing)
    }

    /// The version that a qualifier means: none is `$LATEST`; an alias leads to its version.
    pub fn find<'a>(&'a self, region: &str, name: &str, qualifier: Option<&str>) -> Result<Found<'a>, Fault> {
        let missing = || Fault::function_not_found(&arn::function(region, name, qualifier));
        let function = self.functions.get(name).ok_or_else(missing)?;
        let qualifier = qualifier.unwrap_or(LATEST);
        if let Some((alias, at)) = function.aliases.get_key_value(qualifier) {
            let version = function.version(&at.version).ok_or_else(missing)?;
            return Ok(Found { function, version, alias: Some(alias) });
        }
        let version = function.version(qualifier).ok_or_else(missing)?;
        Ok(Found { function, version, alias: None })
    }
}

/// The qualifier of a request: part of the name, or a parameter; both must agree.
pub fn qualifier(name: &FunctionName, parameter: Option<&str>) -> Result<Option<String>, Fault> {
    match (name.qualifier.as_deref(), parameter) {
        (Some(a), Some(b)) if a != b => Err(Fault::invalid(
            "The derived qualifier from the function name does not match the specified qualifier.",
        )),
        (a, b) => Ok(a.or(b).map(str::to_owned)),
    }
}
