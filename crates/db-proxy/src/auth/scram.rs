//! SCRAM-SHA-256, the server's end (RFC 5802, 7677). 4096 iterations, as RDS Proxy has.

use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use ring::pbkdf2;
use std::num::NonZeroU32;

const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).expect("not zero");

/// One login.
#[derive(Debug)]
pub(crate) struct ScramServer {
    nonce: String,
    salted: [u8; 32],
    /// What both sides sign: filled as the exchange goes.
    first_bare: String,
    server_first: String,
}

impl ScramServer {
    /// Takes the client's first message; returns the state and what to answer. None: malformed, or it wants channel binding.
    pub fn start(password: &str, client_first: &str) -> Option<(Self, String)> {
        let bare = client_first.strip_prefix("n,").or_else(|| client_first.strip_prefix("y,"))?;
        let (_authorization, bare) = bare.split_once(',')?;
        let client_nonce = bare.split(',').find_map(|part| part.strip_prefix("r="))?;
        let salt: [u8; 16] = super::random();
        let nonce = format!("{client_nonce}{}", base64(&super::random::<18>()));
        let server_first = format!("r={nonce},s={},i={ITERATIONS}", base64(&salt));
        let mut salted = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, &salt, password.as_bytes(), &mut salted);
        let state = Self { nonce, salted, first_bare: bare.to_owned(), server_first: server_first.clone() };
        Some((state, server_first))
    }

    /// Takes the client's last message. Some: its password is right, and this proves that the proxy knows it too.
    pub fn finish(&self, client_final: &str) -> Option<String> {
        let (without_proof, proof) = client_final.rsplit_once(",p=")?;
        let mut parts = without_proof.split(',');
        parts.next().filter(|binding| *binding == "c=biws" || *binding == "c=eSws")?;
        parts.next()?.strip_prefix("r=").filter(|nonce| *nonce == self.nonce)?;
        let message = format!("{},{},{without_proof}", self.first_bare, self.server_first);
        let hmac = |key: &[u8], data: &[u8]| sign(&Key::new(HMAC_SHA256, key), data);
        let client_key = hmac(&self.salted, b"Client Key");
        let stored_key = digest(&SHA256, client_key.as_ref());
        let signature = hmac(stored_key.as_ref(), message.as_bytes());
        let expected: Vec<u8> = client_key.as_ref().iter().zip(signature.as_ref()).map(|(key, mask)| key ^ mask).collect();
        if !super::same(base64(&expected).as_bytes(), proof.as_bytes()) {
            return None;
        }
        let server_key = hmac(&self.salted, b"Server Key");
        Some(format!("v={}", base64(hmac(server_key.as_ref(), message.as_bytes()).as_ref())))
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};

    /// Against the client's end of `postgres-protocol`.
    fn login(server_password: &str, client_password: &str) -> Option<()> {
        let mut client = ScramSha256::new(client_password.as_bytes(), ChannelBinding::unsupported());
        let first = String::from_utf8(client.message().to_vec()).ok()?;
        let (server, answer) = ScramServer::start(server_password, &first)?;
        client.update(answer.as_bytes()).ok()?;
        let last = String::from_utf8(client.message().to_vec()).ok()?;
        client.finish(server.finish(&last)?.as_bytes()).ok()
    }

    #[test]
    fn the_right_password_passes_and_no_other() {
        assert_eq!(login("secret", "secret"), Some(()));
        assert_eq!(login("secret", "other"), None);
    }

    #[test]
    fn malformed_messages_are_refused() {
        for first in ["", "n", "n,,", "n,,n=,x=1", "p=tls-server-end-point,,n=,r=abc"] {
            assert!(ScramServer::start("secret", first).is_none(), "{first}");
        }
        let (server, _) = ScramServer::start("secret", "n,,n=,r=abc").expect("well formed");
        for last in ["", "c=biws", "c=biws,r=other,p=AAAA", ",p=", "c=biws,r=abc,p="] {
            assert!(server.finish(last).is_none(), "{last}");
        }
    }

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
