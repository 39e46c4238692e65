//! AWS Signature Version 4 (docs.aws.amazon.com, "Create a signed AWS API request"), for what is sent here: a body in hand, no query
//! that needs sorting. Held against AWS's published test suite below; why not the `aws-sigv4` crate: docs/decisions.

use ring::{digest, hmac};
use std::fmt::Write;

/// What is signed.
pub struct Request<'a> {
    /// Always POST here; the test suite has others.
    pub method: &'a str,
    /// Encoded path.
    pub path: &'a str,
    /// Encoded query, in order.
    pub query: &'a str,
    /// Every signed field, lower-case names in alphabetical order, `x-amz-date` among them.
    pub fields: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
}

/// Signs, at the moment `date` (`20150830T123600Z`). Returns the value of `Authorization`.
pub fn sign(
    request: &Request<'_>,
    date: &str,
    region: &str,
    service: &str,
    key_id: &str,
    secret: &str,
) -> String {
    let day = date.get(..8).unwrap_or_default();
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let names = request.fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let mut canonical = format!("{}\n{}\n{}\n", request.method, request.path, request.query);
    for (name, value) in request.fields {
        let words = value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(canonical, "{name}:{words}"); // writing to a String cannot fail
    }
    let _ = write!(canonical, "\n{names}\n{}", hex(digest::digest(&digest::SHA256, request.body).as_ref()));
    let hashed = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashed}");
    let first = zeroize::Zeroizing::new(format!("AWS4{secret}"));
    let mut key = mac(first.as_bytes(), day);
    for part in [region, service, "aws4_request"] {
        key = mac(key.as_ref(), part);
    }
    let signature = hex(mac(key.as_ref(), &to_sign).as_ref());
    format!("AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={names}, Signature={signature}")
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "20150830T123600Z";
    const HOST: (&str, &str) = ("host", "example.amazonaws.com");
    const AT: (&str, &str) = ("x-amz-date", DATE);

    fn check(request: &Request<'_>, signature: &str) {
        let authorization = sign(
            request,
            DATE,
            "us-east-1",
            "service",
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        );
        let names = request.fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let expect = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders={names}, \
             Signature={signature}"
        );
        assert_eq!(authorization, expect);
    }

    /// Cases of AWS's "Signature Version 4 test suite", by their names in it.
    #[test]
    fn signatures_are_those_of_awss_test_suite() {
        let plain = |method, query, fields| Request { method, path: "/", query, fields, body: b"" };
        // get-vanilla, post-vanilla
        check(
            &plain("GET", "", &[HOST, AT]),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        );
        check(
            &plain("POST", "", &[HOST, AT]),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        );
        // get-vanilla-query-order-key-case
        check(
            &plain("GET", "Param1=value1&Param2=value2", &[HOST, AT]),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        );
        // get-header-value-trim
        check(
            &plain("GET", "", &[HOST, ("my-header1", " value1"), ("my-header2", " \"a   b   c\""), AT]),
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        );
        // post-x-www-form-urlencoded
        let fields = &[("content-type", "application/x-www-form-urlencoded"), HOST, AT];
        check(
            &Request { method: "POST", path: "/", query: "", fields, body: b"Param1=value1" },
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        );
        // post-sts-header-before
        let token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
        check(
            &plain("POST", "", &[HOST, AT, ("x-amz-security-token", token)]),
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        );
    }
}
