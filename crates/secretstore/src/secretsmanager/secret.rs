//! One secret and its versions.

use super::{invalid, not_found};
use crate::reply::{Outcome, Refusal};
use crate::request::Tag;
use crate::{ACCOUNT, At};
use rand::Rng;
use serde_json::json;

/// The label of the version that is given when none is asked for.
pub const CURRENT: &str = "AWSCURRENT";
/// The label of the one before.
pub const PREVIOUS: &str = "AWSPREVIOUS";

/// AWS keeps versions with a label, and some hundred without.
const MAX_VERSIONS: usize = 100;
/// AWS's limit (service model: `SecretStringType`).
const MAX_VALUE_BYTES: usize = 65_536;

#[derive(Debug)]
pub struct Secret {
    pub name: String,
    pub arn: String,
    pub description: Option<String>,
    pub kms_key_id: Option<String>,
    pub tags: Vec<Tag>,
    pub created_ms: u64,
    pub changed_ms: u64,
    pub accessed_ms: Option<u64>,
    /// When it will be gone.
    pub deletion_ms: Option<u64>,
    /// When somebody asked for that.
    pub deleted_ms: Option<u64>,
    /// Oldest first.
    pub versions: Vec<Version>,
}

#[derive(Debug)]
pub struct Version {
    pub id: String,
    pub created_ms: u64,
    pub stages: Vec<String>,
    pub value: Value,
}

/// What is kept secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    /// In base64, as it travels.
    Binary(String),
}

impl Value {
    /// From a request's two members; none if neither is there.
    pub fn of(text: Option<String>, binary: Option<String>) -> Result<Option<Value>, Refusal> {
        let value = match (text, binary) {
            (Some(_), Some(_)) => {
                return Err(Refusal::modeled(
                    "InvalidParameterException",
                    "You can't specify both a SecretString and a SecretBinary.",
                ));
            }
            (Some(text), None) => Value::Text(text),
            (None, Some(binary)) => Value::Binary(binary),
            (None, None) => return Ok(None),
        };
        let (Value::Text(bytes) | Value::Binary(bytes)) = &value;
        match bytes.len() > MAX_VALUE_BYTES {
            true => Err(Refusal::validation(
                "1 validation error detected: Value at 'secretString' failed to satisfy constraint: Member must have \
                 length less than or equal to 65536",
            )),
            false => Ok(Some(value)),
        }
    }
}

impl Version {
    fn has(&self, stage: &str) -> bool {
        self.stages.iter().any(|known| known == stage)
    }
}

impl Secret {
    pub fn new(region: &str, name: &str, at: &mut At<'_>) -> Secret {
        const CHARACTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let suffix: String =
            (0..6).map(|_| char::from(CHARACTERS[at.rng.random_range(0..CHARACTERS.len())])).collect();
        Secret {
            name: name.to_owned(),
            arn: format!("arn:aws:secretsmanager:{region}:{ACCOUNT}:secret:{name}-{suffix}"),
            description: None,
            kms_key_id: None,
            tags: Vec::new(),
            created_ms: at.now_ms,
            changed_ms: at.now_ms,
            accessed_ms: None,
            deletion_ms: None,
            deleted_ms: None,
            versions: Vec::new(),
        }
    }

    /// Adds a version with these labels. The same id with the same value again changes nothing: a retried request.
    pub fn add(&mut self, id: &str, value: Value, stages: &[String], now_ms: u64) -> Result<(), Refusal> {
        if let Some(known) = self.by_id(id) {
            return match known.value == value {
                true => Ok(()),
                false => Err(Refusal::modeled(
                    "ResourceExistsException",
                    format!(
                        "You can't use ClientRequestToken {id} because that value is already in use for a version of \
                         secret {}.",
                        self.arn
                    ),
                )),
            };
        }
        if self.versions.len() >= MAX_VERSIONS {
            match self.versions.iter().position(|version| version.stages.is_empty()) {
                Some(oldest) => drop(self.versions.remove(oldest)),
                None => {
                    return Err(Refusal::modeled(
                        "LimitExceededException",
                        "The secret has too many versions.",
                    ));
                }
            }
        }
        self.versions.push(Version { id: id.to_owned(), created_ms: now_ms, stages: Vec::new(), value });
        self.changed_ms = now_ms;
        stages.iter().for_each(|stage| self.label(stage, id));
        Ok(())
    }

    /// What operations on it answer; with a value, that is the current version from now on and named, too.
    pub fn answer(&mut self, value: Option<Value>, id: &str, now_ms: u64) -> Outcome {
        let mut answer = json!({ "ARN": self.arn, "Name": self.name });
        if let Some(value) = value {
            self.add(id, value, &[CURRENT.to_owned()], now_ms)?;
            answer["VersionId"] = json!(id);
        }
        Ok(answer)
    }

    /// Moves a label to a version. The version that loses `AWSCURRENT` becomes `AWSPREVIOUS`.
    pub fn label(&mut self, stage: &str, id: &str) {
        let holder = self.holder(stage).map(|version| version.id.clone());
        if holder.as_deref() == Some(id) {
            return;
        }
        self.unlabel(stage);
        if let Some(version) = self.versions.iter_mut().find(|version| version.id == id) {
            version.stages.push(stage.to_owned());
        }
        if let (CURRENT, Some(holder)) = (stage, holder) {
            self.label(PREVIOUS, &holder);
        }
    }

    /// Takes a label away.
    pub fn unlabel(&mut self, stage: &str) {
        self.versions.iter_mut().for_each(|version| version.stages.retain(|s| s != stage));
    }

    /// The version of an id.
    pub fn by_id(&self, id: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.id == id)
    }

    /// The version that has a label.
    pub fn holder(&self, stage: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.has(stage))
    }

    /// The version of an id, of a label, or the current one.
    pub fn version(&self, id: Option<&str>, stage: Option<&str>) -> Result<&Version, Refusal> {
        let lacks = |what: String| {
            let text = format!("Secrets Manager can't find the specified secret value for {what}");
            Refusal::modeled("ResourceNotFoundException", text)
        };
        let Some(id) = id else {
            let stage = stage.unwrap_or(CURRENT);
            return self.holder(stage).ok_or_else(|| lacks(format!("staging label: {stage}")));
        };
        let found = self.by_id(id).ok_or_else(|| lacks(format!("VersionId: {id}")))?;
        match stage {
            Some(stage) if !found.has(stage) => {
                Err(invalid("You provided a VersionStage that is not associated to the provided VersionId."))
            }
            _ => Ok(found),
        }
    }

    /// Marks it for deletion.
    pub fn delete_at(&mut self, now_ms: u64, due_ms: u64) {
        (self.deleted_ms, self.deletion_ms) = (Some(now_ms), Some(due_ms));
    }

    /// Takes the mark away; AWS wants one to be there.
    pub fn restore(&mut self) -> Result<(), Refusal> {
        self.deletion_ms.take().ok_or_else(not_found)?;
        self.deleted_ms = None;
        Ok(())
    }
}
