//! What Secrets Manager and Parameter Store hold from the start, and what changes while functions run.

use crate::Error;
use crate::behaviour::Endpoint;
use serde::{Deserialize, Serialize};

/// Secrets Manager: what is in it, and how its endpoint behaves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecretsManager {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Secrets that exist from the start; not used with an upstream.
    pub secrets: Vec<Secret>,
}

/// A secret that exists from the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// Its name.
    pub name: String,
    /// Its bytes in base64, instead of `value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// After so many seconds it changes, counted from the region's start and divided by the time scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_after_s: Option<f64>,
    /// To this: text or, if `binary` was given, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_to: Option<String>,
    /// Its text; a table becomes JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
}

/// Parameter Store: what is in it, and how its endpoint behaves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ssm {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Parameters that exist from the start; not used with an upstream.
    pub parameters: Vec<Parameter>,
}

/// A parameter that exists from the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its type.
    #[serde(default)]
    pub r#type: ParameterType,
    /// After so many seconds it changes, counted from the region's start and divided by the time scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_after_s: Option<f64>,
    /// To this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_to: Option<String>,
}

/// Type of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParameterType {
    /// Plain text.
    #[default]
    String,
    /// Plain text, with commas in it.
    StringList,
    /// Encrypted by KMS.
    SecureString,
}

impl ParameterType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ParameterType::String => "String",
            ParameterType::StringList => "StringList",
            ParameterType::SecureString => "SecureString",
        }
    }
}

impl Secret {
    /// The text; none if it is binary.
    pub(crate) fn text(&self) -> Option<String> {
        match &self.value {
            Some(serde_json::Value::String(text)) => Some(text.clone()),
            other => other.as_ref().map(ToString::to_string),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), Error> {
        let key = |part: &str| format!("secretsmanager.secrets {:?}{part}", self.name);
        if self.value.is_some() == self.binary.is_some() {
            let allowed = "exactly one of value and binary is given";
            return Err(Error::Setting { key: key(""), value: "both or none".to_owned(), allowed });
        }
        rotation(&key(".rotate_after_s"), self.rotate_after_s, self.rotate_to.is_some())
    }
}

impl Parameter {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let key = format!("ssm.parameters {:?}.rotate_after_s", self.name);
        rotation(&key, self.rotate_after_s, self.rotate_to.is_some())
    }
}

fn rotation(key: &str, after_s: Option<f64>, to: bool) -> Result<(), Error> {
    let fine = match after_s {
        None => !to,
        Some(after_s) => to && (0.0..=86_400.0).contains(&after_s),
    };
    let value = after_s.map_or("nothing".to_owned(), |s| s.to_string());
    let allowed = "0 to 86400, together with rotate_to";
    if fine { Ok(()) } else { Err(Error::Setting { key: key.to_owned(), value, allowed }) }
}
