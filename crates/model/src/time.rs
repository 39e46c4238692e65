//! Calendar arithmetic, so that layer 0 can write dates without a clock or a dependency.

/// A UTC date and time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year, Gregorian.
    pub year: u64,
    /// Month, 1 to 12.
    pub month: u64,
    /// Day of the month, 1 to 31.
    pub day: u64,
    /// Hour, 0 to 23.
    pub hour: u64,
    /// Minute, 0 to 59.
    pub minute: u64,
    /// Second, 0 to 59.
    pub second: u64,
    /// Millisecond, 0 to 999.
    pub millisecond: u64,
}

const MS_PER_DAY: u64 = 86_400_000;

/// The civil time of `epoch_ms` (ms since 1970-01-01 UTC).
///
/// Days are counted from 1 March of year 0, so that the leap day is the last of its year; 400 years repeat exactly.
pub fn civil(epoch_ms: u64) -> Civil {
    let days = epoch_ms / MS_PER_DAY + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let ms = epoch_ms % MS_PER_DAY;
    Civil {
        year: era * 400 + year_of_era + u64::from(month <= 2),
        month,
        day: day_of_year - (153 * march_month + 2) / 5 + 1,
        hour: ms / 3_600_000,
        minute: ms / 60_000 % 60,
        second: ms / 1_000 % 60,
        millisecond: ms % 1_000,
    }
}

/// `2025-11-24T10:11:12.123Z`.
pub fn iso(epoch_ms: u64) -> String {
    let Civil { year, month, day, hour, minute, second, millisecond } = civil(epoch_ms);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_instants() {
        for (epoch_ms, expect) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_000_000_000_123, "2001-09-09T01:46:40.123Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(epoch_ms), expect);
        }
    }

    proptest! {
        #[test]
        fn the_next_day_is_one_day_later(day in 0_u64..200_000) {
            let (a, b) = (civil(day * MS_PER_DAY), civil((day + 1) * MS_PER_DAY));
            let within = (b.year, b.month, b.day) == (a.year, a.month, a.day + 1);
            let month = a.day >= 28 && (b.year, b.month, b.day) == (a.year, a.month + 1, 1);
            let year = (a.month, a.day) == (12, 31) && (b.year, b.month, b.day) == (a.year + 1, 1, 1);
            prop_assert!(within || month || year, "{a:?} {b:?}");
        }
    }
}
