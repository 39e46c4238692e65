//! Labels and tags.

use super::{Secrets, Ssm};
use crate::At;
use crate::reply::{Outcome, Refusal};
use crate::request::{Tag, add_tags, required};
use serde::Deserialize;
use serde_json::json;

/// AWS's limit of labels on one version.
const MAX_LABELS: usize = 10;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Label {
    name: Option<String>,
    parameter_version: Option<u64>,
    labels: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tagging {
    resource_type: Option<String>,
    resource_id: Option<String>,
    tags: Option<Vec<Tag>>,
    tag_keys: Option<Vec<String>>,
}

impl Ssm {
    pub(super) fn label_parameter_version(
        &mut self,
        request: Label,
        _: &mut At<'_>,
        _: Secrets<'_>,
    ) -> Outcome {
        let labels = required(request.labels, "labels")?;
        let parameter = self.find(&required(request.name, "name")?)?;
        let number = request.parameter_version.unwrap_or(parameter.latest().number);
        let kept = parameter.numbered(number)?.labels.len();
        let (good, bad): (Vec<String>, Vec<String>) = labels.into_iter().partition(|label| is_label(label));
        if kept + good.len() > MAX_LABELS {
            return Err(Refusal::common(
                "ParameterVersionLabelLimitExceeded",
                "An error occurred (ParameterVersionLabelLimitExceeded) when calling the LabelParameterVersion operation: A \
                 parameter version can have maximum 10 labels.Move one or more labels to another version and try again.",
            ));
        }
        for version in &mut parameter.versions {
            version.labels.retain(|label| !good.contains(label));
        }
        parameter.numbered(number)?.labels.extend(good);
        Ok(json!({ "InvalidLabels": bad, "ParameterVersion": number }))
    }

    pub(super) fn unlabel_parameter_version(
        &mut self,
        request: Label,
        _: &mut At<'_>,
        _: Secrets<'_>,
    ) -> Outcome {
        let labels = required(request.labels, "labels")?;
        let number = required(request.parameter_version, "parameterVersion")?;
        let parameter = self.find(&required(request.name, "name")?)?;
        let version = parameter.numbered(number)?;
        let (removed, invalid): (Vec<_>, Vec<_>) =
            labels.into_iter().partition(|label| version.labels.contains(label));
        version.labels.retain(|label| !removed.contains(label));
        Ok(json!({ "RemovedLabels": removed, "InvalidLabels": invalid }))
    }

    pub(super) fn add_tags_to_resource(
        &mut self,
        request: Tagging,
        _: &mut At<'_>,
        _: Secrets<'_>,
    ) -> Outcome {
        let tags = required(request.tags, "tags")?;
        add_tags(self.tags_of(request.resource_type, request.resource_id)?, tags);
        Ok(json!({}))
    }

    pub(super) fn remove_tags_from_resource(
        &mut self,
        request: Tagging,
        _: &mut At<'_>,
        _: Secrets<'_>,
    ) -> Outcome {
        let keys = required(request.tag_keys, "tagKeys")?;
        self.tags_of(request.resource_type, request.resource_id)?.retain(|tag| !keys.contains(&tag.key));
        Ok(json!({}))
    }

    pub(super) fn list_tags_for_resource(
        &mut self,
        request: Tagging,
        _: &mut At<'_>,
        _: Secrets<'_>,
    ) -> Outcome {
        Ok(json!({ "TagList": self.tags_of(request.resource_type, request.resource_id)? }))
    }

    fn tags_of(&mut self, kind: Option<String>, id: Option<String>) -> Result<&mut Vec<Tag>, Refusal> {
        let (kind, id) = (required(kind, "resourceType")?, required(id, "resourceId")?);
        if kind != "Parameter" {
            let text = format!("{kind} is not a valid resource type here: danki has Parameter only.");
            return Err(Refusal::common("InvalidResourceType", text));
        }
        let found = self.find(&id).map(|parameter| &mut parameter.tags);
        found.map_err(|_| {
            Refusal::common(
                "InvalidResourceId",
                "The resource ID is not valid. Verify that you entered the correct ID and try again.",
            )
        })
    }
}

/// Labels do not begin with a digit, `aws` or `ssm` (user guide, "Labeling parameters").
fn is_label(label: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let lower = label.to_ascii_lowercase();
    (1..=100).contains(&label.len())
        && label.chars().all(legal)
        && !label.starts_with(|c: char| c.is_ascii_digit())
        && !lower.starts_with("aws")
        && !lower.starts_with("ssm")
}
