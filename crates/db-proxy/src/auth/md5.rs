//! MD5 (RFC 1321), which PostgreSQL's oldest kind of password needs and ring does not have.

/// Left rotations of the four rounds.
const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest in hexadecimal.
pub(crate) fn md5_hex(message: &[u8]) -> String {
    let mut state: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() < message.len() + 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let at = padded.len() - 8;
    padded[at..].copy_from_slice(&(message.len() as u64 * 8).to_le_bytes());
    for block in padded.chunks_exact(64) {
        round(&mut state, block);
    }
    state.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
}

/// PostgreSQL's proof: "md5" and the digest of the digest of password and name, and of the salt.
pub(crate) fn postgres_md5_proof(user: &str, password: &str, salt: [u8; 4]) -> String {
    let inner = md5_hex(format!("{password}{user}").as_bytes());
    format!("md5{}", md5_hex(&[inner.as_bytes(), &salt].concat()))
}

fn round(state: &mut [u32; 4], block: &[u8]) {
    let word = |at: usize| {
        u32::from_le_bytes([block[4 * at], block[4 * at + 1], block[4 * at + 2], block[4 * at + 3]])
    };
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64 {
        let (mixed, at) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
            2 => (b ^ c ^ d, (3 * step + 5) % 16),
            _ => (c ^ (b | !d), (7 * step) % 16),
        };
        // The integer part of 2^32 times the sine of the step, as the RFC defines its table.
        let constant = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a.wrapping_add(mixed).wrapping_add(constant).wrapping_add(word(at));
        let turned = sum.rotate_left(ROTATIONS[step / 16][step % 4]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
    }
    for (into, value) in state.iter_mut().zip([a, b, c, d]) {
        *into = into.wrapping_add(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postgres_protocol::authentication::md5_hash;

    /// The test suite of RFC 1321.
    #[test]
    fn digests_are_the_rfc_s() {
        assert_eq!(md5_hex(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(md5_hex(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        let digits = b"12345678901234567890123456789012345678901234567890123456789012345678901234567890";
        assert_eq!(md5_hex(digits), "57edf4a22be3c955ac49da2e2107b67a");
    }

    #[test]
    fn proofs_are_as_clients_make_them() {
        for length in 0..130 {
            let password = "p".repeat(length);
            let expected = md5_hash(b"app", password.as_bytes(), [1, 2, 3, 4]);
            assert_eq!(postgres_md5_proof("app", &password, [1, 2, 3, 4]), expected);
        }
    }
}
