//! OK and ERR packets, with what MySQL's session trackers put into them.

use super::{caps, status};
use crate::cursor::put_lenenc_bytes;
use crate::{Cursor, cursor};

/// An OK packet, also one that ends rows (first byte 0xFE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// First byte: 0x00, or 0xFE after rows.
    pub head: u8,
    /// Rows changed.
    pub affected: u64,
    /// What AUTO_INCREMENT gave.
    pub insert_id: u64,
    /// Status bits.
    pub status: u16,
    /// Number of warnings.
    pub warnings: u16,
    info: &'a [u8],
    tracked: &'a [u8],
}

/// One entry of the session trackers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked<'a> {
    /// A system variable has this value now.
    Variable(&'a [u8], &'a [u8]),
    /// The default database is this now.
    Schema(&'a [u8]),
    /// Something about the session has changed.
    State,
    /// Another tracker.
    Other(u8),
}

impl<'a> OkPacket<'a> {
    /// Reads a payload, under the capabilities of the connection it came over.
    pub fn parse(payload: &'a [u8], capabilities: u32) -> Option<Self> {
        let mut cursor = Cursor::new(payload);
        let head = cursor.u8().filter(|head| matches!(head, 0 | 0xFE))?;
        let affected = cursor.lenenc()?;
        let insert_id = cursor.lenenc()?;
        let status = cursor.u16_le()?;
        let warnings = cursor.u16_le()?;
        let (mut info, mut tracked): (&[u8], &[u8]) = (cursor.rest(), &[]);
        if capabilities & caps::SESSION_TRACK != 0 {
            info = if cursor.is_empty() { &[] } else { cursor.lenenc_bytes()? };
            if status & status::SESSION_STATE_CHANGED != 0 && !cursor.is_empty() {
                tracked = cursor.lenenc_bytes()?;
            }
        }
        Some(Self { head, affected, insert_id, status, warnings, info, tracked })
    }

    /// What the trackers say, as far as it can be read.
    pub fn tracked(&self) -> impl Iterator<Item = Tracked<'a>> {
        let mut entries = Cursor::new(self.tracked);
        let mut inside: Option<Cursor<'a>> = None;
        std::iter::from_fn(move || {
            loop {
                if let Some(mut variables) = inside.take().filter(|rest| !rest.is_empty()) {
                    let found = Tracked::Variable(variables.lenenc_bytes()?, variables.lenenc_bytes()?);
                    inside = Some(variables);
                    return Some(found);
                }
                let kind = entries.u8()?;
                let mut data = Cursor::new(entries.lenenc_bytes()?);
                match kind {
                    0 => inside = Some(data),
                    1 => return Some(Tracked::Schema(data.lenenc_bytes()?)),
                    2 => return Some(Tracked::State),
                    other => return Some(Tracked::Other(other)),
                }
            }
        })
    }

    /// The payload for a client with these capabilities: without trackers if it does not know them.
    pub fn rebuild(&self, capabilities: u32) -> Vec<u8> {
        let knows = capabilities & caps::SESSION_TRACK != 0;
        let status = if knows { self.status } else { self.status & !status::SESSION_STATE_CHANGED };
        let mut out = vec![self.head];
        cursor::put_lenenc(&mut out, self.affected);
        cursor::put_lenenc(&mut out, self.insert_id);
        out.extend_from_slice(&status.to_le_bytes());
        out.extend_from_slice(&self.warnings.to_le_bytes());
        if !knows {
            // The documentation says "up to the end", both servers write a length, and clients read one.
            if !self.info.is_empty() {
                put_lenenc_bytes(&mut out, self.info);
            }
            return out;
        }
        if !self.info.is_empty() || !self.tracked.is_empty() {
            put_lenenc_bytes(&mut out, self.info);
        }
        if status & status::SESSION_STATE_CHANGED != 0 {
            put_lenenc_bytes(&mut out, self.tracked);
        }
        out
    }
}

/// Payload of an OK packet of the proxy's own.
pub fn ok_packet(status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    vec![0, 0, 0, low, high, 0, 0]
}

/// An ERR packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrPacket {
    /// MySQL's number.
    pub code: u16,
    /// SQLSTATE.
    pub state: String,
    /// Text.
    pub message: String,
}

impl ErrPacket {
    /// Reads a payload that starts with 0xFF.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(payload);
        cursor.u8().filter(|&head| head == 0xFF)?;
        let code = cursor.u16_le()?;
        let (state, message) = match cursor.rest() {
            [b'#', rest @ ..] if rest.len() >= 5 => rest.split_at(5),
            rest => (&b"HY000"[..], rest),
        };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Some(Self { code, state: text(state), message: text(message) })
    }
}

/// Payload of an ERR packet.
pub fn err_packet(code: u16, state: &str, message: &str) -> Vec<u8> {
    let mut out = vec![0xFF];
    out.extend_from_slice(&code.to_le_bytes());
    out.push(b'#');
    out.extend_from_slice(state.as_bytes());
    out.extend_from_slice(message.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `SET autocommit=0` and `USE test` as MySQL 8 answers them: variable, schema, state.
    fn tracked_ok() -> Vec<u8> {
        let mut entries = vec![0, 15, 10];
        entries.extend_from_slice(b"autocommit\x03OFF");
        entries.extend_from_slice(&[1, 5, 4]);
        entries.extend_from_slice(b"test");
        entries.extend_from_slice(&[2, 2, 1, b'1', 9, 0]);
        let mut out = vec![0, 0, 0, 0, 0x40, 0, 0, 0];
        put_lenenc_bytes(&mut out, &entries);
        out
    }

    #[test]
    fn trackers_are_read() {
        let payload = tracked_ok();
        let ok = OkPacket::parse(&payload, caps::SESSION_TRACK).expect("well formed");
        let found: Vec<_> = ok.tracked().collect();
        let expected = [
            Tracked::Variable(b"autocommit", b"OFF"),
            Tracked::Schema(b"test"),
            Tracked::State,
            Tracked::Other(9),
        ];
        assert_eq!(found, expected);
        assert_eq!(ok.rebuild(caps::SESSION_TRACK), payload);
        assert_eq!(ok.rebuild(0), [0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn errors_round_trip() {
        let payload = err_packet(9501, "HY000", "Timed-out");
        let expected = ErrPacket { code: 9501, state: "HY000".into(), message: "Timed-out".into() };
        assert_eq!(ErrPacket::parse(&payload), Some(expected));
    }

    proptest! {
        #[test]
        fn arbitrary_packets_never_panic(bytes: Vec<u8>, capabilities: u32) {
            if let Some(ok) = OkPacket::parse(&bytes, capabilities) {
                let _all: Vec<_> = ok.tracked().collect();
                let _again = ok.rebuild(0);
            }
            let _any = ErrPacket::parse(&bytes);
        }
    }
}
