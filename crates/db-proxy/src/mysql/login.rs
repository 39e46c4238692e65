//! A client's way in.

use super::{Client, MySql, OFFERED, Phase, Server, error};
use crate::auth::{self, Token, caching_sha2_proof, native_proof};
use crate::config::User;
use crate::protocol::Facts;
use crate::turn::Turn;
use danki_db_wire::Error as WireError;
use danki_db_wire::mysql::{
    LoginResponse, auth_more, auth_switch, caps, header, ok_packet, packet, put_packet,
};

/// A login, or a proof; IAM tokens are the longest.
const LONGEST: usize = 64 * 1024;
/// Length of the packet that asks for TLS.
const TLS_REQUEST: usize = 32;

impl MySql {
    pub(super) fn login(
        &mut self,
        facts: Facts,
        client: &mut Client,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        let Some((sequence, payload, length)) = whole(bytes)? else { return Ok(0) };
        client.sequence = sequence.wrapping_add(1);
        if payload.len() == TLS_REQUEST && wants_tls(payload) && !facts.client_tls {
            turn.client_tls = self.config.tls_certificate.is_some();
            if !turn.client_tls {
                return Err(WireError::Malformed("a request for TLS, which was not offered"));
            }
            return Ok(length);
        }
        if self.config.require_tls && !facts.client_tls {
            error(turn, client.sequence, 3159, "HY000", "This RDS Proxy requires TLS connections");
            turn.close_client = true;
            return Ok(length);
        }
        let login = LoginResponse::parse(payload)?;
        client.tls = facts.client_tls;
        client.capabilities = login.caps & OFFERED & self.server_caps_for_clients();
        client.collation = login.collation;
        self.identify(facts, client, login, turn);
        Ok(length)
    }

    fn server_caps_for_clients(&self) -> u32 {
        self.server_caps | caps::CONNECT_ATTRS | caps::PLUGIN_AUTH_LENENC
    }

    /// Who it is, and the proof if it has come along.
    fn identify(&mut self, facts: Facts, client: &mut Client, login: LoginResponse, turn: &mut Turn) {
        client.user = login.user;
        client.state = self.interner.state(login.database, client.state.variables.clone());
        let Some(user) = self.config.user.iter().find(|user| user.name == client.user) else {
            return denied(client, !login.auth.is_empty(), turn);
        };
        let plugin = if user.iam.is_some() { "mysql_clear_password" } else { self.plugin() };
        // A password in clear goes through TLS only.
        if plugin == "mysql_clear_password" && !facts.client_tls {
            return denied(client, true, turn);
        }
        if login.plugin != plugin {
            client.scramble = auth::scramble();
            client.phase = Phase::Proof;
            let scramble = client.scramble;
            return put_packet(&mut turn.to_client, client.sequence, &auth_switch(plugin, &scramble));
        }
        self.check(client, &login.auth, turn);
    }

    pub(super) fn proof(
        &mut self,
        _facts: Facts,
        client: &mut Client,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        let Some((sequence, payload, length)) = whole(bytes)? else { return Ok(0) };
        client.sequence = sequence.wrapping_add(1);
        self.check(client, payload, turn);
        Ok(length)
    }

    fn check(&mut self, client: &mut Client, proof: &[u8], turn: &mut Turn) {
        let Some(user) = self.config.user.iter().find(|user| user.name == client.user) else {
            return denied(client, true, turn);
        };
        let sha2 = user.iam.is_none() && self.plugin() == "caching_sha2_password";
        let right = match &user.iam {
            Some(_) => token_passes(proof, user, self.config.iam_host.as_deref()),
            None if sha2 => {
                auth::same(
                    proof.strip_suffix(&[0]).unwrap_or(proof),
                    &caching_sha2_proof(&user.password, &client.scramble),
                ) || auth::same(proof, &caching_sha2_proof(&user.password, &client.scramble))
            }
            None => auth::same(proof, &native_proof(&user.password, &client.scramble)),
        };
        if !right {
            return denied(client, !proof.is_empty(), turn);
        }
        if sha2 && !proof.is_empty() {
            // "Fast authentication has succeeded": the proxy knows the password, so it never needs it in full.
            put_packet(&mut turn.to_client, client.sequence, &auth_more(&[3]));
            client.sequence = client.sequence.wrapping_add(1);
        }
        let known = match &client.state.database {
            Some(database) => self.databases.contains(&(client.user.clone(), database.clone())),
            None => true,
        };
        if known {
            self.welcome(client, turn);
        } else {
            client.phase = Phase::Entering;
            turn.borrow = true;
        }
    }

    /// The client's database has been entered, over the connection that it has been lent.
    pub(super) fn entered(
        &mut self,
        client: &mut Client,
        server: Option<&mut Server>,
        turn: &mut Turn,
    ) -> usize {
        let Some(server) = server.filter(|server| server.is_quiet()) else { return 0 };
        if let Some(database) = &client.state.database {
            if self.databases.len() >= super::KEYS {
                self.databases.clear();
            }
            self.databases.insert((client.user.clone(), database.clone()));
        }
        self.welcome(client, turn);
        self.release_if_free(client, server, turn);
        0
    }

    fn welcome(&self, client: &mut Client, turn: &mut Turn) {
        put_packet(&mut turn.to_client, client.sequence, &ok_packet(client.status));
        client.phase = Phase::Ready;
        turn.client_ready = true;
    }

    /// COM_CHANGE_USER: a login on the same connection, with the scramble of the first.
    pub(super) fn change_user(
        &mut self,
        client: &mut Client,
        argument: &[u8],
        turn: &mut Turn,
    ) -> Result<(), WireError> {
        let login = LoginResponse::parse_change_user(argument, client.capabilities)?;
        client.sequence = 1;
        client.forget_session(&mut self.interner);
        if login.collation != 0 {
            client.collation = login.collation;
        }
        let facts = Facts { client_tls: client.tls };
        self.identify(facts, client, login, turn);
        Ok(())
    }
}

fn denied(client: &Client, with_password: bool, turn: &mut Turn) {
    let using = if with_password { "YES" } else { "NO" };
    let text = format!("Access denied for user '{}'@'%' (using password: {using})", client.user);
    error(turn, client.sequence, 1045, "28000", &text);
    turn.auth_failed = true;
    turn.close_client = true;
}

fn token_passes(proof: &[u8], user: &User, host: Option<&str>) -> bool {
    let Some(key) = &user.iam else { return false };
    let Ok(token) = std::str::from_utf8(proof.strip_suffix(&[0]).unwrap_or(proof)) else { return false };
    let expected = Token {
        host,
        user: &user.name,
        region: &key.region,
        access_key_id: &key.access_key_id,
        secret_access_key: &key.secret_access_key,
        now_s: (danki_sys::clock::epoch_ns() / 1_000_000_000) as i64,
    };
    auth::check_token(token, &expected)
}

fn wants_tls(payload: &[u8]) -> bool {
    let bits = u32::from_le_bytes([payload[0], payload[1], payload[2], payload[3]]);
    bits & caps::SSL != 0
}

/// Sequence number, payload, length with header.
type Packet<'a> = (u8, &'a [u8], usize);

/// A whole packet of the login, or not yet.
fn whole(bytes: &[u8]) -> Result<Option<Packet<'_>>, WireError> {
    if header(bytes).is_some_and(|(length, _)| length > LONGEST) {
        return Err(WireError::TooLong("a login"));
    }
    Ok(packet(bytes))
}
