//! IAM tokens: a URL that is presigned for `rds-db` (SigV4), without its scheme. Checked here because what signs requests brings a
//! whole SDK; its output is the oracle of the test.

use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};

/// Tokens are good for 15 minutes (RDS guide, IAM database authentication).
const LIFETIME_S: i64 = 900;
/// A signer's clock may be ahead by this much.
const AHEAD_S: i64 = 300;

/// What a token must be for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    /// `host:port`; None: whatever the token says.
    pub host: Option<&'a str>,
    pub user: &'a str,
    pub region: &'a str,
    pub access_key_id: &'a str,
    pub secret_access_key: &'a str,
    pub now_s: i64,
}

/// Whether `token` was signed with that key, for that user, and not too long ago.
pub(crate) fn check_token(token: &str, expected: &Token<'_>) -> bool {
    verify(token, expected).is_some()
}

fn verify(token: &str, expected: &Token<'_>) -> Option<()> {
    let (host, query) = token.split_once("/?")?;
    if expected.host.is_some_and(|wanted| !wanted.eq_ignore_ascii_case(host)) {
        return None;
    }
    let (signed, signature) = query.rsplit_once("&X-Amz-Signature=")?;
    let value = |name: &str| signed.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let date = value("X-Amz-Date")?;
    let day = date.get(..8)?;
    let scope = format!("{day}/{}/rds-db/aws4_request", expected.region);
    let credential = format!("{}%2F{}", expected.access_key_id, scope.replace('/', "%2F"));
    let right = value("Action") == Some("connect")
        && value("DBUser").and_then(decode).as_deref() == Some(expected.user)
        && value("X-Amz-Algorithm") == Some("AWS4-HMAC-SHA256")
        && value("X-Amz-Credential") == Some(&credential)
        && value("X-Amz-SignedHeaders") == Some("host");
    let age_s = expected.now_s - seconds(date)?;
    if !right || !(-AHEAD_S..=LIFETIME_S).contains(&age_s) {
        return None;
    }
    let mut pairs: Vec<_> = signed.split('&').collect();
    pairs.sort_unstable();
    let nothing = hex(digest(&SHA256, b"").as_ref());
    let request = format!("GET\n/\n{}\nhost:{host}\n\nhost\n{nothing}", pairs.join("&"));
    let text =
        format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(digest(&SHA256, request.as_bytes()).as_ref()));
    let mut key = format!("AWS4{}", expected.secret_access_key).into_bytes();
    for part in [day, expected.region, "rds-db", "aws4_request", &text] {
        key = sign(&Key::new(HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    super::same(hex(&key).as_bytes(), signature.as_bytes()).then_some(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

/// Seconds since 1970 of `YYYYMMDDTHHMMSSZ`.
fn seconds(date: &str) -> Option<i64> {
    let number = |from: usize, to: usize| date.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    if date.len() != 16
        || !(1970..10_000).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    // Days since 1970-03-01, years beginning in March (Hinnant's days_from_civil).
    let shifted = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by botocore's `generate_db_auth_token` at 2026-11-21T12:00:00Z.
    const TOKEN: &str = "proxy.proxy-abc.ap-northeast-1.rds.amazonaws.com:3306/?Action=connect&DBUser=app%20user&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20261121%2Fap-northeast-1%2Frds-db%2Faws4_request&X-Amz-Date=20261121T120000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=5594f172989ec19a86dc8831b625dc6744a1302700490ca527480fbdc562c7d6";

    const EXPECTED: Token<'_> = Token {
        host: Some("proxy.proxy-abc.ap-northeast-1.rds.amazonaws.com:3306"),
        user: "app user",
        region: "ap-northeast-1",
        access_key_id: "AKIDEXAMPLE",
        secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        now_s: 1_795_262_400,
    };

    #[test]
    fn botocores_token_passes_for_fifteen_minutes() {
        for (after_s, passes) in [(0, true), (900, true), (901, false), (-300, true), (-301, false)] {
            let now_s = EXPECTED.now_s + after_s;
            assert_eq!(check_token(TOKEN, &Token { now_s, ..EXPECTED }), passes, "{after_s} s later");
        }
    }

    #[test]
    fn another_token_does_not() {
        let others = [
            Token { host: Some("other:3306"), ..EXPECTED },
            Token { user: "root", ..EXPECTED },
            Token { region: "us-east-1", ..EXPECTED },
            Token { secret_access_key: "other", ..EXPECTED },
            Token { access_key_id: "other", ..EXPECTED },
        ];
        for other in others {
            assert!(!check_token(TOKEN, &other), "{other:?}");
        }
        assert!(check_token(TOKEN, &Token { host: None, ..EXPECTED }));
        for cut in 0..TOKEN.len() {
            assert!(!check_token(&TOKEN[..cut], &EXPECTED), "{cut}");
        }
        assert!(!check_token("secret", &EXPECTED));
    }

    #[test]
    fn dates_are_read() {
        assert_eq!(seconds("19700101T000000Z"), Some(0));
        assert_eq!(seconds("20240229T235959Z"), Some(1_709_251_199));
        assert_eq!(seconds("20241301T000000Z"), None);
        assert_eq!(seconds("2024"), None);
    }
}
