//! Reading from a slice without panics.

/// A position in a slice. Each reader gives `None` at the end, and the position is then unspecified.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all has been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Two bytes, little endian.
    pub fn u16_le(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little endian.
    pub fn u32_le(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Two bytes, big endian.
    pub fn u16_be(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes, big endian.
    pub fn u32_be(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Bytes up to a zero, which is read too.
    pub fn until_zero(&mut self) -> Option<&'a [u8]> {
        let length = self.rest.iter().position(|&byte| byte == 0)?;
        let text = self.take(length)?;
        self.take(1)?;
        Some(text)
    }

    /// MySQL's length-encoded integer; the marker of NULL (0xFB) and 0xFF are `None`.
    pub fn lenenc(&mut self) -> Option<u64> {
        match self.u8()? {
            small @ 0..=0xFA => Some(u64::from(small)),
            0xFC => self.u16_le().map(u64::from),
            0xFD => self.take(3).map(|b| u64::from(u32::from_le_bytes([b[0], b[1], b[2], 0]))),
            0xFE => self.array().map(u64::from_le_bytes),
            _ => None,
        }
    }

    /// MySQL's length-encoded string.
    pub fn lenenc_bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.lenenc()?).ok()?;
        self.take(length)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

/// Appends MySQL's length-encoded integer.
pub(crate) fn put_lenenc(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xFA => out.push(bytes[0]),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends MySQL's length-encoded string.
pub(crate) fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn length_encoding_round_trips(value: u64, text: Vec<u8>) {
            let mut out = Vec::new();
            put_lenenc(&mut out, value);
            put_lenenc_bytes(&mut out, &text);
            let mut cursor = Cursor::new(&out);
            prop_assert_eq!(cursor.lenenc(), Some(value));
            prop_assert_eq!(cursor.lenenc_bytes(), Some(&text[..]));
            prop_assert!(cursor.is_empty());
        }
    }

    #[test]
    fn ends_are_none() {
        assert_eq!(Cursor::new(&[0xFC, 1]).lenenc(), None);
        assert_eq!(Cursor::new(&[0xFB]).lenenc(), None);
        assert_eq!(Cursor::new(&[5, 1]).lenenc_bytes(), None);
        assert_eq!(Cursor::new(b"abc").until_zero(), None);
        assert_eq!(Cursor::new(&[0xFE, 255, 255, 255, 255, 255, 255, 255, 255, 1]).lenenc_bytes(), None);
    }
}
