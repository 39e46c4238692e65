//! SCRAM-SHA-256 (RFC 5802, 7677), both ends. As server 4096 iterations, as RDS Proxy has. Passwords are taken as they are: SASLprep
//! changes none that is ASCII.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use ring::pbkdf2;
use std::collections::HashMap;
use std::num::NonZeroU32;

const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).expect("not zero");

/// Most passwords, salts and counts of iterations whose result is kept.
const KEPT: usize = 1_000;

/// Results of the slow part, which takes milliseconds: each password and salt is worked on once.
#[derive(Debug, Default)]
pub(crate) struct Salted(HashMap<(String, Vec<u8>, NonZeroU32), [u8; 32]>);

impl Salted {
    fn salted(&mut self, password: &str, salt: &[u8], iterations: NonZeroU32) -> [u8; 32] {
        if self.0.len() >= KEPT {
            self.0.clear();
        }
        *self.0.entry((password.to_owned(), salt.to_vec(), iterations)).or_insert_with(|| {
            let mut salted = [0; 32];
            pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, password.as_bytes(), &mut salted);
            salted
        })
    }
}

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
    /// The salt belongs to the account, as PostgreSQL has it.
    pub fn start(
        password: &str,
        salt: &[u8],
        client_first: &str,
        cache: &mut Salted,
    ) -> Option<(Self, String)> {
        let bare = client_first.strip_prefix("n,").or_else(|| client_first.strip_prefix("y,"))?;
        let (_authorization, bare) = bare.split_once(',')?;
        let client_nonce = bare.split(',').find_map(|part| part.strip_prefix("r="))?;
        let nonce = format!("{client_nonce}{}", STANDARD.encode(super::random::<18>()));
        let server_first = format!("r={nonce},s={},i={ITERATIONS}", STANDARD.encode(salt));
        let salted = cache.salted(password, salt, ITERATIONS);
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
        let expected: Vec<u8> =
            client_key.as_ref().iter().zip(signature.as_ref()).map(|(key, mask)| key ^ mask).collect();
        if !super::same(STANDARD.encode(&expected).as_bytes(), proof.as_bytes()) {
            return None;
        }
        let server_key = hmac(&self.salted, b"Server Key");
        Some(format!("v={}", STANDARD.encode(hmac(server_key.as_ref(), message.as_bytes()).as_ref())))
    }
}

/// One login at the database.
#[derive(Debug)]
pub(crate) struct ScramClient {
    password: String,
    first_bare: String,
    /// What the server has to prove in the end.
    server_signature: Option<String>,
}

impl ScramClient {
    /// The state, and the first message.
    pub fn start(password: &str) -> (Self, String) {
        let first_bare = format!("n=,r={}", STANDARD.encode(super::random::<18>()));
        let first = format!("n,,{first_bare}");
        (Self { password: password.to_owned(), first_bare, server_signature: None }, first)
    }

    /// Takes the server's first message; returns the last one. None: malformed, or an answer to something else.
    pub fn answer(&mut self, server_first: &str, cache: &mut Salted) -> Option<String> {
        let part = |prefix: &str| server_first.split(',').find_map(|part| part.strip_prefix(prefix));
        let (nonce, salt) = (part("r=")?, STANDARD.decode(part("s=")?).ok()?);
        let iterations: NonZeroU32 = part("i=")?.parse().ok()?;
        let own_nonce = self.first_bare.split_once("r=")?.1;
        // A server that asks for more wants the proxy to burn CPU.
        if !nonce.starts_with(own_nonce) || nonce.len() == own_nonce.len() || iterations.get() > 1_000_000 {
            return None;
        }
        let salted = cache.salted(&self.password, &salt, iterations);
        let without_proof = format!("c=biws,r={nonce}");
        let message = format!("{},{server_first},{without_proof}", self.first_bare);
        let hmac = |key: &[u8], data: &[u8]| sign(&Key::new(HMAC_SHA256, key), data);
        let client_key = hmac(&salted, b"Client Key");
        let signature = hmac(digest(&SHA256, client_key.as_ref()).as_ref(), message.as_bytes());
        let proof: Vec<u8> =
            client_key.as_ref().iter().zip(signature.as_ref()).map(|(key, mask)| key ^ mask).collect();
        let server_key = hmac(&salted, b"Server Key");
        self.server_signature = Some(STANDARD.encode(hmac(server_key.as_ref(), message.as_bytes()).as_ref()));
        Some(format!("{without_proof},p={}", STANDARD.encode(&proof)))
    }

    /// Whether the server knows the password too.
    pub fn finish(&self, server_final: &str) -> bool {
        let given = server_final.strip_prefix("v=").and_then(|rest| rest.split(',').next());
        given.is_some() && given == self.server_signature.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};

    /// Against the client's end of `postgres-protocol`.
    fn login(server_password: &str, client_password: &str) -> Option<()> {
        let mut client = ScramSha256::new(client_password.as_bytes(), ChannelBinding::unsupported());
        let first = String::from_utf8(client.message().to_vec()).ok()?;
        let (server, answer) = ScramServer::start(server_password, b"salt", &first, &mut Salted::default())?;
        client.update(answer.as_bytes()).ok()?;
        let last = String::from_utf8(client.message().to_vec()).ok()?;
        client.finish(server.finish(&last)?.as_bytes()).ok()
    }

    /// Our two ends against each other.
    fn own(server_password: &str, client_password: &str) -> bool {
        let (mut client, first) = ScramClient::start(client_password);
        let Some((server, answer)) =
            ScramServer::start(server_password, b"salt", &first, &mut Salted::default())
        else {
            return false;
        };
        let Some(last) = client.answer(&answer, &mut Salted::default()) else { return false };
        server.finish(&last).is_some_and(|proof| client.finish(&proof))
    }

    #[test]
    fn our_client_s_end_is_right() {
        assert!(own("secret", "secret") && !own("secret", "other"));
        let (mut client, _) = ScramClient::start("secret");
        for first in ["", "r=x,s=AAAA,i=1", "r=,s=AAAA,i=0", "i=4096"] {
            assert_eq!(client.answer(first, &mut Salted::default()), None, "{first}");
        }
        assert!(!client.finish("v=") && !client.finish(""));
    }

    #[test]
    fn the_right_password_passes_and_no_other() {
        assert_eq!(login("secret", "secret"), Some(()));
        assert_eq!(login("secret", "other"), None);
    }

    #[test]
    fn malformed_messages_are_refused() {
        for first in ["", "n", "n,,", "n,,n=,x=1", "p=tls-server-end-point,,n=,r=abc"] {
            assert!(
                ScramServer::start("secret", b"salt", first, &mut Salted::default()).is_none(),
                "{first}"
            );
        }
        let (server, _) = ScramServer::start("secret", b"salt", "n,,n=,r=abc", &mut Salted::default())
            .expect("well formed");
        for last in ["", "c=biws", "c=biws,r=other,p=AAAA", ",p=", "c=biws,r=abc,p="] {
            assert!(server.finish(last).is_none(), "{last}");
        }
    }
}
