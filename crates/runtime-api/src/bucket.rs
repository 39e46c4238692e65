//! How fast a streamed response may go: a token bucket (`lambda-platform.md` §1.9). Pure.

/// Goes at once.
pub const BURST_BYTES: u64 = 6 * 1024 * 1024;
/// Beyond the burst.
pub const BYTES_PER_SECOND: u64 = 2 * 1024 * 1024;
/// Longest streamed response.
pub const STREAM_BYTES_MAX: u64 = 200 * 1024 * 1024;

/// See the module.
#[derive(Debug)]
pub struct Bucket {
    /// Bytes that may go at `at_ns`; negative while bytes that were let go are still being paid for.
    tokens: i64,
    at_ns: u64,
}

impl Bucket {
    /// Full.
    pub fn new(now_ns: u64) -> Bucket {
        Bucket { tokens: BURST_BYTES as i64, at_ns: now_ns }
    }

    /// Takes `bytes` (at most a burst) and tells how long to wait before they may go, in ns.
    pub fn take(&mut self, now_ns: u64, bytes: usize) -> u64 {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns);
        let earned = u128::from(elapsed_ns) * u128::from(BYTES_PER_SECOND) / 1_000_000_000;
        // Only whole bytes are earned; the rest of the time stays on the account.
        self.at_ns += (earned * 1_000_000_000 / u128::from(BYTES_PER_SECOND)) as u64;
        let earned = i64::try_from(earned).unwrap_or(i64::MAX);
        self.tokens = self.tokens.saturating_add(earned).min(BURST_BYTES as i64) - bytes as i64;
        match u64::try_from(-self.tokens) {
            Ok(debt) => debt * 1_000_000_000 / BYTES_PER_SECOND,
            Err(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_burst_is_free_and_the_rest_is_not() {
        let mut bucket = Bucket::new(0);
        assert_eq!(bucket.take(0, BURST_BYTES as usize), 0);
        assert_eq!(bucket.take(0, BYTES_PER_SECOND as usize), 1_000_000_000);
        assert_eq!(bucket.take(1_000_000_000, BYTES_PER_SECOND as usize / 2), 500_000_000);
        assert_eq!(bucket.take(60_000_000_000, BURST_BYTES as usize), 0, "full again");
    }

    proptest! {
        #[test]
        fn a_sender_that_waits_never_exceeds_the_rate(chunks in prop::collection::vec((1_usize..200_000, 0_u64..50_000_000), 1..300)) {
            let (mut bucket, mut now, mut sent) = (Bucket::new(0), 0_u64, 0_u64);
            for (bytes, pause) in chunks {
                now += pause;
                now += bucket.take(now, bytes);
                sent += bytes as u64;
                let allowed = BURST_BYTES + (u128::from(now) * u128::from(BYTES_PER_SECOND) / 1_000_000_000) as u64;
                prop_assert!(sent <= allowed + 1, "{} bytes after {} ns", sent, now);
            }
        }
    }
}
