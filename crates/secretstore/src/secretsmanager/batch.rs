//! `BatchGetSecretValue`: several secrets in one call; those that fail are listed beside the others.

use super::list::Filter;
use super::{SecretsManager, bad_token};
use crate::At;
use crate::reply::{Outcome, Refusal};
use crate::request::{at_most, page};
use serde::Deserialize;
use serde_json::json;

/// AWS's limit (service model: `SecretIdListType`, `MaxResultsBatchType`).
const MOST: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BatchGetSecretValue {
    secret_id_list: Option<Vec<String>>,
    filters: Option<Vec<Filter>>,
    max_results: Option<usize>,
    next_token: Option<String>,
}

impl SecretsManager {
    pub(super) fn batch_get_secret_value(
        &mut self,
        request: BatchGetSecretValue,
        at: &mut At<'_>,
    ) -> Outcome {
        let parameter = |text: &str| Refusal::modeled("InvalidParameterException", text);
        let ids = match (request.secret_id_list, request.filters) {
            (Some(_), Some(_)) => {
                return Err(parameter("Either 'SecretIdList' or 'Filters' must be provided, but not both."));
            }
            (None, None) => {
                return Err(parameter("Either 'SecretIdList' or 'Filters' must be provided, but not both."));
            }
            (Some(ids), None) => ids,
            (None, Some(filters)) => {
                let alive = self.secrets.values().filter(|secret| secret.deletion_ms.is_none());
                let fit = alive.filter(|secret| filters.iter().all(|filter| filter.fits(secret)));
                fit.map(|secret| secret.name.clone()).collect()
            }
        };
        let by_filter_most = request.max_results.unwrap_or(MOST).min(MOST);
        if request.next_token.is_none() && request.max_results.is_none() {
            at_most(&ids, MOST, "secretIdList")?;
        }
        let (ids, next) = page(ids, request.next_token.as_deref(), by_filter_most, bad_token())?;
        let (mut values, mut errors) = (Vec::new(), Vec::new());
        for id in ids {
            match self.read_value(&id, None, None, at.now_ms) {
                Ok(value) => values.push(value),
                Err(refusal) => errors.push(json!({
                    "SecretId": id,
                    "ErrorCode": refusal.kind(),
                    "Message": refusal.text(),
                })),
            }
        }
        let mut answer = json!({ "SecretValues": values, "Errors": errors });
        if let Some(next) = next {
            answer["NextToken"] = json!(next);
        }
        Ok(answer)
    }
}
