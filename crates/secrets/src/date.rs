//! Dates as text: SigV4's, RFC 3339 as Go prints it, and the log's. Days to a date by Howard Hinnant's `civil_from_days`, to which
//! the Gregorian calendar is periodic: no tables, no loops.

use std::time::Duration;

/// A moment in UTC, in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utc {
    /// Year, four digits for any clock one meets.
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
    /// 0 to 23.
    pub hour: u64,
    /// 0 to 59.
    pub minute: u64,
    /// 0 to 59.
    pub second: u64,
    /// 0 to 999.
    pub milli: u32,
}

impl Utc {
    /// The date that a duration since 1970-01-01 UTC stands for.
    pub fn of(epoch: Duration) -> Utc {
        let seconds = epoch.as_secs();
        let days = seconds / 86_400 + 719_468;
        let era = days / 146_097;
        let day_of_era = days % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Utc {
            year: year_of_era + era * 400 + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            hour: seconds / 3_600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            milli: epoch.subsec_millis(),
        }
    }

    /// `20150830T123600Z`, SigV4's.
    pub fn basic(self) -> String {
        let Utc { year, month, day, hour, minute, second, .. } = self;
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }

    /// `2022/11/16 08:22:40`, as Go's `log` has it.
    pub fn log(self) -> String {
        let Utc { year, month, day, hour, minute, second, .. } = self;
        format!("{year:04}/{month:02}/{day:02} {hour:02}:{minute:02}:{second:02}")
    }

    /// `2022-11-16T08:22:40.5Z`, as Go's JSON has it: no zeros at the end of the fraction.
    pub fn rfc3339(self) -> String {
        let Utc { year, month, day, hour, minute, second, milli } = self;
        let whole = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        match milli {
            0 => format!("{whole}Z"),
            _ => format!("{}Z", format!("{whole}.{milli:03}").trim_end_matches('0')),
        }
    }
}

/// Seconds since the epoch of an HTTP date (`Wed, 16 Nov 2022 08:22:40 GMT`), the form that servers must send.
pub fn parse_http(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next().filter(|name| name.len() == 3)?;
    let month = u64::try_from(MONTHS.find(month)? / 3 + 1).ok()?;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if day > 31 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // The inverse of `of`: years start in March, so that the leap day is their last.
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_they_should() {
        let check = |millis: u64, basic: &str, rfc3339: &str| {
            let utc = Utc::of(Duration::from_millis(millis));
            assert_eq!((utc.basic().as_str(), utc.rfc3339().as_str()), (basic, rfc3339));
        };
        check(0, "19700101T000000Z", "1970-01-01T00:00:00Z");
        check(1_440_938_160_000, "20150830T123600Z", "2015-08-30T12:36:00Z");
        check(1_668_586_960_362, "20221116T082240Z", "2022-11-16T08:22:40.362Z");
        check(1_668_586_960_500, "20221116T082240Z", "2022-11-16T08:22:40.5Z");
        check(951_782_400_000, "20000229T000000Z", "2000-02-29T00:00:00Z");
        check(4_107_542_399_000, "21000228T235959Z", "2100-02-28T23:59:59Z");
        assert_eq!(Utc::of(Duration::from_secs(1_668_586_960)).log(), "2022/11/16 08:22:40");
    }

    #[test]
    fn http_dates_are_read_back() {
        assert_eq!(parse_http("Wed, 16 Nov 2022 08:22:40 GMT"), Some(1_668_586_960));
        assert_eq!(parse_http("Tue, 29 Feb 2000 00:00:00 GMT"), Some(951_782_400));
        for odd in [
            "",
            "Wed",
            "Wed, 16 Foo 2022 08:22:40 GMT",
            "Wed, 99 Nov 2022 08:22:40 GMT",
            "Thu, 1 Jan 1969 0:0:0",
        ] {
            assert_eq!(parse_http(odd), None, "{odd}");
        }
        assert_eq!(parse_http("x, 0 Jan 1970 00:00:00 GMT"), None);
    }
}
