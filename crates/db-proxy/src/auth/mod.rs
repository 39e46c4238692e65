//! Who is who: proofs of passwords on either side, and IAM tokens.

mod iam;
mod mysql;
mod scram;

pub(crate) use iam::{Token, check_token};
pub(crate) use mysql::{caching_sha2_proof, caching_sha2_sealed, native_proof};
pub(crate) use scram::{Salted, ScramClient, ScramServer};

/// PostgreSQL's oldest kind of proof.
pub(crate) use postgres_protocol::authentication::md5_hash as postgres_md5_proof;

use ring::rand::{SecureRandom, SystemRandom};

/// Random bytes from the kernel.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the kernel's random source does not fail after boot");
    bytes
}

/// Random bytes for a scramble: MySQL's clients take it as text, so neither zero nor above 0x7F.
pub(crate) fn scramble() -> [u8; 20] {
    random::<20>().map(|byte| (byte & 0x7F).max(1) % 0x7E + 1)
}

/// Equality in a time that does not tell where two secrets differ.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}
