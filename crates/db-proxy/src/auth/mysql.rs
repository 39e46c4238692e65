//! MySQL's proofs of a password. Both ends know it, so the server's end makes the same proof and compares.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, RsaPublicKey};

fn xor(mut left: Vec<u8>, right: &[u8]) -> Vec<u8> {
    left.iter_mut().zip(right).for_each(|(left, right)| *left ^= right);
    left
}

/// `mysql_native_password`: SHA1(password) xor SHA1(scramble + SHA1(SHA1(password))).
pub(crate) fn native_proof(password: &str, scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let sha1 = |parts: &[&[u8]]| digest(&SHA1_FOR_LEGACY_USE_ONLY, &parts.concat());
    let once = sha1(&[password.as_bytes()]);
    let twice = sha1(&[once.as_ref()]);
    xor(once.as_ref().to_vec(), sha1(&[scramble, twice.as_ref()]).as_ref())
}

/// `caching_sha2_password`: SHA256(password) xor SHA256(SHA256(SHA256(password)) + scramble).
pub(crate) fn caching_sha2_proof(password: &str, scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let sha256 = |parts: &[&[u8]]| digest(&SHA256, &parts.concat());
    let once = sha256(&[password.as_bytes()]);
    let twice = sha256(&[once.as_ref()]);
    xor(once.as_ref().to_vec(), sha256(&[twice.as_ref(), scramble]).as_ref())
}

/// The password for `caching_sha2_password` without TLS, sealed with the server's key (PEM). None if the key is none.
pub(crate) fn caching_sha2_sealed(password: &str, scramble: &[u8], key_pem: &[u8]) -> Option<Vec<u8>> {
    let key = RsaPublicKey::from_public_key_pem(std::str::from_utf8(key_pem).ok()?.trim()).ok()?;
    let mut clear = password.as_bytes().to_vec();
    clear.push(0);
    for (at, byte) in clear.iter_mut().enumerate() {
        *byte ^= scramble[at % scramble.len()];
    }
    key.encrypt(&mut Random, Oaep::new::<sha1::Sha1>(), &clear).ok()
}

/// The kernel's random source, as `rsa` wants it.
struct Random;

impl rsa::rand_core::RngCore for Random {
    fn next_u32(&mut self) -> u32 {
        u32::from_ne_bytes(super::random())
    }

    fn next_u64(&mut self) -> u64 {
        u64::from_ne_bytes(super::random())
    }

    fn fill_bytes(&mut self, into: &mut [u8]) {
        into.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&super::random::<8>()[..chunk.len()]));
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), rsa::rand_core::Error> {
        self.fill_bytes(into);
        Ok(())
    }
}

impl rsa::rand_core::CryptoRng for Random {}

#[cfg(test)]
mod tests {
    use super::*;
    use rsa::RsaPrivateKey;
    use rsa::pkcs8::{EncodePublicKey, LineEnding};

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Computed with Python's hashlib after the formulas of MySQL's documentation.
    #[test]
    fn proofs_are_as_clients_make_them() {
        let scramble = b"01234567890123456789";
        assert_eq!(hex(&native_proof("secret", scramble)), NATIVE);
        assert_eq!(hex(&caching_sha2_proof("secret", scramble)), CACHING);
        assert!(native_proof("", scramble).is_empty() && caching_sha2_proof("", scramble).is_empty());
    }

    const NATIVE: &str = "7abe1a8776b59e931059451f81e596a60dbbf7a8";
    const CACHING: &str = "1a2da2573c2faa367e2afddb54cdfd11a95ed22eef0167151196a6fc8e3d3813";

    #[test]
    fn a_sealed_password_can_be_opened() {
        let key = RsaPrivateKey::new(&mut Random, 1024).expect("a small key");
        let pem = key.to_public_key().to_public_key_pem(LineEnding::LF).expect("a key can be written");
        let scramble = b"01234567890123456789";
        let sealed = caching_sha2_sealed("secret", scramble, pem.as_bytes()).expect("the key is one");
        let opened = key.decrypt(Oaep::new::<sha1::Sha1>(), &sealed).expect("sealed for this key");
        assert_eq!(xor(opened, scramble), b"secret\0");
        assert_eq!(caching_sha2_sealed("secret", scramble, b"no key"), None);
    }
}
