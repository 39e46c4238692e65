//! Secrets Manager, API version 2017-10-17.

mod batch;
mod list;
mod password;
mod read;
mod secret;
mod write;

use crate::reply::{Outcome, Refusal};
use crate::{At, Effort, Reply};
use secret::Secret;
use std::collections::BTreeMap;

/// AWS's quota is 500,000; this is memory on somebody's laptop.
const MAX_SECRETS: usize = 10_000;

/// The secrets of one account in one region.
#[derive(Debug)]
pub struct SecretsManager {
    region: String,
    secrets: BTreeMap<String, Secret>,
}

impl SecretsManager {
    /// A store without secrets.
    pub fn new(region: &str) -> SecretsManager {
        SecretsManager { region: region.to_owned(), secrets: BTreeMap::new() }
    }

    /// Gives a secret, new or known, a new current version, as a rotation does. The value is text, or base64 of bytes.
    pub fn put(&mut self, name: &str, value: &str, binary: bool, at: &mut At<'_>) -> Result<(), String> {
        let value = match binary {
            false => secret::Value::Text(value.to_owned()),
            true => secret::Value::Binary(value.to_owned()),
        };
        self.put_value(name, value, at).map_err(|refusal| format!("{}: {}", refusal.kind(), refusal.text()))
    }

    /// A secret's current text: what Parameter Store shows below `/aws/reference/secretsmanager/`.
    pub(crate) fn reference(&mut self, id: &str, stage: Option<&str>, at: &At<'_>) -> Outcome {
        self.read_value(id, None, stage, at.now_ms)
    }

    /// Runs one operation.
    pub fn execute(&mut self, operation: &str, body: &[u8], at: &mut At<'_>) -> Reply {
        self.forget_deleted(at.now_ms);
        self.dispatch(operation, body, at).map_or_else(Reply::unknown_operation, Reply::from)
    }

    /// The secret of a name, an ARN, or an ARN without its last six characters.
    fn find(&mut self, id: &str) -> Result<&mut Secret, Refusal> {
        let is =
            |secret: &Secret| secret.arn == id || secret.arn.rsplit_once('-').is_some_and(|(a, _)| a == id);
        let name = match self.secrets.contains_key(id) {
            true => Some(id.to_owned()),
            false => self.secrets.values().find(|secret| is(secret)).map(|secret| secret.name.clone()),
        };
        name.and_then(|name| self.secrets.get_mut(&name)).ok_or_else(not_found)
    }

    /// As [`Self::find`], but not one that is to be deleted.
    fn find_alive(&mut self, id: &str) -> Result<&mut Secret, Refusal> {
        let secret = self.find(id)?;
        match secret.deletion_ms {
            None => Ok(secret),
            Some(_) => Err(invalid(
                "You can't perform this operation on the secret because it was marked for deletion.",
            )),
        }
    }

    fn forget_deleted(&mut self, now_ms: u64) {
        self.secrets.retain(|_, secret| secret.deletion_ms.is_none_or(|due| due > now_ms));
    }
}

fn not_found() -> Refusal {
    Refusal::modeled("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
}

fn invalid(text: &str) -> Refusal {
    Refusal::modeled("InvalidRequestException", text)
}

fn bad_token() -> Refusal {
    Refusal::modeled("InvalidNextTokenException", "Invalid pagination token")
}

/// One table of operations: name, does it write, does it use a key, method.
macro_rules! operations {
    ($($name:literal, $writes:literal, $kms:literal => $method:ident,)+) => {
        impl SecretsManager {
            fn dispatch(&mut self, operation: &str, body: &[u8], at: &mut At<'_>) -> Option<Outcome> {
                match operation {
                    $($name => Some(crate::request::read(body).and_then(|request| self.$method(request, at))),)+
                    _ => None,
                }
            }

            /// What an operation does; none that is not known.
            pub fn effort(operation: &str) -> Option<Effort> {
                match operation {
                    $($name => Some(Effort { writes: $writes, kms: $kms }),)+
                    _ => None,
                }
            }

            /// Every operation that there is.
            pub const OPERATIONS: &'static [&'static str] = &[$($name),+];
        }
    };
}

operations! {
    "BatchGetSecretValue", false, true => batch_get_secret_value,
    "CreateSecret", true, true => create_secret,
    "DeleteSecret", true, false => delete_secret,
    "DescribeSecret", false, false => describe_secret,
    "GetRandomPassword", false, false => get_random_password,
    "GetSecretValue", false, true => get_secret_value,
    "ListSecretVersionIds", false, false => list_secret_version_ids,
    "ListSecrets", false, false => list_secrets,
    "PutSecretValue", true, true => put_secret_value,
    "RestoreSecret", true, false => restore_secret,
    "RotateSecret", true, false => rotate_secret,
    "TagResource", true, false => tag_resource,
    "UntagResource", true, false => untag_resource,
    "UpdateSecret", true, true => update_secret,
    "UpdateSecretVersionStage", true, false => update_secret_version_stage,
}

#[cfg(test)]
mod tests;
