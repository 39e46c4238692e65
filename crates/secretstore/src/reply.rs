//! A status and a JSON body; errors as AWS's JSON 1.1 protocol has them.

use serde_json::{Value, json};

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// JSON.
    pub body: Value,
}

/// Why an operation is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    kind: &'static str,
    message: Option<(&'static str, String)>,
}

/// What an operation comes to.
pub(crate) type Outcome = Result<Value, Refusal>;

impl Refusal {
    /// An exception of the service's own model: its text is called `Message` (Secrets Manager) as recorded.
    pub(crate) fn modeled(kind: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { kind, message: Some(("Message", message.into())) }
    }

    /// An exception of the layer before the service, or one of Parameter Store's: its text is called `message`.
    pub(crate) fn common(kind: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { kind, message: Some(("message", message.into())) }
    }

    /// `ParameterNotFound` has no text at all: SDKs show an empty message or `UnknownError`.
    pub(crate) fn silent(kind: &'static str) -> Refusal {
        Refusal { kind, message: None }
    }

    pub(crate) fn validation(message: impl Into<String>) -> Refusal {
        Refusal::common("ValidationException", message)
    }

    /// The exception's name.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Its text.
    pub(crate) fn text(&self) -> &str {
        self.message.as_ref().map_or("", |(_, text)| text)
    }
}

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Reply {
        match outcome {
            Ok(body) => Reply { status: 200, body },
            Err(Refusal { kind, message }) => {
                let mut body = json!({ "__type": kind });
                if let Some((key, text)) = message {
                    body[key] = Value::String(text);
                }
                Reply { status: 400, body }
            }
        }
    }
}

impl Reply {
    /// The answer to an operation that the service, or danki, does not have.
    pub fn unknown_operation() -> Reply {
        Err(Refusal::silent("UnknownOperationException")).into()
    }
}
