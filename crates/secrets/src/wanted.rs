//! What can be asked for: one value of one of the two services.

use std::fmt;

/// The two services behind the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// AWS Secrets Manager.
    SecretsManager,
    /// AWS Systems Manager Parameter Store.
    ParameterStore,
}

impl Service {
    /// Both.
    pub const ALL: [Service; 2] = [Service::SecretsManager, Service::ParameterStore];
}

/// One value, named as the service names it. Two requests that are equal here share a cache entry and an upstream call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// `GetSecretValue`.
    Secret {
        /// Name or ARN.
        id: String,
        /// Version by its id.
        version_id: Option<String>,
        /// Version by its stage; AWSCURRENT if neither is given.
        version_stage: Option<String>,
    },
    /// `GetParameter`.
    Parameter {
        /// Name, path or ARN, with `:version` or `:label` behind it if one was asked for.
        name: String,
        /// Whether a SecureString is decrypted.
        decrypt: bool,
    },
}

impl Wanted {
    /// Who has it.
    pub fn service(&self) -> Service {
        match self {
            Wanted::Secret { .. } => Service::SecretsManager,
            Wanted::Parameter { .. } => Service::ParameterStore,
        }
    }

    /// Whether a batch call can bring it: those have no way to name a secret's version.
    pub fn batchable(&self) -> bool {
        match self {
            Wanted::Secret { version_id, version_stage, .. } => {
                version_id.is_none() && version_stage.is_none()
            }
            Wanted::Parameter { .. } => true,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Secret { id, .. } => write!(f, "secret {id:?}"),
            Wanted::Parameter { name, .. } => write!(f, "parameter {name:?}"),
        }
    }
}
