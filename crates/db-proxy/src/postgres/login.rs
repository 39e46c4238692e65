//! A client's way in.

use super::session::{startup_options, startup_setting};
use super::{Cancelable, Client, Phase, Postgres, Server, number};
use crate::auth::{self, Salted, ScramServer, Token};
use crate::config::{PasswordType, User};
use crate::protocol::Facts;
use crate::turn::Turn;
use danki_db_wire::postgres::{HEAD, Startup, error_response, head, put_message};
use danki_db_wire::{Cursor, Error as WireError};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A password message, or one of SCRAM; IAM tokens are the longest.
const LONGEST_PROOF: usize = 16 * 1024;
/// Parameters that RDS Proxy takes at login (its guide, on connecting to PostgreSQL).
const TAKEN_BY_RDS: &[&str] =
    &["application_name", "client_encoding", "datestyle", "timezone", "extra_float_digits"];

/// Which proof is awaited.
pub(crate) enum Proof {
    Clear,
    Md5([u8; 4]),
    ScramFirst,
    ScramLast(Box<ScramServer>),
}

impl Postgres {
    pub(super) fn startup(
        &mut self,
        facts: Facts,
        client: &mut Client,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        let Some((startup, length)) = Startup::parse(bytes)? else { return Ok(0) };
        match startup {
            Startup::Tls if self.config.tls_certificate.is_some() && !facts.client_tls => {
                // What follows the request unencrypted could have been put there by somebody else.
                if bytes.len() > length {
                    return Err(WireError::Malformed("plain text behind the request for TLS"));
                }
                turn.to_client.push(b'S');
                turn.client_tls = true;
            }
            Startup::Tls | Startup::Gss => turn.to_client.push(b'N'),
            Startup::Cancel { process, secret } => self.cancel(process, secret, turn),
            Startup::Login { version, parameters } => {
                if let Err((code, text)) = self.begin(facts, client, version, &parameters, turn) {
                    refuse_login(turn, code, &text);
                }
            }
        }
        Ok(length)
    }

    fn begin(
        &mut self,
        facts: Facts,
        client: &mut Client,
        version: u32,
        parameters: &[(String, String)],
        turn: &mut Turn,
    ) -> Result<(), (&'static str, String)> {
        if self.config.require_tls && !facts.client_tls {
            return Err(("28000", "This RDS Proxy requires TLS connections".into()));
        }
        if version >> 16 != 3 {
            let text =
                format!("RDS Proxy supports only version 3.0, not {}.{}", version >> 16, version & 0xFFFF);
            return Err(("0A000", format!("Feature not supported: {text}")));
        }
        self.take_parameters(client, version, parameters, turn)?;
        let Some(user) = self.config.user.iter().find(|user| user.name == client.user) else {
            let text = "has no credentials for the role";
            let hint = "Check the credentials for this role and try again.";
            return Err(("28P01", format!("This RDS proxy {text} {}. {hint}", client.user)));
        };
        client.phase = Phase::Login(self.ask(user, facts, turn)?);
        Ok(())
    }

    /// Asks for the proof that the account needs.
    fn ask(&self, user: &User, facts: Facts, turn: &mut Turn) -> Result<Proof, (&'static str, String)> {
        let out = &mut turn.to_client;
        if user.iam.is_some() {
            if !facts.client_tls {
                return Err(("28000", "IAM authentication is allowed only with SSL connections.".into()));
            }
            put_message(out, b'R', &3_u32.to_be_bytes());
            return Ok(Proof::Clear);
        }
        if self.config.client_password_auth_type == Some(PasswordType::PostgresMd5) {
            let salt = auth::random();
            put_message(out, b'R', &[&5_u32.to_be_bytes()[..], &salt].concat());
            return Ok(Proof::Md5(salt));
        }
        put_message(out, b'R', &[&10_u32.to_be_bytes()[..], b"SCRAM-SHA-256\0\0"].concat());
        Ok(Proof::ScramFirst)
    }

    /// Account, database, settings.
    fn take_parameters(
        &mut self,
        client: &mut Client,
        version: u32,
        parameters: &[(String, String)],
        turn: &mut Turn,
    ) -> Result<(), (&'static str, String)> {
        let mut settings = BTreeMap::new();
        let mut unknown = Vec::new();
        for (name, value) in parameters {
            let lower = name.to_ascii_lowercase();
            match lower.as_str() {
                "user" => client.user.clone_from(value),
                "database" => client.database.clone_from(value),
                "replication" if matches!(value.as_str(), "false" | "off" | "no" | "0") => {}
                "replication" => {
                    return Err((
                        "0A000",
                        "RDS Proxy currently doesn't support streaming replication mode.".into(),
                    ));
                }
                _ if lower.starts_with("_pq_.") => unknown.push(name.clone()),
                _ if self.is_rds() && !TAKEN_BY_RDS.contains(&lower.as_str()) => {
                    return Err(("0A000", format!("RDS Proxy currently doesn't support the option {name}.")));
                }
                "options" => {
                    let wrong = || ("0A000", format!("the proxy does not understand the options {value:?}"));
                    for (name, value) in startup_options(value).ok_or_else(wrong)? {
                        settings.extend(Some(startup_setting(&name, &value).ok_or_else(wrong)?));
                    }
                }
                _ => {
                    let wrong = || ("08P01", format!("{name:?} is no parameter"));
                    settings.extend(Some(startup_setting(name, value).ok_or_else(wrong)?));
                }
            }
        }
        if client.user.is_empty() {
            return Err(("28000", "A user name is missing from the connection startup packet.".into()));
        }
        if client.database.is_empty() {
            client.database.clone_from(&client.user);
        }
        if version & 0xFFFF != 0 || !unknown.is_empty() {
            negotiate(&mut turn.to_client, &unknown);
        }
        client.startup = self.interner.settings(settings);
        client.settings = Rc::clone(&client.startup);
        Ok(())
    }

    pub(super) fn password(
        &mut self,
        facts: Facts,
        client: &mut Client,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        let Some((kind, length)) = head(bytes) else { return Ok(0) };
        if kind != b'p' || !(HEAD..=LONGEST_PROOF).contains(&length) {
            return Err(WireError::Malformed("a password message"));
        }
        let Some(body) = bytes.get(HEAD..length) else { return Ok(0) };
        let Some(user) = self.config.user.iter().find(|user| user.name == client.user) else {
            return Err(WireError::Malformed("a login whose account has gone"));
        };
        let Phase::Login(proof) = &client.phase else { return Ok(0) };
        let (next, passed) = if matches!(proof, Proof::ScramFirst) {
            (scram_first(body, user, &self.salt, &mut self.salted.borrow_mut(), turn), false)
        } else {
            check_proof(proof, body, user, self.config.iam_host.as_deref(), turn)
        };
        if let Some(next) = next {
            client.phase = Phase::Login(next);
        } else if passed {
            self.admit(facts, client, turn);
        } else {
            turn.auth_failed = true;
            let role = &user.name;
            let text = if user.iam.is_some() {
                format!(
                    "The IAM authentication failed for the role {role}. Check the IAM token for this role and try again."
                )
            } else {
                format!("The password that was provided for the role {role} is wrong.")
            };
            refuse_login(turn, "28P01", &text);
        }
        Ok(length)
    }

    fn admit(&mut self, facts: Facts, client: &mut Client, turn: &mut Turn) {
        client.phase = Phase::Greeting;
        let parts = self.parts_of(client, facts.client_tls);
        let known = self.key(parts).and_then(|key| self.greetings.get(&(key, client.settings.number)));
        match known {
            Some(parameters) => {
                let parameters = Rc::clone(parameters);
                self.tell(client, parameters, turn);
            }
            None => turn.borrow = true,
        }
    }

    /// The connection that the client has been lent shows what to tell it.
    pub(super) fn greet(
        &mut self,
        facts: Facts,
        client: &mut Client,
        server: Option<&mut Server>,
        turn: &mut Turn,
    ) -> usize {
        let Some(server) = server.filter(|server| server.is_quiet()) else { return 0 };
        let parts = self.parts_of(client, facts.client_tls);
        if let Some(key) = self.key(parts) {
            if self.greetings.len() >= super::KEYS {
                self.greetings.clear();
            }
            self.greetings.insert((key, client.settings.number), Rc::clone(&server.parameters));
        }
        self.tell(client, Rc::clone(&server.parameters), turn);
        self.release_if_free(client, server, turn);
        0
    }

    fn tell(&mut self, client: &mut Client, parameters: Rc<super::Parameters>, turn: &mut Turn) {
        let secret = u32::from_ne_bytes(auth::random());
        let cancelable = Cancelable { secret, backend: None };
        self.cancelables.insert(number(client.id), cancelable);
        let out = &mut turn.to_client;
        put_message(out, b'R', &0_u32.to_be_bytes());
        for (name, value) in parameters.iter() {
            put_message(out, b'S', &[&name[..], &[0], value, &[0]].concat());
        }
        put_message(out, b'K', &[number(client.id).to_be_bytes(), secret.to_be_bytes()].concat());
        put_message(out, b'Z', b"I");
        client.shown = Some(parameters);
        client.phase = Phase::Ready;
        turn.client_ready = true;
    }
}

/// NegotiateProtocolVersion: 3.0 is what there is, and none of these.
fn negotiate(out: &mut Vec<u8>, unknown: &[String]) {
    let mut body = (3_u32 << 16).to_be_bytes().to_vec();
    body.extend_from_slice(&(unknown.len() as u32).to_be_bytes());
    for name in unknown {
        body.extend_from_slice(name.as_bytes());
        body.push(0);
    }
    put_message(out, b'v', &body);
}

fn refuse_login(turn: &mut Turn, code: &str, text: &str) {
    error_response(&mut turn.to_client, "FATAL", code, text, "");
    turn.close_client = true;
}

/// Either another message is awaited, or the proof is right, or not.
fn check_proof(
    proof: &Proof,
    body: &[u8],
    user: &User,
    host: Option<&str>,
    turn: &mut Turn,
) -> (Option<Proof>, bool) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let given = text(body.strip_suffix(&[0]).unwrap_or(body));
    match proof {
        Proof::Clear => (None, clear_passes(&given, user, host)),
        Proof::Md5(salt) => {
            let expected = auth::postgres_md5_proof(user.name.as_bytes(), user.password.as_bytes(), *salt);
            (None, auth::same(expected.as_bytes(), given.as_bytes()))
        }
        Proof::ScramFirst => (None, false),
        Proof::ScramLast(state) => match state.finish(&text(body)) {
            Some(answer) => {
                put_message(
                    &mut turn.to_client,
                    b'R',
                    &[&12_u32.to_be_bytes()[..], answer.as_bytes()].concat(),
                );
                (None, true)
            }
            None => (None, false),
        },
    }
}

fn scram_first(body: &[u8], user: &User, salt: &[u8], salted: &mut Salted, turn: &mut Turn) -> Option<Proof> {
    let mut cursor = Cursor::new(body);
    cursor.until_zero().filter(|name| *name == b"SCRAM-SHA-256")?;
    let length = cursor.u32_be()?;
    let first = std::str::from_utf8(cursor.take(length as usize)?).ok()?;
    let salt = [salt, user.name.as_bytes()].concat();
    let (state, answer) = ScramServer::start(&user.password, &salt, first, salted)?;
    put_message(&mut turn.to_client, b'R', &[&11_u32.to_be_bytes()[..], answer.as_bytes()].concat());
    Some(Proof::ScramLast(Box::new(state)))
}

fn clear_passes(given: &str, user: &User, host: Option<&str>) -> bool {
    match &user.iam {
        Some(key) => auth::check_token(
            given,
            &Token {
                host,
                user: &user.name,
                region: &key.region,
                access_key_id: &key.access_key_id,
                secret_access_key: &key.secret_access_key,
                now_s: (danki_sys::clock::epoch_ns() / 1_000_000_000) as i64,
            },
        ),
        None => auth::same(given.as_bytes(), user.password.as_bytes()),
    }
}
