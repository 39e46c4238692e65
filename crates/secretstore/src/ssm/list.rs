//! `DescribeParameters`: everything but values.

use super::parameter::Parameter;
use super::{Secrets, Ssm, bad_token};
use crate::reply::{Outcome, Refusal};
use crate::request::page;
use crate::{At, seconds};
use serde::Deserialize;
use serde_json::{Value, json};

/// AWS's default and largest page.
const PAGE: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeParameters {
    #[serde(default)]
    parameter_filters: Vec<Filter>,
    max_results: Option<usize>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Filter {
    key: String,
    #[serde(default)]
    option: Option<String>,
    #[serde(default)]
    values: Vec<String>,
}

impl Filter {
    fn fits(&self, parameter: &Parameter) -> Result<bool, Refusal> {
        let any = |test: &dyn Fn(&str) -> bool| self.values.iter().any(|value| test(value));
        let option = self.option.as_deref().unwrap_or("Equals");
        let latest = parameter.latest();
        Ok(match (self.key.as_str(), option) {
            ("Name", "Equals") => {
                any(&|v| parameter.name.trim_start_matches('/') == v.trim_start_matches('/'))
            }
            ("Name", "BeginsWith") => {
                any(&|v| parameter.name.trim_start_matches('/').starts_with(v.trim_start_matches('/')))
            }
            ("Name", "Contains") => any(&|v| parameter.name.contains(v)),
            ("Type", _) => any(&|v| latest.kind.as_str() == v),
            ("KeyId", _) => any(&|v| latest.key_id.as_deref() == Some(v)),
            ("Path", "Recursive" | "OneLevel") => any(&|v| {
                let below = format!("{}/", v.trim_end_matches('/'));
                let rest = parameter.name.strip_prefix(&below);
                rest.is_some_and(|rest| option == "Recursive" || !rest.contains('/'))
            }),
            (key, _) if key.starts_with("tag:") => {
                let tag = parameter.tags.iter().find(|tag| tag.key == key[4..]);
                tag.is_some_and(|tag| self.values.is_empty() || any(&|v| tag.value == v))
            }
            (key, option) => {
                let text = format!("danki does not filter by {key} with {option}.");
                return Err(Refusal::common("InvalidFilterKey", text));
            }
        })
    }
}

impl Ssm {
    pub(super) fn describe_parameters(
        &mut self,
        request: DescribeParameters,
        _: &mut At<'_>,
        _: Secrets<'_>,
    ) -> Outcome {
        let mut all = Vec::new();
        for parameter in self.parameters.values() {
            let fits: Result<Vec<bool>, Refusal> =
                request.parameter_filters.iter().map(|filter| filter.fits(parameter)).collect();
            if fits?.into_iter().all(|fits| fits) {
                all.push(describe(parameter));
            }
        }
        let most = request.max_results.unwrap_or(PAGE).min(PAGE);
        let (lines, next) = page(all, request.next_token.as_deref(), most, bad_token())?;
        let mut answer = json!({ "Parameters": lines });
        if let Some(next) = next {
            answer["NextToken"] = json!(next);
        }
        Ok(answer)
    }
}

fn describe(parameter: &Parameter) -> Value {
    let version = parameter.latest();
    let mut line = json!({
        "ARN": parameter.arn,
        "Name": parameter.name,
        "Type": version.kind.as_str(),
        "LastModifiedDate": seconds(version.modified_ms),
        "LastModifiedUser": format!("arn:aws:iam::{}:root", crate::ACCOUNT),
        "Version": version.number,
        "Tier": version.tier,
        "Policies": [],
        "DataType": version.data_type,
    });
    version.add_optional(&mut line);
    line
}
