//! Why upstream brought no value, and what that means: for the caller, for the cache, for another try.

use crate::json::{push_member, push_name};
use thiserror::Error;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// Upstream refused.
    #[error(
        "https response error StatusCode: {status}, RequestID: {request_id}, api error {kind}: {message}"
    )]
    Refused {
        /// HTTP status.
        status: u16,
        /// `__type` without its namespace.
        kind: String,
        /// Its words.
        message: String,
        /// `x-amzn-RequestId`.
        request_id: String,
    },
    /// The deadline passed.
    #[error("the request took longer than {0} ms")]
    Timeout(u128),
    /// No connection came about.
    #[error("request send failed, {0}")]
    Connect(String),
    /// The other side is not who it should be, or speaks no TLS.
    #[error("request send failed, tls: {0}")]
    Tls(String),
    /// The connection ended or spoke nonsense in the middle of an answer.
    #[error("the answer broke off: {0}")]
    Broken(String),
    /// A whole answer that is not what the service's documentation says.
    #[error("the answer cannot be read: {0}")]
    Malformed(&'static str),
    /// There is nobody to sign for.
    #[error("no credentials: {0}")]
    NoCredentials(String),
}

impl Failure {
    /// Whether upstream has said no, as opposed to having failed to answer: such a no may be remembered, and no old value may stand
    /// in for it.
    pub fn is_definite(&self) -> bool {
        matches!(self, Failure::Refused { status: 400..=499, .. })
            && !self.is_worth_another_try()
            && !self.is_expired()
            && !self.is_skew()
    }

    /// Whether the same request may succeed a moment later.
    pub fn is_worth_another_try(&self) -> bool {
        match self {
            Failure::Refused { status, .. } => *status >= 500 || *status == 429 || self.is_throttle(),
            Failure::Connect(_) | Failure::Broken(_) => true,
            Failure::Timeout(_) | Failure::Tls(_) | Failure::Malformed(_) | Failure::NoCredentials(_) => {
                false
            }
        }
    }

    /// Whether our clock and upstream's disagree.
    pub fn is_skew(&self) -> bool {
        match self {
            Failure::Refused { kind, message, .. } => {
                matches!(kind.as_str(), "RequestTimeTooSkewed" | "RequestExpired" | "RequestInTheFuture")
                    || (kind == "InvalidSignatureException"
                        && ["Signature expired", "Signature not yet current"]
                            .iter()
                            .any(|words| message.contains(words)))
            }
            _ => false,
        }
    }

    /// Whether newer credentials would help.
    pub fn is_expired(&self) -> bool {
        self.is_kind(&["ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException"])
    }

    fn is_throttle(&self) -> bool {
        self.is_kind(&[
            "ThrottlingException",
            "Throttling",
            "ThrottledException",
            "TooManyRequestsException",
            "RequestLimitExceeded",
            "TooManyUpdates",
        ])
    }

    fn is_kind(&self, kinds: &[&str]) -> bool {
        matches!(self, Failure::Refused { kind, .. } if kinds.contains(&kind.as_str()))
    }

    /// HTTP status with AWS's texts. Only 400 has been seen.
    pub fn status_as_aws(&self) -> u16 {
        400
    }

    /// HTTP status of detailed errors, which the open agent uses, too.
    pub fn status(&self) -> u16 {
        match self {
            Failure::Refused { status, .. } => *status,
            Failure::Timeout(_) => 504,
            Failure::NoCredentials(_) => 500,
            Failure::Connect(_) | Failure::Tls(_) | Failure::Broken(_) | Failure::Malformed(_) => 502,
        }
    }

    /// The body of detailed errors.
    pub fn json(&self) -> String {
        let (kind, message) = match self {
            Failure::Refused { kind, message, .. } => (kind.as_str(), message.clone()),
            Failure::Timeout(_) => ("TimeoutException", self.to_string()),
            Failure::NoCredentials(_) => ("NoCredentials", self.to_string()),
            Failure::Connect(_) | Failure::Tls(_) | Failure::Broken(_) | Failure::Malformed(_) => {
                ("BadGateway", self.to_string())
            }
        };
        let mut out = vec![b'{'];
        push_member(&mut out, "__type", Some(kind));
        push_member(&mut out, "message", Some(&message));
        push_name(&mut out, "status");
        out.extend_from_slice(self.status().to_string().as_bytes());
        out.push(b'}');
        String::from_utf8_lossy(&out).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, kind: &str, message: &str) -> Failure {
        Failure::Refused { status, kind: kind.into(), message: message.into(), request_id: "r".into() }
    }

    #[test]
    fn each_failure_has_its_consequences() {
        // definite, another try, skew, expired
        let check = |failure: Failure, expect: [bool; 4]| {
            let is = [
                failure.is_definite(),
                failure.is_worth_another_try(),
                failure.is_skew(),
                failure.is_expired(),
            ];
            assert_eq!(is, expect, "{failure}");
        };
        check(refused(400, "ResourceNotFoundException", "no"), [true, false, false, false]);
        check(refused(400, "AccessDeniedException", "no"), [true, false, false, false]);
        check(refused(400, "ThrottlingException", "slow down"), [false, true, false, false]);
        check(refused(429, "", ""), [false, true, false, false]);
        check(refused(500, "InternalServiceError", ""), [false, true, false, false]);
        check(refused(400, "ExpiredTokenException", ""), [false, false, false, true]);
        let skewed = "Signature expired: 20150830T123600Z is now earlier than 20150830T124000Z (20150830T124500Z - 5 min.)";
        check(refused(400, "InvalidSignatureException", skewed), [false, false, true, false]);
        check(Failure::Timeout(100), [false, false, false, false]);
        check(Failure::Connect("refused".into()), [false, true, false, false]);
        check(Failure::Tls("bad certificate".into()), [false, false, false, false]);
        check(Failure::Broken("reset".into()), [false, true, false, false]);
        check(Failure::Malformed("no JSON"), [false, false, false, false]);
    }

    #[test]
    fn details_are_json() {
        let json: serde_json::Value =
            serde_json::from_str(&refused(400, "ResourceNotFoundException", "can't \"find\"").json())
                .expect("JSON");
        assert_eq!(json["__type"], "ResourceNotFoundException");
        assert_eq!(json["message"], "can't \"find\"");
        assert_eq!(json["status"], 400);
        assert!(Failure::Timeout(5).json().contains("504"));
    }
}
