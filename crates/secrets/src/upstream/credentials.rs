//! Who signs: the function's role, from the environment, or (SnapStart, where the environment has none) from the container credentials
//! endpoint. Lambda never renews the former; the latter expire and are fetched again.

use super::answer;
use super::failure::Failure;
use super::stream::{Deadline, Plain};
use crate::clock::{Now, now};
use crate::date::Utc;
use serde::Deserialize;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// Where credentials come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The environment has them.
    Fixed(Keys),
    /// `AWS_CONTAINER_CREDENTIALS_FULL_URI`, and its token.
    Container {
        /// `host:port`, which must be local.
        address: String,
        /// Path of the endpoint.
        path: String,
        /// `AWS_CONTAINER_AUTHORIZATION_TOKEN`.
        authorization: Option<String>,
    },
    /// Neither; says what is missing.
    None(&'static str),
}

/// One set of credentials.
#[derive(Clone, Default, Deserialize, PartialEq, Eq)]
pub struct Keys {
    /// `AWS_ACCESS_KEY_ID`.
    #[serde(rename = "AccessKeyId")]
    pub id: String,
    /// `AWS_SECRET_ACCESS_KEY`.
    #[serde(rename = "SecretAccessKey")]
    pub secret: String,
    /// `AWS_SESSION_TOKEN`.
    #[serde(rename = "Token", default)]
    pub token: Option<String>,
    /// When they end, RFC 3339.
    #[serde(rename = "Expiration", default)]
    expires: Option<String>,
}

impl Keys {
    /// Credentials that do not expire as far as we know.
    pub fn new(id: String, secret: String, token: Option<String>) -> Keys {
        Keys { id, secret, token, expires: None }
    }

    /// Compares as text: RFC 3339 in UTC sorts like time.
    fn usable(&self, now: Now) -> bool {
        let soon = Utc::of(now.epoch + EARLY).rfc3339();
        self.expires.as_deref().is_none_or(|expires| expires.get(..19) > soon.get(..19))
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.secret.zeroize();
        self.token.zeroize();
    }
}

/// Renewed this long before they end, so that a request under way does not see the end.
const EARLY: Duration = Duration::from_secs(60);
/// The endpoint is on this machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// The current credentials, shared by all threads.
pub struct Credentials {
    source: Source,
    /// The current ones and those before, whose token a function may still send.
    held: Mutex<[Option<Keys>; 2]>,
}

impl Credentials {
    /// Nothing is fetched yet.
    pub fn new(source: Source) -> Credentials {
        let first = match &source {
            Source::Fixed(keys) => Some(keys.clone()),
            Source::Container { .. } | Source::None(_) => None,
        };
        Credentials { source, held: Mutex::new([first, None]) }
    }

    /// Credentials that are good now; fetches them if need be.
    pub fn current(&self) -> Result<Keys, Failure> {
        if let [Some(keys), _] = &*self.lock()
            && keys.usable(now())
        {
            return Ok(keys.clone());
        }
        let fresh = match &self.source {
            Source::Fixed(keys) => return Ok(keys.clone()),
            Source::None(missing) => return Err(Failure::NoCredentials((*missing).to_owned())),
            Source::Container { address, path, authorization } => {
                from_container(address, path, authorization.as_deref())?
            }
        };
        let mut held = self.lock();
        held[1] = held[0].take();
        held[0] = Some(fresh.clone());
        Ok(fresh)
    }

    /// Whether others may be had by asking again; forgets those at hand.
    pub fn renew(&self) -> bool {
        let renewable = matches!(self.source, Source::Container { .. });
        if renewable {
            let mut held = self.lock();
            held[1] = held[0].take();
        }
        renewable
    }

    /// Whether a client knows the session token. In constant time, and in the same time if there is none.
    pub fn knows(&self, token: &[u8]) -> bool {
        let held = self.lock();
        held.iter()
            .flatten()
            .filter_map(|keys| keys.token.as_ref())
            .fold(false, |known, expected| known | bool::from(expected.as_bytes().ct_eq(token)))
    }

    fn lock(&self) -> MutexGuard<'_, [Option<Keys>; 2]> {
        // Nothing panics while holding it.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn from_container(address: &str, path: &str, authorization: Option<&str>) -> Result<Keys, Failure> {
    let deadline = Deadline::after(PATIENCE);
    let mut stream = Plain::connect(address, deadline)?;
    let authorization = authorization.map(|token| format!("Authorization: {token}\r\n")).unwrap_or_default();
    let request = Zeroizing::new(format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\n{authorization}Connection: close\r\n\r\n"
    ));
    stream.write_all(request.as_bytes()).map_err(|error| deadline.failure(&error))?;
    let answer = answer::read(&mut stream).map_err(|error| deadline.failure(&error))?;
    match answer.status {
        200 => serde_json::from_slice(&answer.body).map_err(|_| {
            Failure::NoCredentials("the container credentials are not JSON as documented".to_owned())
        }),
        status => {
            Err(Failure::NoCredentials(format!("the container credentials endpoint answered {status}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_session_token_is_known() {
        let keys = Keys::new("id".into(), "secret".into(), Some("token".into()));
        let credentials = Credentials::new(Source::Fixed(keys));
        assert!(credentials.knows(b"token"));
        for wrong in [b"".as_slice(), b"toke", b"token ", b"tokem", b"secret"] {
            assert!(!credentials.knows(wrong));
        }
        assert!(!Credentials::new(Source::None("x")).knows(b""));
        let without = Keys::new("id".into(), "secret".into(), None);
        assert!(!Credentials::new(Source::Fixed(without)).knows(b""));
    }

    #[test]
    fn secrets_are_not_printed() {
        let printed = format!("{:?}", Keys::new("id".into(), "hidden1".into(), Some("hidden2".into())));
        assert!(printed.contains("id") && !printed.contains("hidden"), "{printed}");
    }

    #[test]
    fn credentials_end_a_minute_early() {
        let at = |seconds| Now { monotonic: Duration::ZERO, epoch: Duration::from_secs(seconds) };
        let mut keys = Keys::default();
        keys.expires = Some("2022-11-16T08:22:40Z".into());
        assert!(keys.usable(at(1_668_586_960 - 61)));
        assert!(!keys.usable(at(1_668_586_960 - 60)));
    }
}
