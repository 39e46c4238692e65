//! Limits, header names and error types of the Runtime API.

/// Largest event and largest response in bytes: 6 MiB + 100 (`lambda-platform.md` §1.4, §1.6).
pub const MAX_PAYLOAD_BYTES: usize = 6 * 1024 * 1024 + 100;

/// Header of an event: the invocation's id.
pub const REQUEST_ID: &str = "lambda-runtime-aws-request-id";
/// Header of an event: epoch milliseconds at which the function times out.
pub const DEADLINE_MS: &str = "lambda-runtime-deadline-ms";
/// Header of an event: the ARN as invoked.
pub const FUNCTION_ARN: &str = "lambda-runtime-invoked-function-arn";
/// Header of an event: X-Ray's tracing header.
pub const TRACE_ID: &str = "lambda-runtime-trace-id";
/// Header of an event: the client context, JSON.
pub const CLIENT_CONTEXT: &str = "lambda-runtime-client-context";
/// Header of an event: the Cognito identity, JSON.
pub const COGNITO_IDENTITY: &str = "lambda-runtime-cognito-identity";
/// Header of an event and of the posts of newer runtimes: names one attempt at the invocation.
pub const INVOCATION_ID: &str = "lambda-runtime-invocation-id";
/// Header of a post: `streaming`, or absent.
pub const RESPONSE_MODE: &str = "lambda-runtime-function-response-mode";
/// Header of an error post, trailer of a streaming response.
pub const ERROR_TYPE: &str = "lambda-runtime-function-error-type";
/// Trailer of a streaming response: the error's payload, base64.
pub const ERROR_BODY: &str = "lambda-runtime-function-error-body";
/// Content type of an error post whose body carries an X-Ray cause beside the error.
pub const ERROR_WITH_CAUSE: &str = "application/vnd.aws.lambda.error.cause+json";
/// Content type of a streaming response that begins with a JSON prelude and 8 NUL bytes (§1.9).
pub const HTTP_INTEGRATION: &str = "application/vnd.awslambda.http-integration-response";

/// What AWS makes of the error type that a runtime reports (§1.7).
///
/// Kept if it contains `(Runtime|Function)\.[A-Z][a-zA-Z]+` anywhere; AWS does not anchor the pattern.
pub fn sanitised_error_type(reported: &str) -> String {
    if ["Runtime.", "Function."].iter().any(|prefix| contains_typed(reported, prefix)) {
        reported.to_owned()
    } else if reported.starts_with("Function.") {
        "Function.Unknown".to_owned()
    } else {
        "Runtime.Unknown".to_owned()
    }
}

fn contains_typed(text: &str, prefix: &str) -> bool {
    text.match_indices(prefix).any(|(at, _)| {
        let mut rest = text[at + prefix.len()..].bytes();
        rest.next().is_some_and(|b| b.is_ascii_uppercase())
            && rest.next().is_some_and(|b| b.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_types_are_sanitised_as_aws_does() {
        for (reported, expect) in [
            ("Runtime.ImportModuleError", "Runtime.ImportModuleError"),
            ("Function.MyError", "Function.MyError"),
            ("Function.myError", "Function.Unknown"),
            ("Function.X", "Function.Unknown"),
            ("Runtime.X", "Runtime.Unknown"),
            ("TypeError", "Runtime.Unknown"),
            ("", "Runtime.Unknown"),
            ("unhandled", "Runtime.Unknown"),
            ("Runtime.", "Runtime.Unknown"),
            ("my Runtime.Error", "my Runtime.Error"),
            ("Function.é", "Function.Unknown"),
        ] {
            assert_eq!(sanitised_error_type(reported), expect, "{reported}");
        }
    }
}
