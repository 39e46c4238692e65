//! What a client says first: a login, or a wish for TLS, or that a query be cancelled.

use crate::{Cursor, Error};

/// PostgreSQL refuses longer ones (`MAX_STARTUP_PACKET_LENGTH`).
const LONGEST: usize = 10_000;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const CANCEL: u32 = 80_877_102;

/// The first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Startup {
    /// TLS, please.
    Tls,
    /// GSSAPI encryption, please.
    Gss,
    /// Cancel what runs on that connection.
    Cancel {
        /// Process number that the connection was given.
        process: u32,
        /// The secret that came with it; up to 256 bytes.
        secret: u32,
    },
    /// A login with its parameters.
    Login {
        /// Version: major in the upper half.
        version: u32,
        /// Names and values.
        parameters: Vec<(String, String)>,
    },
}

impl Startup {
    /// Reads the first packet and its length. `None`: more bytes are needed.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Error> {
        let mut cursor = Cursor::new(bytes);
        let Some(length) = cursor.u32_be() else { return Ok(None) };
        let length = length as usize;
        if length > LONGEST {
            return Err(Error::TooLong("the startup packet"));
        }
        if length < 8 {
            return Err(Error::Malformed("the startup packet"));
        }
        let Some(body) = cursor.take(length - 4) else { return Ok(None) };
        let mut cursor = Cursor::new(body);
        let malformed = Error::Malformed("the startup packet");
        let startup = match cursor.u32_be().ok_or(malformed)? {
            SSL => Self::Tls,
            GSS => Self::Gss,
            CANCEL => Self::Cancel {
                process: cursor.u32_be().ok_or(malformed)?,
                secret: cursor.u32_be().ok_or(malformed)?,
            },
            version => Self::Login { version, parameters: parameters(&mut cursor).ok_or(malformed)? },
        };
        Ok(Some((startup, length)))
    }
}

fn parameters(cursor: &mut Cursor<'_>) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    loop {
        let name = cursor.until_zero()?;
        if name.is_empty() {
            return Some(found);
        }
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        found.push((text(name), text(cursor.until_zero()?)));
    }
}

/// Appends a login.
pub fn put_startup<'a>(out: &mut Vec<u8>, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(3_u32 << 16).to_be_bytes());
    for (name, value) in parameters {
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out.extend_from_slice(value.as_bytes());
        out.push(0);
    }
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// A request to cancel, or with the number of [`Startup::Tls`] one for TLS.
pub fn cancel_request(process: u32, secret: u32) -> [u8; 16] {
    let mut out = [0; 16];
    for (at, word) in [16, CANCEL, process, secret].into_iter().enumerate() {
        out[4 * at..4 * at + 4].copy_from_slice(&word.to_be_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn first_packets_are_read() {
        let mut login = Vec::new();
        put_startup(&mut login, [("user", "app"), ("database", "shop")]);
        let parameters = vec![("user".into(), "app".into()), ("database".into(), "shop".into())];
        let expected = Startup::Login { version: 3 << 16, parameters };
        assert_eq!(Startup::parse(&login), Ok(Some((expected, login.len()))));
        assert_eq!(Startup::parse(&login[..9]), Ok(None));
        assert_eq!(
            Startup::parse(&cancel_request(5, 6)),
            Ok(Some((Startup::Cancel { process: 5, secret: 6 }, 16)))
        );
        assert_eq!(Startup::parse(&[0, 0, 0, 8, 4, 210, 22, 47]), Ok(Some((Startup::Tls, 8))));
        assert_eq!(Startup::parse(&[1, 0, 0, 0]), Err(Error::TooLong("the startup packet")));
        assert_eq!(Startup::parse(&[0, 0, 0, 3]), Err(Error::Malformed("the startup packet")));
    }

    proptest! {
        #[test]
        fn arbitrary_first_packets_never_panic(bytes: Vec<u8>) {
            if let Ok(Some((_, length))) = Startup::parse(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
