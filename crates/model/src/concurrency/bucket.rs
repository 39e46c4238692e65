//! A token bucket: a rate that may be exceeded in a burst, and refills without a step.

/// Tokens, counted in billionths so that nanoseconds times a rate stay exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    per_s: u32,
    capacity: u32,
    level: u64,
    at_ns: u64,
}

const TOKEN: u64 = 1_000_000_000;

impl Bucket {
    /// A full bucket.
    pub fn full(per_s: u32, capacity: u32, now_ns: u64) -> Bucket {
        Bucket { per_s, capacity, level: u64::from(capacity) * TOKEN, at_ns: now_ns }
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now_ns: u64) -> bool {
        self.refill(now_ns);
        let enough = self.level >= TOKEN;
        self.level -= if enough { TOKEN } else { 0 };
        enough
    }

    /// Other limits from now on; what is in it stays, up to the new capacity.
    pub fn resize(&mut self, per_s: u32, capacity: u32, now_ns: u64) {
        self.refill(now_ns);
        let grown = u64::from(capacity.saturating_sub(self.capacity)) * TOKEN;
        (self.per_s, self.capacity) = (per_s, capacity);
        self.level = (self.level + grown).min(u64::from(capacity) * TOKEN);
    }

    /// When there is a token; `None`: never.
    pub fn next_ns(&self) -> Option<u64> {
        let missing = TOKEN.saturating_sub(self.level);
        match (missing, self.per_s) {
            (0, _) => Some(self.at_ns),
            (_, 0) => None,
            (missing, per_s) => Some(self.at_ns.saturating_add(missing.div_ceil(u64::from(per_s)))),
        }
    }

    fn refill(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.at_ns);
        self.at_ns = self.at_ns.max(now_ns);
        let more = passed.saturating_mul(u64::from(self.per_s));
        self.level = self.level.saturating_add(more).min(u64::from(self.capacity) * TOKEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let mut bucket = Bucket::full(100, 1_000, 0);
        assert_eq!((0..2_000).filter(|_| bucket.take(0)).count(), 1_000);
        assert_eq!(bucket.next_ns(), Some(10_000_000));
        assert!(!bucket.take(9_999_999));
        assert!(bucket.take(10_000_000));
        // Ten seconds refill what ten seconds took; a day does not more.
        assert_eq!((0..2_000).filter(|_| bucket.take(86_400_000_000_000)).count(), 1_000);
    }

    #[test]
    fn nothing_ever_comes_of_no_rate() {
        let mut bucket = Bucket::full(0, 0, 0);
        assert!(!bucket.take(u64::MAX));
        assert_eq!(bucket.next_ns(), None);
        bucket.resize(10, 10, u64::MAX);
        assert!(bucket.take(u64::MAX));
    }
}
