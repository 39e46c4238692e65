//! One value: the request, its signature, and as many tries as AWS's SDK makes.

use super::Upstream;
use super::answer::Answer;
use super::credentials::Keys;
use super::failure::Failure;
use super::line::Line;
use super::sign::{Request, sign};
use super::stream::Deadline;
use crate::clock::now;
use crate::date::Utc;
use crate::json::{push_member, push_name};
use crate::shape::{self, Body};
use crate::wanted::{Service, Wanted};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use zeroize::Zeroizing;

/// Tries of one request, as in AWS's SDKs.
const ATTEMPTS: u32 = 3;
/// The wait before the second try is up to this, before the third up to twice as much: random, so that functions that failed
/// together do not come back together.
const BACKOFF: Duration = Duration::from_millis(100);

/// Fetches one value, as the body that AWS's extension answers with.
pub fn fetch(
    upstream: &Upstream,
    line: &mut Line,
    wanted: &Wanted,
    patience: Duration,
) -> Result<Body, Failure> {
    let (operation, payload) = request_for(wanted);
    let answer = insist(upstream, line, wanted.service(), operation, &payload, Deadline::after(patience))?;
    let body = match wanted {
        Wanted::Secret { .. } => shape::secret(&answer),
        Wanted::Parameter { .. } => shape::parameter(&answer),
    };
    body.ok_or(Failure::Malformed("not the JSON of the operation"))
}

fn request_for(wanted: &Wanted) -> (&'static str, Vec<u8>) {
    let mut payload = vec![b'{'];
    let operation = match wanted {
        Wanted::Secret { id, version_id, version_stage } => {
            push_member(&mut payload, "SecretId", Some(id));
            for (name, value) in [("VersionId", version_id), ("VersionStage", version_stage)] {
                if value.is_some() {
                    push_member(&mut payload, name, value.as_deref());
                }
            }
            "GetSecretValue"
        }
        Wanted::Parameter { name, decrypt } => {
            push_member(&mut payload, "Name", Some(name));
            push_name(&mut payload, "WithDecryption");
            payload.extend_from_slice(if *decrypt { b"true" } else { b"false" });
            "GetParameter"
        }
    };
    payload.push(b'}');
    (operation, payload)
}

/// Sends until it works, until it is pointless, or until the deadline. Returns the body of a 200.
pub fn insist(
    upstream: &Upstream,
    line: &mut Line,
    service: Service,
    operation: &str,
    payload: &[u8],
    deadline: Deadline,
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    // A wrong clock and ended credentials are put right once each; that does not count as a try.
    let (mut set_clock, mut renewed, mut tries) = (false, false, 1);
    loop {
        let keys = upstream.credentials.current()?;
        let request = write(upstream, line, service, operation, payload, &keys);
        let (failure, date) = match line.exchange(upstream, &request, deadline) {
            Ok(answer) if answer.status == 200 => return Ok(answer.body),
            Ok(answer) => (refused(&answer), answer.date),
            Err(failure) => (failure, None),
        };
        if failure.is_skew() && !set_clock && learn_clock(upstream, date) {
            set_clock = true;
        } else if failure.is_expired() && !renewed && upstream.credentials.renew() {
            renewed = true;
        } else if failure.is_worth_another_try() && tries < ATTEMPTS {
            pause(BACKOFF * tries, deadline)?;
            tries += 1;
        } else {
            return Err(failure);
        }
    }
}

/// The bytes of a signed request.
fn write(
    upstream: &Upstream,
    line: &Line,
    service: Service,
    operation: &str,
    payload: &[u8],
    keys: &Keys,
) -> Zeroizing<Vec<u8>> {
    let (name, target) = match service {
        Service::SecretsManager => ("secretsmanager", format!("secretsmanager.{operation}")),
        Service::ParameterStore => ("ssm", format!("AmazonSSM.{operation}")),
    };
    let skew = upstream.skew_s.load(Ordering::Relaxed);
    let date = Utc::of(Duration::from_secs(now().epoch.as_secs().saturating_add_signed(skew))).basic();
    let host = line.endpoint().authority();
    let mut fields =
        vec![("content-type", "application/x-amz-json-1.1"), ("host", &host), ("x-amz-date", &date)];
    if let Some(token) = &keys.token {
        fields.push(("x-amz-security-token", token));
    }
    fields.push(("x-amz-target", &target));
    let signed = Request { method: "POST", path: "/", query: "", fields: &fields, body: payload };
    let authorization = sign(&signed, &date, &upstream.region, name, &keys.id, &keys.secret);
    let mut bytes = Zeroizing::new(Vec::with_capacity(4096 + payload.len()));
    bytes.extend_from_slice(b"POST / HTTP/1.1\r\n");
    for (name, value) in fields.into_iter().chain([("authorization", authorization.as_str())]) {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(
        format!("user-agent: danki-secrets\r\ncontent-length: {}\r\n\r\n", payload.len()).as_bytes(),
    );
    bytes.extend_from_slice(payload);
    bytes
}

/// What a refusal says.
fn refused(answer: &Answer) -> Failure {
    #[derive(Default, Deserialize)]
    struct Words {
        #[serde(rename = "__type", default)]
        kind: String,
        #[serde(alias = "Message", default)]
        message: String,
    }
    let words: Words = serde_json::from_slice(&answer.body).unwrap_or_default();
    let kind = if words.kind.is_empty() { &answer.error_type } else { &words.kind };
    // `com.amazonaws.secretsmanager#ResourceNotFoundException`, or `Name:http://…` in the header.
    let kind = kind.rsplit('#').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let tame =
        |text: &str, most: usize| text.chars().filter(|c| !c.is_control()).take(most).collect::<String>();
    Failure::Refused {
        status: answer.status,
        kind: tame(kind, 100),
        message: tame(&words.message, 1000),
        request_id: tame(&answer.request_id, 100),
    }
}

/// Takes upstream's clock for right. Says whether there was one.
fn learn_clock(upstream: &Upstream, date: Option<u64>) -> bool {
    let ours = i64::try_from(now().epoch.as_secs());
    let (Some(theirs), Ok(ours)) = (date.and_then(|date| i64::try_from(date).ok()), ours) else {
        return false;
    };
    upstream.skew_s.store(theirs - ours, Ordering::Relaxed);
    true
}

/// A random wait of up to `most`; an error if the deadline comes first.
fn pause(most: Duration, deadline: Deadline) -> Result<(), Failure> {
    let mut random = [0; 2];
    // Without randomness all wait equally long, which does no harm.
    let _ = SystemRandom::new().fill(&mut random);
    let wait = most * u32::from(u16::from_ne_bytes(random)) / u32::from(u16::MAX);
    match deadline.left() {
        Ok(left) if left > wait => {
            thread::park_timeout(wait); // nobody unparks this thread, and if, trying early does no harm
            Ok(())
        }
        _ => Err(deadline.failure(&std::io::ErrorKind::TimedOut.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_the_operations() {
        let check = |wanted: Wanted, operation: &str, payload: &str| {
            let (named, bytes) = request_for(&wanted);
            assert_eq!((named, String::from_utf8_lossy(&bytes).as_ref()), (operation, payload));
        };
        let secret = |version_id, version_stage| Wanted::Secret { id: "a".into(), version_id, version_stage };
        check(secret(None, None), "GetSecretValue", r#"{"SecretId":"a"}"#);
        check(
            secret(Some("v".into()), Some("s".into())),
            "GetSecretValue",
            r#"{"SecretId":"a","VersionId":"v","VersionStage":"s"}"#,
        );
        check(
            Wanted::Parameter { name: "/a:1".into(), decrypt: true },
            "GetParameter",
            r#"{"Name":"/a:1","WithDecryption":true}"#,
        );
    }

    #[test]
    fn refusals_are_read_in_every_form() {
        let check = |error_type: &str, body: &str, expect: (&str, &str)| {
            let text = format!(
                "HTTP/1.1 400 Bad\r\nx-amzn-RequestId: r\r\nx-amzn-ErrorType: {error_type}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let answer = super::super::answer::read(&mut text.as_bytes()).expect("an answer");
            match refused(&answer) {
                Failure::Refused { kind, message, .. } => {
                    assert_eq!((kind.as_str(), message.as_str()), expect)
                }
                other => panic!("{other:?}"),
            }
        };
        check(
            "",
            r#"{"__type":"ResourceNotFoundException","message":"no\nsuch"}"#,
            ("ResourceNotFoundException", "nosuch"),
        );
        check(
            "",
            r#"{"__type":"com.amazon.coral#AccessDeniedException","Message":"m"}"#,
            ("AccessDeniedException", "m"),
        );
        check("ThrottlingException:http://internal.amazon.com/", "{}", ("ThrottlingException", ""));
        check("X", "not json", ("X", ""));
    }
}
