//! What a caller is told when a request is refused: AWS's error name, HTTP status and message.

use hyper::StatusCode;

/// Why an operation was refused. The name is the wire name, without which no SDK raises the right exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    InvalidParameterCombination,
    InvalidParameterValue,
    InvalidRequestContent,
    NotOffered,
    PolicyNotFound,
    PreconditionFailed,
    ProvisionedConcurrencyConfigNotFound,
    RequestEntityTooLarge,
    RequestTooLarge,
    ResourceConflict,
    ResourceNotFound,
    /// S3's own code and status.
    S3(&'static str, u16),
    Service,
    Signature,
    Throttled(Throttle),
    UnknownOperation,
    Validation,
}

/// Why an invocation was throttled (botocore's `ThrottleReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    Account,
    AccountRate,
    Reserved,
    ReservedRate,
    FunctionRate,
}

impl Throttle {
    pub fn reason(self) -> &'static str {
        match self {
            Throttle::Account => "ConcurrentInvocationLimitExceeded",
            Throttle::AccountRate => "CallerRateLimitExceeded",
            Throttle::Reserved => "ReservedFunctionConcurrentInvocationLimitExceeded",
            Throttle::ReservedRate => "ReservedFunctionInvocationRateLimitExceeded",
            Throttle::FunctionRate => "FunctionInvocationRateLimitExceeded",
        }
    }
}

impl Kind {
    /// Wire name and HTTP status (botocore's service model, §7.2).
    pub fn wire(self) -> (&'static str, u16) {
        match self {
            // CloudWatch's.
            Kind::InvalidParameterCombination => ("InvalidParameterCombinationException", 400),
            Kind::InvalidParameterValue => ("InvalidParameterValueException", 400),
            Kind::InvalidRequestContent => ("InvalidRequestContentException", 400),
            // Ours: AWS has no word for an emulator's gaps.
            Kind::NotOffered => ("OperationNotOfferedByDanki", 501),
            Kind::PolicyNotFound | Kind::ResourceNotFound => ("ResourceNotFoundException", 404),
            Kind::PreconditionFailed => ("PreconditionFailedException", 412),
            Kind::ProvisionedConcurrencyConfigNotFound => {
                ("ProvisionedConcurrencyConfigNotFoundException", 404)
            }
            Kind::RequestEntityTooLarge => ("RequestEntityTooLargeException", 413),
            Kind::RequestTooLarge => ("RequestTooLargeException", 413),
            Kind::ResourceConflict => ("ResourceConflictException", 409),
            Kind::S3(code, status) => (code, status),
            Kind::Service => ("ServiceException", 500),
            Kind::Signature => ("InvalidSignatureException", 403),
            Kind::Throttled(_) => ("TooManyRequestsException", 429),
            Kind::UnknownOperation => ("UnknownOperationException", 404),
            Kind::Validation => ("ValidationException", 400),
        }
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    pub message: String,
}

impl Fault {
    pub fn new(kind: Kind, message: impl Into<String>) -> Fault {
        Fault { kind, message: message.into() }
    }

    /// A setting that is not allowed.
    pub fn invalid(message: impl Into<String>) -> Fault {
        Fault::new(Kind::InvalidParameterValue, message)
    }

    pub fn conflict(message: impl Into<String>) -> Fault {
        Fault::new(Kind::ResourceConflict, message)
    }

    pub fn not_found(message: impl Into<String>) -> Fault {
        Fault::new(Kind::ResourceNotFound, message)
    }

    pub fn function_not_found(arn: &str) -> Fault {
        Fault::not_found(format!("Function not found: {arn}"))
    }

    /// Something of danki's own failed: the caller may try again.
    pub fn service(message: impl Into<String>) -> Fault {
        Fault::new(Kind::Service, message)
    }

    /// Smithy's words for a value outside of its constraint.
    pub fn constraint(value: &str, member: &str, constraint: &str) -> Fault {
        let message = format!(
            "1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: {constraint}"
        );
        Fault::new(Kind::Validation, message)
    }

    pub fn throttled(throttle: Throttle) -> Fault {
        Fault::new(Kind::Throttled(throttle), "Rate Exceeded.")
    }

    pub fn revision() -> Fault {
        let message = "The Revision Id provided does not match the latest Revision Id. Call the \
                       GetFunction/GetAlias API to retrieve the latest Revision Id";
        Fault::new(Kind::PreconditionFailed, message)
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.kind.wire().1).expect("the table holds legal statuses only")
    }

    /// The JSON body: `Message` or `message` as the error's shape has it.
    pub fn body(&self) -> serde_json::Value {
        let message = match self.kind {
            Kind::ResourceNotFound | Kind::PolicyNotFound | Kind::Service => "Message",
            _ => "message",
        };
        let who = if self.status().is_server_error() { "Service" } else { "User" };
        let mut body = serde_json::json!({ "Type": who, message: self.message });
        if let Kind::Throttled(throttle) = self.kind {
            body["Reason"] = throttle.reason().into();
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_as_recorded() {
        let throttled = Fault::throttled(Throttle::Reserved);
        assert_eq!(throttled.status(), 429);
        assert_eq!(
            throttled.body().to_string(),
            r#"{"Reason":"ReservedFunctionConcurrentInvocationLimitExceeded","Type":"User","message":"Rate Exceeded."}"#
        );
        let missing = Fault::function_not_found("arn:f");
        assert_eq!(missing.body().to_string(), r#"{"Message":"Function not found: arn:f","Type":"User"}"#);
        let constraint = Fault::constraint("1", "timeout", "Member must have value greater than 1");
        assert_eq!(constraint.kind.wire(), ("ValidationException", 400));
        assert!(constraint.message.starts_with("1 validation error detected: Value '1' at 'timeout'"));
    }
}
