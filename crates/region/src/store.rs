//! Secrets Manager and Parameter Store of one region in this process, shared by their two endpoints.

use crate::dynamodb::Reply;
use crate::kind::Kind;
use crate::{Config, Error};
use bytes::Bytes;
use danki_secretstore::{At, SecretsManager, Ssm};
use danki_sys::clock::epoch_ns;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::sync::{Arc, Mutex, PoisonError};

/// Both stores. Cheap to clone: all clones are one.
#[derive(Clone)]
pub(crate) struct Stores(Arc<Mutex<Inner>>);

struct Inner {
    secrets: SecretsManager,
    parameters: Ssm,
    rng: SmallRng,
    /// The last one is due first.
    changes: Vec<Change>,
}

/// A value that changes while functions run.
struct Change {
    due_ms: u64,
    name: String,
    value: String,
    what: What,
}

enum What {
    Secret { binary: bool },
    Parameter { kind: &'static str },
}

impl Stores {
    /// Stores with what the configuration puts into them. Changes count from now.
    pub(crate) fn create(config: &Config) -> Result<Stores, Error> {
        let now_ms = now_ms();
        let mut inner = Inner {
            secrets: SecretsManager::new(&config.region_name),
            parameters: Ssm::new(&config.region_name),
            rng: SmallRng::seed_from_u64(config.seed),
            changes: changes(config, now_ms),
        };
        for secret in config.secretsmanager.iter().flat_map(|s| &s.secrets) {
            let (text, binary) = (secret.text(), secret.binary.as_ref());
            let value = text.as_ref().or(binary).expect("validated: exactly one is given");
            inner.put(&secret.name, value, &What::Secret { binary: binary.is_some() }, now_ms)?;
        }
        for parameter in config.ssm.iter().flat_map(|s| &s.parameters) {
            let what = What::Parameter { kind: parameter.r#type.as_str() };
            inner.put(&parameter.name, &parameter.value, &what, now_ms)?;
        }
        Ok(Stores(Arc::new(Mutex::new(inner))))
    }

    /// Runs one operation, and says whether a key of KMS was needed.
    pub(crate) fn execute(&self, kind: Kind, operation: &str, body: &Bytes) -> (Reply, bool) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        let now_ms = now_ms();
        inner.change(now_ms);
        let mut at = At { now_ms, rng: &mut inner.rng };
        let reply = match kind {
            Kind::Ssm => inner.parameters.execute(operation, body, &mut at, Some(&mut inner.secrets)),
            _ => inner.secrets.execute(operation, body, &mut at),
        };
        let kms = kind.effort(operation).kms
            && reply.status == 200
            && (kind != Kind::Ssm || encrypted(body, &reply.body));
        (Reply { status: reply.status, body: reply.body.to_string().into() }, kms)
    }
}

/// Parameter Store uses a key for what is written, or shown in clear, as `SecureString`.
fn encrypted(request: &[u8], response: &serde_json::Value) -> bool {
    let request: serde_json::Value = serde_json::from_slice(request).unwrap_or_default();
    let secure = |value: &serde_json::Value| value["Type"] == "SecureString";
    let listed = response["Parameters"].as_array().is_some_and(|list| list.iter().any(secure));
    secure(&request) || (request["WithDecryption"] == true && (listed || secure(&response["Parameter"])))
}

impl Inner {
    fn put(&mut self, name: &str, value: &str, what: &What, now_ms: u64) -> Result<(), Error> {
        let mut at = At { now_ms, rng: &mut self.rng };
        let put = match what {
            What::Secret { binary } => self.secrets.put(name, value, *binary, &mut at),
            What::Parameter { kind } => self.parameters.put(name, value, kind, &mut at),
        };
        put.map_err(|reason| Error::SecretSeed { name: name.to_owned(), reason })
    }

    /// Makes the changes that are due. One that the store refuses (a function has deleted the secret) is no longer wanted.
    fn change(&mut self, now_ms: u64) {
        while let Some(change) = self.changes.pop_if(|change| change.due_ms <= now_ms) {
            let _refused = self.put(&change.name, &change.value, &change.what, change.due_ms);
        }
    }
}

fn changes(config: &Config, now_ms: u64) -> Vec<Change> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "validated: 0 to 86,400 s")]
    let due_ms = |after_s: f64| now_ms + (after_s / config.time_scale * 1e3).round() as u64;
    let secrets = config.secretsmanager.iter().flat_map(|s| &s.secrets).map(|secret| {
        let what = What::Secret { binary: secret.binary.is_some() };
        (&secret.name, secret.rotate_after_s, &secret.rotate_to, what)
    });
    let parameters = config.ssm.iter().flat_map(|s| &s.parameters).map(|parameter| {
        let what = What::Parameter { kind: parameter.r#type.as_str() };
        (&parameter.name, parameter.rotate_after_s, &parameter.rotate_to, what)
    });
    let mut changes: Vec<Change> = secrets
        .chain(parameters)
        .filter_map(|(name, after_s, to, what)| {
            let (due_ms, value) = (due_ms(after_s?), to.clone()?);
            Some(Change { due_ms, name: name.clone(), value, what })
        })
        .collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.due_ms));
    changes
}

fn now_ms() -> u64 {
    epoch_ns() / 1_000_000
}
