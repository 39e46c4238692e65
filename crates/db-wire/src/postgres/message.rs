//! Messages that the proxy reads or says itself.

use super::HEAD;
use crate::Cursor;

/// Appends a message.
pub fn put_message(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

/// Appends a message whose body `fill` writes.
fn put_with(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    fill(out);
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + HEAD].copy_from_slice(&length.to_be_bytes());
}

/// Appends Query.
pub fn put_query(out: &mut Vec<u8>, sql: &str) {
    put_with(out, b'Q', |out| put_text(out, sql.as_bytes()));
}

/// Appends Parse: a name, and the body's rest as [`parse_parts`] gave it.
pub fn put_parse(out: &mut Vec<u8>, name: &[u8], rest: &[u8]) {
    put_with(out, b'P', |out| {
        put_text(out, name);
        out.extend_from_slice(rest);
    });
}

/// Appends Close of a statement.
pub fn put_close(out: &mut Vec<u8>, name: &[u8]) {
    put_with(out, b'C', |out| {
        out.push(b'S');
        put_text(out, name);
    });
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Parse's name, its SQL, and the body after the name.
pub fn parse_parts(body: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let mut cursor = Cursor::new(body);
    let name = cursor.until_zero()?;
    let rest = cursor.rest();
    let sql = cursor.until_zero()?;
    Some((name, sql, rest))
}

/// Bind's portal and statement.
pub fn bind_names(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut cursor = Cursor::new(body);
    Some((cursor.until_zero()?, cursor.until_zero()?))
}

/// The kind (`S` or `P`) and name of Describe or Close.
pub fn close_target(body: &[u8]) -> Option<(u8, &[u8])> {
    let mut cursor = Cursor::new(body);
    Some((cursor.u8()?, cursor.until_zero()?))
}

/// Appends Bind with another statement's name. None if the body is malformed.
pub fn rename_bind(out: &mut Vec<u8>, body: &[u8], name: &[u8]) -> Option<()> {
    let mut cursor = Cursor::new(body);
    let portal = cursor.until_zero()?;
    cursor.until_zero()?;
    put_with(out, b'B', |out| {
        put_text(out, portal);
        put_text(out, name);
        out.extend_from_slice(cursor.rest());
    });
    Some(())
}

/// Appends Describe of a statement with another name.
pub fn rename_describe(out: &mut Vec<u8>, name: &[u8]) {
    put_with(out, b'D', |out| {
        out.push(b'S');
        put_text(out, name);
    });
}

/// ParameterStatus: name and value.
pub fn parameter_status(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut cursor = Cursor::new(body);
    Some((cursor.until_zero()?, cursor.until_zero()?))
}

/// CommandComplete's tag.
pub fn command_tag(body: &[u8]) -> Option<&[u8]> {
    Cursor::new(body).until_zero()
}

/// An ErrorResponse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorFields {
    /// SQLSTATE.
    pub code: String,
    /// Text.
    pub message: String,
}

impl ErrorFields {
    /// Reads ErrorResponse's or NoticeResponse's body.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(body);
        let (mut code, mut message) = (String::new(), String::new());
        loop {
            let field = cursor.u8()?;
            if field == 0 {
                return Some(Self { code, message });
            }
            let text = String::from_utf8_lossy(cursor.until_zero()?).into_owned();
            match field {
                b'C' => code = text,
                b'M' => message = text,
                _ => {}
            }
        }
    }
}

/// Appends ErrorResponse.
pub fn error_response(out: &mut Vec<u8>, severity: &str, code: &str, message: &str, hint: &str) {
    put_with(out, b'E', |out| {
        for (field, text) in [(b'S', severity), (b'V', severity), (b'C', code), (b'M', message), (b'H', hint)]
        {
            if !text.is_empty() {
                out.push(field);
                put_text(out, text.as_bytes());
            }
        }
        out.push(0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body(out: &[u8]) -> &[u8] {
        let (_, length) = super::super::head(out).expect("a whole message");
        assert_eq!(length, out.len());
        &out[HEAD..]
    }

    #[test]
    fn names_are_replaced() {
        let mut out = Vec::new();
        put_parse(&mut out, b"danki_1", b"SELECT $1\0\0\0");
        assert_eq!(
            parse_parts(body(&out)),
            Some((&b"danki_1"[..], &b"SELECT $1"[..], &b"SELECT $1\0\0\0"[..]))
        );
        let mut renamed = Vec::new();
        rename_bind(&mut renamed, b"portal\0old\0\x00\x01rest", b"new").expect("well formed");
        assert_eq!(body(&renamed), b"portal\0new\0\x00\x01rest");
        assert_eq!(bind_names(body(&renamed)), Some((&b"portal"[..], &b"new"[..])));
        let mut described = Vec::new();
        rename_describe(&mut described, b"x");
        assert_eq!(close_target(body(&described)), Some((b'S', &b"x"[..])));
    }

    #[test]
    fn errors_round_trip() {
        let mut out = Vec::new();
        error_response(&mut out, "FATAL", "08000", "Timed-out", "");
        let expected = ErrorFields { code: "08000".into(), message: "Timed-out".into() };
        assert_eq!(ErrorFields::parse(body(&out)), Some(expected));
    }

    proptest! {
        #[test]
        fn arbitrary_bodies_never_panic(bytes: Vec<u8>) {
            let _any = (parse_parts(&bytes), bind_names(&bytes), close_target(&bytes), ErrorFields::parse(&bytes));
            let _any = (parameter_status(&bytes), command_tag(&bytes), rename_bind(&mut Vec::new(), &bytes, b"x"));
        }
    }
}
