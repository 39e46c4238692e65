//! `ListSecrets` and its filters.

use super::read::{describe, stages};
use super::secret::Secret;
use super::{SecretsManager, bad_token};
use crate::At;
use crate::reply::Outcome;
use crate::request::page;
use serde::Deserialize;
use serde_json::json;

/// AWS's default and largest page (service model: `MaxResultsType`).
const PAGE: usize = 100;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListSecrets {
    #[serde(default)]
    filters: Vec<Filter>,
    max_results: Option<usize>,
    next_token: Option<String>,
    sort_order: Option<String>,
    #[serde(default)]
    include_planned_deletion: bool,
}

/// A condition: any of its values fits; one with `!` before it must not.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Filter {
    key: String,
    values: Vec<String>,
}

impl Filter {
    /// Whether a secret passes.
    pub fn fits(&self, secret: &Secret) -> bool {
        let one = |value: &String| match value.strip_prefix('!') {
            Some(value) => !self.has(secret, value),
            None => self.has(secret, value),
        };
        self.values.iter().any(one)
    }

    fn has(&self, secret: &Secret, value: &str) -> bool {
        let begins = |text: &str| text.starts_with(value);
        let described = || secret.description.as_deref().is_some_and(|text| contains_word(text, value));
        let key = || secret.tags.iter().any(|tag| begins(&tag.key));
        let tag = || secret.tags.iter().any(|tag| begins(&tag.value));
        match self.key.as_str() {
            "name" => begins(&secret.name),
            "description" => described(),
            "tag-key" => key(),
            "tag-value" => tag(),
            "all" => begins(&secret.name) || described() || key() || tag(),
            _ => false,
        }
    }
}

/// Descriptions match by the beginnings of words, in any case.
fn contains_word(text: &str, value: &str) -> bool {
    let (text, value) = (text.to_lowercase(), value.to_lowercase());
    text.split_whitespace().any(|word| word.starts_with(&value)) || text.starts_with(&value)
}

impl SecretsManager {
    pub(super) fn list_secrets(&mut self, request: ListSecrets, _: &mut At<'_>) -> Outcome {
        let wanted = |secret: &&Secret| {
            (request.include_planned_deletion || secret.deletion_ms.is_none())
                && request.filters.iter().all(|filter| filter.fits(secret))
        };
        let mut all: Vec<&Secret> = self.secrets.values().filter(wanted).collect();
        all.sort_by_key(|secret| secret.created_ms);
        if request.sort_order.as_deref() == Some("desc") {
            all.reverse();
        }
        let most = request.max_results.unwrap_or(PAGE).min(PAGE);
        let (secrets, next) = page(all, request.next_token.as_deref(), most, bad_token())?;
        let lines: Vec<_> = secrets
            .into_iter()
            .map(|secret| {
                let mut line = describe(secret);
                line.insert("SecretVersionsToStages".to_owned(), stages(secret));
                line
            })
            .collect();
        let mut answer = json!({ "SecretList": lines });
        if let Some(next) = next {
            answer["NextToken"] = json!(next);
        }
        Ok(answer)
    }
}
