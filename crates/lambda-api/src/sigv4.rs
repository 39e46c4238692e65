//! AWS's Signature Version 4: which service a request is for, and, if asked, whether it was signed with the right key.
//!
//! Written here in a hundred lines on `ring`, which is linked anyway: the `aws-sigv4` crate signs, it does not verify.

use crate::fault::{Fault, Kind};
use crate::request::percent_decode;
use hyper::HeaderMap;
use ring::{digest, hmac};
use std::fmt::Write;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// `date/region/service` of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub key_id: String,
    pub date: String,
    pub region: String,
    pub service: String,
}

/// The scope in an `Authorization` header, or in `X-Amz-Credential` of a presigned URL's query.
pub fn scope(text: &str) -> Option<Scope> {
    let (_, credential) = text.split_once("Credential=")?;
    let end = credential.find([',', '&', ' ']).unwrap_or(credential.len());
    let decoded = percent_decode(&credential[..end]);
    let mut parts = decoded.rsplit('/');
    let ("aws4_request", service, region, date) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?)
    else {
        return None;
    };
    let key_id = parts.next()?;
    Some(Scope {
        key_id: key_id.to_owned(),
        date: date.to_owned(),
        region: region.to_owned(),
        service: service.to_owned(),
    })
}

/// What is signed.
pub struct Signed<'a> {
    pub method: &'a str,
    /// As sent: Lambda's and most services' clients escape each segment once more.
    pub path: &'a str,
    pub query: &'a str,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
}

/// Checks a signature in the `Authorization` header against a secret key.
pub fn verify(request: &Signed<'_>, key_id: &str, secret: &str) -> Result<(), Fault> {
    let header = |name: &str| request.headers.get(name).and_then(|v| v.to_str().ok());
    let missing = |what: &str| Fault::new(Kind::Signature, format!("{what} is missing"));
    let authorization = header("authorization").ok_or_else(|| missing("the Authorization header"))?;
    let scope = scope(authorization).ok_or_else(|| missing("the credential scope"))?;
    if scope.key_id != key_id {
        let message = "The security token included in the request is invalid.";
        return Err(Fault::new(Kind::Signature, message));
    }
    let part = |name: &str| {
        let (_, rest) = authorization.split_once(name)?;
        Some(rest.split([',', ' ']).next().unwrap_or_default())
    };
    let names = part("SignedHeaders=").ok_or_else(|| missing("SignedHeaders"))?;
    let signature = part("Signature=").ok_or_else(|| missing("Signature"))?;
    let time = header("x-amz-date").ok_or_else(|| missing("X-Amz-Date"))?;
    let expected = sign(request, &scope, names, time, secret);
    if signature == expected {
        return Ok(());
    }
    let message = "The request signature we calculated does not match the signature you provided. Check your AWS \
                   Secret Access Key and signing method. Consult the service documentation for details.";
    Err(Fault::new(Kind::Signature, message))
}

fn sign(request: &Signed<'_>, scope: &Scope, names: &str, time: &str, secret: &str) -> String {
    let canonical = canonical(request, names, scope.service == "s3");
    let scope_text = format!("{}/{}/{}/aws4_request", scope.date, scope.region, scope.service);
    let to_sign =
        format!("{ALGORITHM}\n{time}\n{scope_text}\n{}", hex(digest_of(canonical.as_bytes()).as_ref()));
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in [scope.date.as_str(), &scope.region, &scope.service, "aws4_request", &to_sign] {
        key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    hex(&key)
}

fn canonical(request: &Signed<'_>, names: &str, s3: bool) -> String {
    let path = if s3 { request.path.to_owned() } else { escaped_again(request.path) };
    let mut pairs: Vec<(String, String)> = request
        .query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(name, value)| (escape(&percent_decode(name)), escape(&percent_decode(value))))
        .collect();
    pairs.sort();
    let query: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut headers = String::new();
    for name in names.split(';') {
        let values = request.headers.get_all(name).iter().filter_map(|v| v.to_str().ok());
        let values: Vec<String> =
            values.map(|v| v.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        // Writing to a string cannot fail.
        writeln!(headers, "{name}:{}", values.join(",")).ok();
    }
    let hash = request.headers.get("x-amz-content-sha256").and_then(|v| v.to_str().ok()).map(str::to_owned);
    let hash = hash.unwrap_or_else(|| hex(digest_of(request.body).as_ref()));
    format!("{}\n{path}\n{}\n{headers}\n{names}\n{hash}", request.method, query.join("&"))
}

/// All services but S3 sign the path escaped twice.
fn escaped_again(path: &str) -> String {
    path.split('/').map(escape).collect::<Vec<_>>().join("/")
}

fn escape(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    let one = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    text.bytes().map(one).collect()
}

fn digest_of(bytes: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA256, bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    /// AWS's test suite for signers, `get-vanilla-query-order-key-case`.
    #[test]
    fn aws_s_own_example_verifies() {
        let authorization = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                             SignedHeaders=host;x-amz-date, \
                             Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500";
        let headers: HeaderMap = [
            ("host", "example.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
            ("authorization", authorization),
        ]
        .into_iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let signed = |query| Signed { method: "GET", path: "/", query, headers: &headers, body: b"" };
        assert_eq!(verify(&signed("Param2=value2&Param1=value1"), "AKIDEXAMPLE", secret), Ok(()));
        assert!(verify(&signed("Param2=value2&Param1=other"), "AKIDEXAMPLE", secret).is_err());
        assert!(verify(&signed("Param2=value2&Param1=value1"), "AKIDEXAMPLE", "other").is_err());
        assert!(verify(&signed("Param2=value2&Param1=value1"), "OTHER", secret).is_err());
        let plain = HeaderMap::new();
        let unsigned = Signed { method: "GET", path: "/", query: "", headers: &plain, body: b"" };
        assert_eq!(verify(&unsigned, "a", "b").expect_err("unsigned").kind, Kind::Signature);
    }

    #[test]
    fn the_service_is_in_the_scope() {
        let read = |text| scope(text).map(|s| s.service);
        let header =
            "AWS4-HMAC-SHA256 Credential=a/20150830/us-east-1/lambda/aws4_request, SignedHeaders=host";
        assert_eq!(read(header).as_deref(), Some("lambda"));
        let presigned = "X-Amz-Credential=a%2F20150830%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=x";
        assert_eq!(read(presigned).as_deref(), Some("s3"));
        assert_eq!(read("Bearer x"), None);
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_not(text in "\\PC{0,80}") {
            scope(&text);
            scope(&format!("Credential={text}"));
        }
    }
}
