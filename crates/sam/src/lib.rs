//! SAM and CloudFormation templates as what danki can run: functions, routes, layers, tables.
//!
//! [`read`] takes the text of a template and what is known about the deployment, resolves conditions and intrinsic functions, and gives
//! plain values. It is pure: paths are those of the template, nothing is opened. What a template may say and danki does not
//! run is a warning each, not a failure: templates describe whole systems.

mod error;
mod events;
mod function;
mod intrinsic;
mod read;
mod scope;
mod services;
mod template;
mod yaml;

pub use error::Error;
pub use events::{Front, Payload, Route};
pub use function::{Alias, Code, Function, ImageConfig, Url, Vpc};
pub use services::{Attribute, Index, Layer, Parameter, Projection, Secret, Table};
pub use template::read;

use std::collections::BTreeMap;

/// What a template does not say about its own deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// `AWS::StackName`; part of names that CloudFormation makes up.
    pub stack: String,
    /// `AWS::Region`
    pub region: String,
    /// `AWS::AccountId`
    pub account: String,
    /// Values for the template's parameters.
    pub parameters: BTreeMap<String, String>,
}

impl Default for Deployment {
    /// A stack named `danki` in `us-east-1`, account 000000000000.
    fn default() -> Deployment {
        Deployment {
            stack: "danki".to_owned(),
            region: "us-east-1".to_owned(),
            account: "000000000000".to_owned(),
            parameters: BTreeMap::new(),
        }
    }
}

/// What a template describes, in the order of the template.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// Functions.
    pub functions: Vec<Function>,
    /// HTTP routes to functions.
    pub routes: Vec<Route>,
    /// Layers that the template itself publishes.
    pub layers: Vec<Layer>,
    /// DynamoDB tables.
    pub tables: Vec<Table>,
    /// Secrets Manager secrets.
    pub secrets: Vec<Secret>,
    /// SSM parameters.
    pub parameters: Vec<Parameter>,
    /// `Outputs`, resolved.
    pub outputs: BTreeMap<String, String>,
    /// What is described but not run.
    pub warnings: Vec<Warning>,
}

/// Something that the template describes and danki does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Line of the template.
    pub line: usize,
    /// Logical id.
    pub resource: String,
    /// What is not run, in words.
    pub what: String,
}
