//! Secrets Manager and Parameter Store as state: a request's JSON goes in, a response's JSON comes out.
//!
//! No clock, no randomness and no network of its own: time and dice are arguments, so the same requests give the same answers.
//! Why not a ready-made engine: `docs/decisions/2026-11-21-own-secret-store.md`. Error texts are those that AWS was recorded to
//! give (`localstack` repository, snapshots of its tests against AWS), where such a recording exists.
//!
//! ```
//! use danki_secretstore::{At, SecretsManager};
//! use rand::SeedableRng;
//! let mut rng = rand::rngs::SmallRng::seed_from_u64(1);
//! let mut store = SecretsManager::new("us-east-1");
//! let request = br#"{"SecretId":"none"}"#;
//! let reply = store.execute("GetSecretValue", request, &mut At { now_ms: 0, rng: &mut rng });
//! assert_eq!(reply.status, 400);
//! ```

mod reply;
mod request;
mod secretsmanager;
mod ssm;

pub use reply::Reply;
pub use secretsmanager::SecretsManager;
pub use ssm::Ssm;

use rand::Rng;
use rand::rngs::SmallRng;

/// The account that everything belongs to: AWS's own documentation example.
pub const ACCOUNT: &str = "123456789012";

/// When a request is served, and by which luck.
pub struct At<'a> {
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// Ids and passwords come from here.
    pub rng: &'a mut SmallRng,
}

impl At<'_> {
    /// A random UUID, version 4.
    fn uuid(&mut self) -> String {
        let bits: u128 = self.rng.random();
        let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }
}

/// What an operation does, for whoever decides how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// It changes something.
    pub writes: bool,
    /// A key of KMS is used: a value is encrypted or decrypted.
    pub kms: bool,
}

/// Milliseconds as AWS's JSON protocols write times: seconds since 1970 with a fraction.
#[expect(clippy::cast_precision_loss, reason = "ms since 1970 fit into 53 bits until the year 287396")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn uuids_are_version_4_and_differ() {
        let mut rng = SmallRng::seed_from_u64(7);
        let mut at = At { now_ms: 0, rng: &mut rng };
        let (a, b) = (at.uuid(), at.uuid());
        assert_ne!(a, b);
        assert_eq!((a.len(), &a[14..15]), (36, "4"));
        assert!("89ab".contains(&a[19..20]), "{a}");
    }
}
