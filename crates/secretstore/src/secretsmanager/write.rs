//! Operations that change something.

use super::secret::{CURRENT, PREVIOUS, Secret, Value};
use super::{MAX_SECRETS, SecretsManager, invalid, read::OneSecret};
use crate::reply::{Outcome, Refusal};
use crate::request::{Tag, add_tags, required};
use crate::{At, seconds};
use serde::Deserialize;
use serde_json::json;

const DAY_MS: u64 = 86_400_000;
/// AWS's default and its range (API reference, `DeleteSecret`).
const RECOVERY_DAYS: u64 = 30;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Write {
    /// `CreateSecret` calls it `Name`.
    #[serde(alias = "Name")]
    secret_id: Option<String>,
    client_request_token: Option<String>,
    description: Option<String>,
    kms_key_id: Option<String>,
    secret_string: Option<String>,
    secret_binary: Option<String>,
    #[serde(default)]
    tags: Vec<Tag>,
    version_stages: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeleteSecret {
    secret_id: Option<String>,
    recovery_window_in_days: Option<u64>,
    #[serde(default)]
    force_delete_without_recovery: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Rotate {
    secret_id: Option<String>,
    client_request_token: Option<String>,
    #[serde(rename = "RotationLambdaARN")]
    rotation_lambda_arn: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tagging {
    secret_id: Option<String>,
    tags: Option<Vec<Tag>>,
    tag_keys: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MoveStage {
    secret_id: Option<String>,
    version_stage: Option<String>,
    remove_from_version_id: Option<String>,
    move_to_version_id: Option<String>,
}

impl SecretsManager {
    /// A new current version from outside of the API: a seed or a rotation.
    pub(super) fn put_value(&mut self, name: &str, value: Value, at: &mut At<'_>) -> Result<(), Refusal> {
        valid_name(name)?;
        if !self.secrets.contains_key(name) {
            let secret = Secret::new(&self.region, name, at);
            self.insert(secret)?;
        }
        let id = at.uuid();
        self.find_alive(name)?.add(&id, value, &[CURRENT.to_owned()], at.now_ms)
    }

    fn insert(&mut self, secret: Secret) -> Result<(), Refusal> {
        if self.secrets.len() >= MAX_SECRETS {
            let text = format!("danki keeps at most {MAX_SECRETS} secrets.");
            return Err(Refusal::modeled("LimitExceededException", text));
        }
        self.secrets.insert(secret.name.clone(), secret);
        Ok(())
    }

    pub(super) fn create_secret(&mut self, request: Write, at: &mut At<'_>) -> Outcome {
        let name = required(request.secret_id, "name")?;
        valid_name(&name)?;
        let token = token(request.client_request_token)?;
        let value = Value::of(request.secret_string, request.secret_binary)?;
        if let Some(known) = self.secrets.get(&name) {
            return match (known.deletion_ms, known.by_id(&token)) {
                (Some(_), _) => Err(invalid(
                    "You can't create this secret because a secret with this name is already scheduled for deletion.",
                )),
                // A retried request.
                (None, Some(version)) if Some(&version.value) == value.as_ref() => {
                    Ok(json!({ "ARN": known.arn, "Name": name, "VersionId": token }))
                }
                _ => Err(Refusal::modeled(
                    "ResourceExistsException",
                    format!("The operation failed because the secret {name} already exists."),
                )),
            };
        }
        let mut secret = Secret::new(&self.region, &name, at);
        (secret.description, secret.kms_key_id) = (request.description, request.kms_key_id);
        secret.tags = request.tags;
        let answer = secret.answer(value, &token, at.now_ms)?;
        self.insert(secret)?;
        Ok(answer)
    }

    pub(super) fn put_secret_value(&mut self, request: Write, at: &mut At<'_>) -> Outcome {
        let id = required(request.secret_id, "secretId")?;
        let token = token(request.client_request_token)?;
        let value = Value::of(request.secret_string, request.secret_binary)?
            .ok_or_else(|| invalid("You must provide either SecretString or SecretBinary."))?;
        let secret = self.find_alive(&id)?;
        let stages = request.version_stages.unwrap_or_else(|| vec![CURRENT.to_owned()]);
        secret.add(&token, value, &stages, at.now_ms)?;
        let stages = &secret.version(Some(&token), None)?.stages;
        Ok(json!({ "ARN": secret.arn, "Name": secret.name, "VersionId": token, "VersionStages": stages }))
    }

    pub(super) fn update_secret(&mut self, request: Write, at: &mut At<'_>) -> Outcome {
        let id = required(request.secret_id, "secretId")?;
        let token = token(request.client_request_token)?;
        let value = Value::of(request.secret_string, request.secret_binary)?;
        let secret = self.find_alive(&id)?;
        let answer = secret.answer(value, &token, at.now_ms)?;
        secret.description = request.description.or(secret.description.take());
        secret.kms_key_id = request.kms_key_id.or(secret.kms_key_id.take());
        secret.changed_ms = at.now_ms;
        Ok(answer)
    }

    pub(super) fn delete_secret(&mut self, request: DeleteSecret, at: &mut At<'_>) -> Outcome {
        let id = required(request.secret_id, "secretId")?;
        let parameter = |text: &str| Refusal::modeled("InvalidParameterException", text);
        let days = match (request.force_delete_without_recovery, request.recovery_window_in_days) {
            (true, Some(_)) => {
                return Err(parameter(
                    "You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.",
                ));
            }
            (true, None) => 0,
            (false, days) => days.unwrap_or(RECOVERY_DAYS),
        };
        if !request.force_delete_without_recovery && !(7..=30).contains(&days) {
            return Err(parameter(
                "The RecoveryWindowInDays value must be between 7 and 30 days (inclusive).",
            ));
        }
        let secret = match request.force_delete_without_recovery {
            true => self.find(&id)?,
            false => self.find_alive(&id)?,
        };
        let due_ms = at.now_ms + days * DAY_MS;
        secret.delete_at(at.now_ms, due_ms);
        Ok(json!({ "ARN": secret.arn, "Name": secret.name, "DeletionDate": seconds(due_ms) }))
    }

    pub(super) fn restore_secret(&mut self, request: OneSecret, _: &mut At<'_>) -> Outcome {
        let secret = self.find(&required(request.secret_id, "secretId")?)?;
        // AWS answers the same for a secret that was never deleted.
        let _was_alive = secret.restore();
        Ok(json!({ "ARN": secret.arn, "Name": secret.name }))
    }

    /// Rotation functions are not called (`docs/parity.md`): the two refusals that AWS was recorded to give.
    pub(super) fn rotate_secret(&mut self, request: Rotate, _: &mut At<'_>) -> Outcome {
        let id = required(request.secret_id, "secretId")?;
        if request.client_request_token.is_none() {
            let text = "You must provide a ClientRequestToken value. We recommend a UUID-type value.";
            return Err(Refusal::modeled("InvalidParameterException", text));
        }
        self.find_alive(&id)?;
        match request.rotation_lambda_arn {
            None => Err(invalid("No Lambda rotation function ARN is associated with this secret.")),
            Some(_) => Err(Refusal::common(
                "AccessDeniedException",
                "Secrets Manager cannot invoke the specified Lambda function. Ensure that the function policy grants \
                 access to the principal secretsmanager.amazonaws.com.",
            )),
        }
    }

    pub(super) fn tag_resource(&mut self, request: Tagging, _: &mut At<'_>) -> Outcome {
        let tags = required(request.tags, "tags")?;
        add_tags(&mut self.find_alive(&required(request.secret_id, "secretId")?)?.tags, tags);
        Ok(json!({}))
    }

    pub(super) fn untag_resource(&mut self, request: Tagging, _: &mut At<'_>) -> Outcome {
        let keys = required(request.tag_keys, "tagKeys")?;
        let secret = self.find_alive(&required(request.secret_id, "secretId")?)?;
        secret.tags.retain(|tag| !keys.contains(&tag.key));
        Ok(json!({}))
    }

    pub(super) fn update_secret_version_stage(&mut self, request: MoveStage, at: &mut At<'_>) -> Outcome {
        let stage = required(request.version_stage, "versionStage")?;
        let secret = self.find_alive(&required(request.secret_id, "secretId")?)?;
        let holder = secret.holder(&stage).map(|version| version.id.clone());
        let parameter = |text: String| Refusal::modeled("InvalidParameterException", text);
        if let Some(to) = &request.move_to_version_id {
            secret.version(Some(to), None)?;
            if holder.as_ref().is_some_and(|holder| holder != to) && holder != request.remove_from_version_id
            {
                return Err(parameter(format!(
                    "The parameter RemoveFromVersionId can't be empty. Staging label {stage} is currently attached to \
                     version {}, so you must explicitly reference that version in RemoveFromVersionId.",
                    holder.unwrap_or_default()
                )));
            }
            secret.label(&stage, to);
        } else {
            match (stage.as_str(), holder == request.remove_from_version_id) {
                (CURRENT, _) => {
                    return Err(parameter(format!(
                        "You can only move staging label {CURRENT} to a different secret version. It can't be completely \
                         removed."
                    )));
                }
                (_, true) => secret.unlabel(&stage),
                (_, false) => {
                    return Err(parameter(format!(
                        "Staging label {stage} is not attached to the version in RemoveFromVersionId."
                    )));
                }
            }
        }
        secret.changed_ms = at.now_ms;
        debug_assert!(
            secret.versions.iter().all(|v| v.stages.iter().filter(|s| *s == PREVIOUS).count() <= 1)
        );
        Ok(json!({ "ARN": secret.arn, "Name": secret.name }))
    }
}

/// SDKs fill it in; whoever speaks HTTP by hand must, too.
fn token(token: Option<String>) -> Result<String, Refusal> {
    let token = token.ok_or_else(|| {
        invalid("You must provide a ClientRequestToken value. We recommend a UUID-type value.")
    })?;
    match token.len() {
        32..=64 => Ok(token),
        _ => Err(Refusal::modeled(
            "InvalidParameterException",
            "ClientRequestToken must be between 32 and 64 characters long.",
        )),
    }
}

fn valid_name(name: &str) -> Result<(), Refusal> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-/_+=.@!".contains(c);
    if (1..=512).contains(&name.len()) && name.chars().all(legal) {
        return Ok(());
    }
    Err(Refusal::validation(
        "Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!",
    ))
}
