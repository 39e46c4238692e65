//! Deflate, then base64 (RFC 4648 §4).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Of 10: what is gained above 6 is a few per cent, for several times the time.
const LEVEL: u8 = 6;

pub(super) fn packed(bytes: &[u8]) -> String {
    STANDARD.encode(miniz_oxide::deflate::compress_to_vec_zlib(bytes, LEVEL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_smaller_and_whole() {
        let text = "danki ".repeat(1_000);
        let packed = packed(text.as_bytes());
        assert!(packed.len() < text.len() / 20, "{}", packed.len());
        let deflated = STANDARD.decode(packed).expect("base64");
        assert_eq!(
            miniz_oxide::inflate::decompress_to_vec_zlib(&deflated).ok().as_deref(),
            Some(text.as_bytes())
        );
    }
}
