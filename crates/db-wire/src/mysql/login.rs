//! The packets of the login, both ways. Source: "Connection Phase" of MySQL's protocol documentation.

use super::caps;
use crate::cursor::{put_lenenc, put_lenenc_bytes};
use crate::{Cursor, Error};

/// Length of a scramble.
const SCRAMBLE: usize = 20;

/// What the server says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// As `SELECT VERSION()` would say.
    pub version: String,
    /// The connection's number, which `KILL` takes.
    pub thread: u32,
    /// Random bytes of this login.
    pub scramble: [u8; SCRAMBLE],
    /// Capabilities offered.
    pub caps: u32,
    /// Default collation.
    pub collation: u8,
    /// Status bits.
    pub status: u16,
    /// Authentication that is used unless the client asks for another.
    pub plugin: String,
}

impl Greeting {
    /// The packet's payload.
    pub fn build(&self) -> Vec<u8> {
        let caps = self.caps.to_le_bytes();
        let mut out = vec![10];
        out.extend_from_slice(self.version.as_bytes());
        out.push(0);
        out.extend_from_slice(&self.thread.to_le_bytes());
        out.extend_from_slice(&self.scramble[..8]);
        out.push(0);
        out.extend_from_slice(&caps[..2]);
        out.push(self.collation);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.extend_from_slice(&caps[2..]);
        out.push(SCRAMBLE as u8 + 1);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(&self.scramble[8..]);
        out.push(0);
        out.extend_from_slice(self.plugin.as_bytes());
        out.push(0);
        out
    }

    /// Reads the payload. Servers older than 4.1 are not understood.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let short = Error::Short("the server's greeting");
        let mut cursor = Cursor::new(payload);
        if cursor.u8().ok_or(short)? != 10 {
            return Err(Error::Malformed("the server's greeting"));
        }
        let version = text(cursor.until_zero().ok_or(short)?);
        let thread = cursor.u32_le().ok_or(short)?;
        let mut scramble = [0; SCRAMBLE];
        scramble[..8].copy_from_slice(cursor.take(8).ok_or(short)?);
        cursor.take(1).ok_or(short)?;
        let low = cursor.u16_le().ok_or(short)?;
        let collation = cursor.u8().ok_or(short)?;
        let status = cursor.u16_le().ok_or(short)?;
        let high = cursor.u16_le().ok_or(short)?;
        cursor.take(11).ok_or(short)?;
        scramble[8..].copy_from_slice(cursor.take(12).ok_or(short)?);
        let mut tail = cursor;
        let plugin = match tail.take(1).and_then(|_| tail.until_zero()) {
            Some(name) if !name.is_empty() => text(name),
            _ => "mysql_native_password".to_owned(),
        };
        let caps = u32::from(low) | u32::from(high) << 16;
        Ok(Self { version, thread, scramble, caps, collation, status, plugin })
    }
}

/// What the client answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginResponse {
    /// Capabilities wanted, of those offered.
    pub caps: u32,
    /// Largest packet that it wants to send.
    pub max_packet: u32,
    /// Collation of the connection.
    pub collation: u8,
    /// Account.
    pub user: String,
    /// The plugin's first answer.
    pub auth: Vec<u8>,
    /// Database to start in.
    pub database: Option<String>,
    /// Plugin that `auth` is for.
    pub plugin: String,
}

impl LoginResponse {
    /// Reads the payload of the packet after the greeting (after TLS, if there is).
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let short = Error::Short("the client's login");
        let mut cursor = Cursor::new(payload);
        let caps = cursor.u32_le().ok_or(short)?;
        if caps & caps::PROTOCOL_41 == 0 {
            return Err(Error::Malformed("a login older than MySQL 4.1"));
        }
        let max_packet = cursor.u32_le().ok_or(short)?;
        let collation = cursor.u8().ok_or(short)?;
        cursor.take(23).ok_or(short)?;
        let user = text(cursor.until_zero().ok_or(short)?);
        let auth = if caps & caps::PLUGIN_AUTH_LENENC != 0 {
            cursor.lenenc_bytes().ok_or(short)?
        } else if caps & caps::SECURE_CONNECTION != 0 {
            let length = cursor.u8().ok_or(short)?;
            cursor.take(usize::from(length)).ok_or(short)?
        } else {
            cursor.until_zero().ok_or(short)?
        };
        let auth = auth.to_vec();
        let (database, plugin) = database_and_plugin(&mut cursor, caps)?;
        Ok(Self { caps, max_packet, collation, user, auth, database, plugin })
    }

    /// Reads what follows the command byte of COM_CHANGE_USER, under the capabilities of the first login.
    pub fn parse_change_user(payload: &[u8], caps: u32) -> Result<Self, Error> {
        let short = Error::Short("COM_CHANGE_USER");
        let mut cursor = Cursor::new(payload);
        let user = text(cursor.until_zero().ok_or(short)?);
        let length = cursor.u8().ok_or(short)?;
        let auth = cursor.take(usize::from(length)).ok_or(short)?.to_vec();
        let database = text(cursor.until_zero().ok_or(short)?);
        let collation = cursor.u16_le().map_or(0, |wide| wide as u8);
        let plugin = match cursor.until_zero() {
            Some(name) if caps & caps::PLUGIN_AUTH != 0 => text(name),
            _ => "mysql_native_password".to_owned(),
        };
        let database = Some(database).filter(|name| !name.is_empty());
        Ok(Self { caps, max_packet: 0, collation, user, auth, database, plugin })
    }

    /// The packet's payload.
    pub fn build(&self) -> Vec<u8> {
        let mut out = ssl_request(self.caps, self.max_packet, self.collation);
        out.extend_from_slice(self.user.as_bytes());
        out.push(0);
        if self.caps & caps::PLUGIN_AUTH_LENENC != 0 {
            put_lenenc_bytes(&mut out, &self.auth);
        } else {
            put_lenenc(&mut out, self.auth.len().min(250) as u64);
            out.extend_from_slice(&self.auth[..self.auth.len().min(250)]);
        }
        if self.caps & caps::CONNECT_WITH_DB != 0 {
            out.extend_from_slice(self.database.as_deref().unwrap_or_default().as_bytes());
            out.push(0);
        }
        if self.caps & caps::PLUGIN_AUTH != 0 {
            out.extend_from_slice(self.plugin.as_bytes());
            out.push(0);
        }
        out
    }
}

fn database_and_plugin(cursor: &mut Cursor<'_>, caps: u32) -> Result<(Option<String>, String), Error> {
    let short = Error::Short("the client's login");
    let database = if caps & caps::CONNECT_WITH_DB != 0 {
        Some(text(up_to_zero_or_end(cursor).ok_or(short)?)).filter(|name| !name.is_empty())
    } else {
        None
    };
    let plugin = if caps & caps::PLUGIN_AUTH != 0 {
        text(up_to_zero_or_end(cursor).ok_or(short)?)
    } else {
        "mysql_native_password".to_owned()
    };
    Ok((database, plugin))
}

/// Some clients leave the last zero away.
fn up_to_zero_or_end<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let mut probe = *cursor;
    match probe.until_zero() {
        Some(found) => {
            *cursor = probe;
            Some(found)
        }
        None => cursor.take(cursor.rest().len()),
    }
}

/// The packet that asks for TLS: the head of a login. Also the head that [`LoginResponse::build`] continues.
pub fn ssl_request(caps: u32, max_packet: u32, collation: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&caps.to_le_bytes());
    out.extend_from_slice(&max_packet.to_le_bytes());
    out.push(collation);
    out.extend_from_slice(&[0; 23]);
    out
}

/// The server wants another plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSwitch {
    /// Its name.
    pub plugin: String,
    /// Its random bytes, without the closing zero.
    pub data: Vec<u8>,
}

impl AuthSwitch {
    /// Reads a payload that starts with 0xFE.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(payload);
        let short = Error::Short("the server's AuthSwitchRequest");
        cursor.u8().ok_or(short)?;
        let plugin = text(cursor.until_zero().ok_or(short)?);
        let data = cursor.rest();
        let data = data.strip_suffix(&[0]).unwrap_or(data).to_vec();
        Ok(Self { plugin, data })
    }
}

/// Payload of AuthSwitchRequest.
pub fn auth_switch(plugin: &str, scramble: &[u8]) -> Vec<u8> {
    let mut out = vec![0xFE];
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
    out.extend_from_slice(scramble);
    out.push(0);
    out
}

/// Payload of AuthMoreData.
pub fn auth_more(data: &[u8]) -> Vec<u8> {
    [&[1], data].concat()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn greeting_round_trips() {
        let greeting = Greeting {
            version: "8.0.36".into(),
            thread: 7,
            scramble: *b"01234567890123456789",
            caps: caps::PROTOCOL_41 | caps::PLUGIN_AUTH | caps::SECURE_CONNECTION,
            collation: 45,
            status: 2,
            plugin: "caching_sha2_password".into(),
        };
        assert_eq!(Greeting::parse(&greeting.build()), Ok(greeting));
    }

    proptest! {
        #[test]
        fn logins_round_trip(user in "[a-z]{0,20}", auth in prop::collection::vec(any::<u8>(), 0..600), db in "[a-z]{1,9}") {
            let caps = caps::PROTOCOL_41 | caps::PLUGIN_AUTH | caps::PLUGIN_AUTH_LENENC | caps::CONNECT_WITH_DB;
            let login = LoginResponse {
                caps, max_packet: 1 << 24, collation: 45, user, auth, database: Some(db), plugin: "mysql_clear_password".into(),
            };
            prop_assert_eq!(LoginResponse::parse(&login.build()), Ok(login));
        }

        #[test]
        fn arbitrary_logins_never_panic(bytes: Vec<u8>) {
            let _any = (LoginResponse::parse(&bytes), Greeting::parse(&bytes), AuthSwitch::parse(&bytes));
            let _any = LoginResponse::parse_change_user(&bytes, u32::MAX);
        }
    }
}
