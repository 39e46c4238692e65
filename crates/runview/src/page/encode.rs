//! Deflate, then base64 (RFC 4648 §4).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Of 10: what is gained above 6 is a few per cent, for several times the time.
const LEVEL: u8 = 6;

pub(super) fn packed(bytes: &[u8]) -> String {
    base64(&miniz_oxide::deflate::compress_to_vec_zlib(bytes, LEVEL))
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for n in 0..4 {
            let digit = usize::try_from(bits >> (18 - 6 * n) & 63).expect("six bits");
            text.push(if n <= chunk.len() { char::from(ALPHABET[digit]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_its_rfc() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn what_is_packed_is_smaller_and_whole() {
        let text = "danki ".repeat(1_000);
        let packed = packed(text.as_bytes());
        assert!(packed.len() < text.len() / 20, "{}", packed.len());
    }
}
