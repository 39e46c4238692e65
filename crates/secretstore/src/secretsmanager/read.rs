//! Operations on one secret that change nothing.

use super::SecretsManager;
use super::secret::{Secret, Value};
use crate::reply::Outcome;
use crate::request::required;
use crate::{At, seconds};
use serde::Deserialize;
use serde_json::{Map, json};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetSecretValue {
    secret_id: Option<String>,
    version_id: Option<String>,
    version_stage: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct OneSecret {
    pub secret_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListSecretVersionIds {
    secret_id: Option<String>,
    #[serde(default)]
    include_deprecated: bool,
}

impl SecretsManager {
    pub(super) fn get_secret_value(&mut self, request: GetSecretValue, at: &mut At<'_>) -> Outcome {
        let id = required(request.secret_id, "secretId")?;
        self.read_value(&id, request.version_id.as_deref(), request.version_stage.as_deref(), at.now_ms)
    }

    /// A secret's value as `GetSecretValue` gives it.
    pub(super) fn read_value(
        &mut self,
        id: &str,
        version_id: Option<&str>,
        stage: Option<&str>,
        now_ms: u64,
    ) -> Outcome {
        let secret = self.find_alive(id)?;
        // AWS keeps the day only.
        const DAY_MS: u64 = 86_400_000;
        let today_ms = now_ms / DAY_MS * DAY_MS;
        let version = secret.version(version_id, stage)?;
        let mut answer = json!({
            "ARN": secret.arn,
            "Name": secret.name,
            "VersionId": version.id,
            "VersionStages": version.stages,
            "CreatedDate": seconds(version.created_ms),
        });
        match &version.value {
            Value::Text(text) => answer["SecretString"] = json!(text),
            Value::Binary(base64) => answer["SecretBinary"] = json!(base64),
        }
        secret.accessed_ms = Some(today_ms);
        Ok(answer)
    }

    pub(super) fn describe_secret(&mut self, request: OneSecret, _: &mut At<'_>) -> Outcome {
        let id = required(request.secret_id, "secretId")?;
        let secret = self.find(&id)?;
        let mut answer = describe(secret);
        answer.insert("VersionIdsToStages".to_owned(), stages(secret));
        Ok(answer.into())
    }

    pub(super) fn list_secret_version_ids(
        &mut self,
        request: ListSecretVersionIds,
        _: &mut At<'_>,
    ) -> Outcome {
        let id = required(request.secret_id, "secretId")?;
        let secret = self.find(&id)?;
        let wanted = secret.versions.iter().filter(|v| request.include_deprecated || !v.stages.is_empty());
        let versions = wanted.map(|version| {
            let mut line = json!({
                "VersionId": version.id,
                "CreatedDate": seconds(version.created_ms),
                "KmsKeyIds": [secret.kms_key_id.as_deref().unwrap_or("DefaultEncryptionKey")],
            });
            if !version.stages.is_empty() {
                line["VersionStages"] = json!(version.stages);
            }
            line
        });
        Ok(json!({ "ARN": secret.arn, "Name": secret.name, "Versions": versions.collect::<Vec<_>>() }))
    }
}

/// What `DescribeSecret` and `ListSecrets` tell alike; members that have no value are left out, as on AWS.
pub fn describe(secret: &Secret) -> Map<String, serde_json::Value> {
    let mut answer = Map::new();
    let mut put = |key: &str, value: serde_json::Value| drop(answer.insert(key.to_owned(), value));
    put("ARN", json!(secret.arn));
    put("Name", json!(secret.name));
    put("CreatedDate", json!(seconds(secret.created_ms)));
    put("LastChangedDate", json!(seconds(secret.changed_ms)));
    for (key, ms) in [("LastAccessedDate", secret.accessed_ms), ("DeletedDate", secret.deleted_ms)] {
        if let Some(ms) = ms {
            put(key, json!(seconds(ms)));
        }
    }
    for (key, text) in [("Description", &secret.description), ("KmsKeyId", &secret.kms_key_id)] {
        if let Some(text) = text {
            put(key, json!(text));
        }
    }
    if !secret.tags.is_empty() {
        put("Tags", json!(secret.tags));
    }
    answer
}

/// Version → labels, of those that have one.
pub fn stages(secret: &Secret) -> serde_json::Value {
    let labelled = secret.versions.iter().filter(|version| !version.stages.is_empty());
    labelled.map(|version| (version.id.clone(), json!(version.stages))).collect::<Map<_, _>>().into()
}
