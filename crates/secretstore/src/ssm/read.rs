//! Operations that give values.

use super::parameter::split_selector;
use super::{Secrets, Ssm, bad_token, not_found};
use crate::reply::{Outcome, Refusal};
use crate::request::{at_most, page, required};
use crate::{At, seconds};
use serde::Deserialize;
use serde_json::{Value, json};

/// AWS's limit of names in one call (service model: `ParameterNameList`), and of a page by path.
const MOST: usize = 10;
/// AWS's largest page of a history.
const HISTORY: usize = 50;
/// Names below it are secrets of Secrets Manager.
const REFERENCE: &str = "/aws/reference/secretsmanager/";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Get {
    name: Option<String>,
    #[serde(default)]
    with_decryption: bool,
    max_results: Option<usize>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetSeveral {
    names: Option<Vec<String>>,
    #[serde(default)]
    with_decryption: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetByPath {
    path: Option<String>,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    with_decryption: bool,
    max_results: Option<usize>,
    next_token: Option<String>,
}

impl Ssm {
    pub(super) fn get_parameter(&mut self, request: Get, at: &mut At<'_>, secrets: Secrets<'_>) -> Outcome {
        let name = required(request.name, "name")?;
        Ok(json!({ "Parameter": self.one(&name, request.with_decryption, at, secrets)? }))
    }

    pub(super) fn get_parameters(
        &mut self,
        request: GetSeveral,
        at: &mut At<'_>,
        mut secrets: Secrets<'_>,
    ) -> Outcome {
        let names = required(request.names, "names")?;
        at_most(&names, MOST, "names")?;
        let (mut found, mut invalid) = (Vec::new(), Vec::new());
        for name in names {
            match self.one(&name, request.with_decryption, at, secrets.as_deref_mut()) {
                Ok(parameter) => found.push(parameter),
                Err(_) => invalid.push(name),
            }
        }
        Ok(json!({ "Parameters": found, "InvalidParameters": invalid }))
    }

    /// A parameter, or a secret under a parameter's name.
    fn one(&mut self, asked: &str, decrypt: bool, at: &At<'_>, secrets: Secrets<'_>) -> Outcome {
        let (name, selector) = split_selector(asked);
        if let Some(secret) = name.strip_prefix(REFERENCE) {
            return referenced(name, secret, selector, decrypt, at, secrets);
        }
        let parameter = self.find(name)?;
        let mut shown = parameter.shown(parameter.select(selector)?, decrypt);
        if let Some(selector) = selector {
            shown["Selector"] = json!(format!(":{selector}"));
        }
        Ok(shown)
    }

    pub(super) fn get_parameters_by_path(
        &mut self,
        request: GetByPath,
        _: &mut At<'_>,
        _: Secrets<'_>,
    ) -> Outcome {
        let path = required(request.path, "path")?;
        if !path.starts_with('/') {
            return Err(Refusal::validation(format!(
                "The parameter doesn't meet the parameter name requirements. The parameter name must begin with a forward \
                 slash \"/\". It can't be prefixed with \\\"aws\\\" or \\\"ssm\\\" (case-insensitive). [Path: {path}]"
            )));
        }
        let below = match path.ends_with('/') {
            true => path,
            false => path + "/",
        };
        let wanted = |name: &str| {
            name.strip_prefix(&below).is_some_and(|rest| request.recursive || !rest.contains('/'))
        };
        let all: Vec<Value> = self
            .parameters
            .values()
            .filter(|parameter| wanted(&parameter.name))
            .map(|parameter| parameter.shown(parameter.latest(), request.with_decryption))
            .collect();
        let most = request.max_results.unwrap_or(MOST).min(MOST);
        let (parameters, next) = page(all, request.next_token.as_deref(), most, bad_token())?;
        let mut answer = json!({ "Parameters": parameters });
        if let Some(next) = next {
            answer["NextToken"] = json!(next);
        }
        Ok(answer)
    }

    pub(super) fn get_parameter_history(&mut self, request: Get, _: &mut At<'_>, _: Secrets<'_>) -> Outcome {
        let parameter = self.find(&required(request.name, "name")?)?;
        let all = parameter.versions.iter().map(|version| {
            let mut line = json!({
                "Name": parameter.name,
                "Type": version.kind.as_str(),
                "Value": version.shown(request.with_decryption),
                "Version": version.number,
                "Labels": version.labels,
                "Tier": version.tier,
                "Policies": [],
                "DataType": version.data_type,
                "LastModifiedDate": seconds(version.modified_ms),
                "LastModifiedUser": format!("arn:aws:iam::{}:root", crate::ACCOUNT),
            });
            version.add_optional(&mut line);
            line
        });
        let most = request.max_results.unwrap_or(HISTORY).min(HISTORY);
        let (versions, next) = page(all.collect(), request.next_token.as_deref(), most, bad_token())?;
        let mut answer = json!({ "Parameters": versions });
        if let Some(next) = next {
            answer["NextToken"] = json!(next);
        }
        Ok(answer)
    }
}

impl super::parameter::Version {
    /// Members that are left out when they have no value.
    pub(super) fn add_optional(&self, line: &mut Value) {
        let optional = [
            ("Description", &self.description),
            ("KeyId", &self.key_id),
            ("AllowedPattern", &self.allowed_pattern),
        ];
        for (key, text) in optional {
            if let Some(text) = text {
                line[key] = json!(text);
            }
        }
    }
}

/// A secret as a parameter: type SecureString, version 0, the secret's own answer as text in `SourceResult`.
fn referenced(
    name: &str,
    secret: &str,
    stage: Option<&str>,
    decrypt: bool,
    at: &At<'_>,
    secrets: Secrets<'_>,
) -> Outcome {
    if !decrypt {
        return Err(Refusal::validation(
            "WithDecryption flag must be True for retrieving a Secret Manager secret.",
        ));
    }
    let found = secrets.ok_or_else(not_found)?.reference(secret, stage, at).map_err(|_| {
        let text = format!("An error occurred (ParameterNotFound) when referencing Secrets Manager: Secret {secret} not found.");
        Refusal::common("ParameterNotFound", text)
    })?;
    let mut shown = json!({
        "ARN": found["ARN"],
        "LastModifiedDate": found["CreatedDate"],
        "Name": name,
        "SourceResult": found.to_string(),
        "Type": "SecureString",
        "Version": 0,
    });
    if !found["SecretString"].is_null() {
        shown["Value"] = found["SecretString"].clone();
    }
    if let Some(stage) = stage {
        shown["Selector"] = json!(format!(":{stage}"));
    }
    Ok(shown)
}
