//! Operations that change parameters.

use super::parameter::{Kind, MAX_VALUE_BYTES, Parameter, Version};
use super::{MAX_PARAMETERS, Secrets, Ssm};
use crate::At;
use crate::reply::{Outcome, Refusal};
use crate::request::{Tag, at_most, required};
use serde::Deserialize;
use serde_json::json;

/// AWS's own key, used when none is named.
const DEFAULT_KEY: &str = "alias/aws/ssm";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct PutParameter {
    name: Option<String>,
    value: Option<String>,
    r#type: Option<String>,
    description: Option<String>,
    key_id: Option<String>,
    tier: Option<String>,
    data_type: Option<String>,
    allowed_pattern: Option<String>,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Delete {
    name: Option<String>,
    names: Option<Vec<String>>,
}

impl Ssm {
    pub(super) fn put_parameter(
        &mut self,
        request: PutParameter,
        at: &mut At<'_>,
        _: Secrets<'_>,
    ) -> Outcome {
        let name = required(request.name, "name")?;
        let value = required(request.value, "value")?;
        if request.overwrite && !request.tags.is_empty() {
            return Err(Refusal::validation(
                "Invalid request: tags and overwrite can't be used together. To create a parameter with tags, please remove \
                 overwrite flag. To update tags for an existing parameter, please use AddTagsToResource or \
                 RemoveTagsFromResource.",
            ));
        }
        let mut written =
            self.write(&name, &value, request.r#type.as_deref(), request.overwrite, at.now_ms)?;
        let parameter = self.find(&name)?;
        let version = parameter.versions.last_mut().expect("just written");
        version.description = request.description.or(version.description.take());
        version.allowed_pattern = request.allowed_pattern;
        version.data_type = request.data_type.unwrap_or_else(|| "text".to_owned());
        if let (Kind::Secure, Some(key)) = (version.kind, request.key_id) {
            version.key_id = Some(key);
        }
        if let Some(tier) = request.tier.filter(|tier| tier != "Intelligent-Tiering") {
            version.tier.clone_from(&tier);
            written["Tier"] = json!(tier);
        }
        parameter.tags.extend(request.tags);
        Ok(written)
    }

    /// A new version of a parameter that may be new itself.
    pub(super) fn write(
        &mut self,
        name: &str,
        value: &str,
        kind: Option<&str>,
        overwrite: bool,
        now_ms: u64,
    ) -> Outcome {
        valid_name(name)?;
        let kind = kind.map(Kind::parse).transpose()?;
        let known = self.parameters.get(name).map(Parameter::latest);
        if known.is_some() && !overwrite {
            let text = "The parameter already exists. To overwrite this value, set the overwrite option in the request to true.";
            return Err(Refusal::common("ParameterAlreadyExists", text));
        }
        let kind = kind.or(known.map(|version| version.kind)).ok_or_else(|| {
            Refusal::validation("A parameter type is required when you create a parameter.")
        })?;
        valid_value(value)?;
        let tier = if value.len() > MAX_VALUE_BYTES[0] { "Advanced" } else { "Standard" };
        let version = Version {
            number: known.map_or(1, |version| version.number + 1),
            kind,
            value: value.to_owned(),
            modified_ms: now_ms,
            description: known.and_then(|version| version.description.clone()),
            key_id: (kind == Kind::Secure).then(|| DEFAULT_KEY.to_owned()),
            tier: tier.to_owned(),
            data_type: "text".to_owned(),
            allowed_pattern: None,
            labels: Vec::new(),
        };
        if !self.parameters.contains_key(name) && self.parameters.len() >= MAX_PARAMETERS {
            let text = "You have exceeded the number of parameters for this Amazon Web Services account. Delete one or more \
                        parameters and try again.";
            return Err(Refusal::common("ParameterLimitExceeded", text));
        }
        let region = &self.region;
        let parameter =
            self.parameters.entry(name.to_owned()).or_insert_with(|| Parameter::new(region, name));
        let number = parameter.add(version)?;
        Ok(json!({ "Tier": tier, "Version": number }))
    }

    pub(super) fn delete_parameter(&mut self, request: Delete, _: &mut At<'_>, _: Secrets<'_>) -> Outcome {
        let name = self.find(&required(request.name, "name")?)?.name.clone();
        self.parameters.remove(&name);
        Ok(json!({}))
    }

    pub(super) fn delete_parameters(&mut self, request: Delete, _: &mut At<'_>, _: Secrets<'_>) -> Outcome {
        let names = required(request.names, "names")?;
        at_most(&names, 10, "names")?;
        let (deleted, invalid): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| self.parameters.remove(name).is_some());
        Ok(json!({ "DeletedParameters": deleted, "InvalidParameters": invalid }))
    }
}

fn valid_value(value: &str) -> Result<(), Refusal> {
    match value.len() {
        0 => Err(Refusal::validation(
            "1 validation error detected: Value '' at 'value' failed to satisfy constraint: Member must have length greater \
             than or equal to 1",
        )),
        length if length > MAX_VALUE_BYTES[1] => Err(Refusal::validation(
            "Advanced tier parameters support a maximum parameter value of 8192 characters.",
        )),
        _ => Ok(()),
    }
}

fn valid_name(name: &str) -> Result<(), Refusal> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    if !(1..=1011).contains(&name.len()) || !name.chars().all(legal) {
        return Err(Refusal::validation(
            "Parameter name: can't be prefixed with \"ssm\" (case-insensitive). If formed as a path, it can consist of \
             sub-paths divided by slash symbol; each sub-path can be formed as a mix of letters, numbers and the following \
             3 symbols .-_",
        ));
    }
    if name.contains('/') && !name.starts_with('/') {
        return Err(Refusal::validation(format!(
            "Parameter name must be a fully qualified name. [Name: {name}]"
        )));
    }
    let first = name.trim_start_matches('/').split('/').next().unwrap_or_default().to_ascii_lowercase();
    if first.starts_with("aws") || first.starts_with("ssm") {
        return Err(Refusal::common(
            "AccessDeniedException",
            format!("No access to reserved parameter name: {name}."),
        ));
    }
    Ok(())
}
