//! Header names, bodies and refusals of the Extensions API (`lambda-platform.md` §2.2; texts as in AWS's source).

use crate::standing::Standing;
use danki_model::crew::{EXTENSIONS_MAX, ExtensionKind};
use serde::Deserialize;

/// Header of a registration: the extension's name.
pub const NAME: &str = "lambda-extension-name";
/// Header of a registration: what more it would like to be told.
pub const ACCEPT_FEATURE: &str = "lambda-extension-accept-feature";
/// Header of a registration's answer and of every later request.
pub const IDENTIFIER: &str = "lambda-extension-identifier";
/// Header of an event.
pub const EVENT_IDENTIFIER: &str = "lambda-extension-event-identifier";
/// Header of an error post.
pub const ERROR_TYPE: &str = "lambda-extension-function-error-type";

/// The body of a registration.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Register {
    #[serde(default)]
    events: Vec<String>,
    #[serde(default, rename = "configurationKeys")]
    configuration_keys: Vec<String>,
}

impl Register {
    /// Reads a body.
    pub fn parse(body: &[u8]) -> Result<Register, ExtensionRefusal> {
        let register: Register =
            serde_json::from_slice(body).map_err(|e| ExtensionRefusal::Format(e.to_string()))?;
        match register.configuration_keys.is_empty() {
            true => Ok(register),
            false => Err(ExtensionRefusal::Format(
                "configurationKeys are deprecated; use environment variables instead".to_owned(),
            )),
        }
    }

    /// Only events that this kind of extension can have.
    pub fn check(&self, kind: ExtensionKind) -> Result<(), ExtensionRefusal> {
        for event in &self.events {
            match (event.as_str(), kind) {
                ("INVOKE", _) | ("SHUTDOWN", ExtensionKind::External) => {}
                ("SHUTDOWN", ExtensionKind::Internal) => {
                    return Err(ExtensionRefusal::EventType(format!(
                        "{event}: ShutdownEventNotSupportedForInternalExtension"
                    )));
                }
                _ => return Err(ExtensionRefusal::EventType(format!("{event}: ErrorInvalidEventType"))),
            }
        }
        Ok(())
    }

    /// It wants INVOKE events.
    pub fn invoke(&self) -> bool {
        self.events.iter().any(|event| event == "INVOKE")
    }

    /// It wants the SHUTDOWN event.
    pub fn shutdown(&self) -> bool {
        self.events.iter().any(|event| event == "SHUTDOWN")
    }
}

/// Why a request of an extension was refused: always 403.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtensionRefusal {
    /// No name.
    #[error("Empty extension name")]
    EmptyName,
    /// The body is not as it should be.
    #[error("{0}")]
    Format(String),
    /// An event that there is not.
    #[error("{0}")]
    EventType(String),
    /// Init has gone too far.
    #[error("Extension registration closed already")]
    RegistrationClosed,
    /// Another internal extension has this name.
    #[error("Extension with this name already registered")]
    NameTaken,
    /// Ten is the limit.
    #[error("Extension limit ({EXTENSIONS_MAX}) reached")]
    TooMany,
    /// Not now.
    #[error("State transition from {} to {} failed for extension {who}. Error: State transition is not allowed", from.name(), to.name())]
    State {
        /// Where it stands.
        from: Standing,
        /// What it was after.
        to: Standing,
        /// Its name or identifier.
        who: String,
    },
    /// No identifier.
    #[error("Missing Lambda-Extension-Identifier header")]
    MissingIdentifier,
    /// Not a UUID.
    #[error("Invalid Lambda-Extension-Identifier")]
    InvalidIdentifier,
    /// Nobody's identifier.
    #[error("Unknown extension {0}")]
    Unknown(String),
    /// An error post without its type.
    #[error("Lambda-Extension-Function-Error-Type not found")]
    MissingHeader,
    /// Telemetry can be subscribed to in init only.
    #[error("Telemetry API subscription is closed already")]
    SubscriptionClosed,
}

impl ExtensionRefusal {
    /// A state that does not allow it.
    pub fn state(from: Standing, to: Standing, who: &str) -> ExtensionRefusal {
        ExtensionRefusal::State { from, to, who: who.to_owned() }
    }

    /// `errorType`
    pub fn error_type(&self) -> &'static str {
        match self {
            ExtensionRefusal::EmptyName => "Extension.InvalidExtensionName",
            ExtensionRefusal::Format(_) => "InvalidRequestFormat",
            ExtensionRefusal::EventType(_) => "Extension.InvalidEventType",
            ExtensionRefusal::RegistrationClosed => "Extension.RegistrationClosed",
            ExtensionRefusal::NameTaken | ExtensionRefusal::State { .. } => "Extension.InvalidExtensionState",
            ExtensionRefusal::TooMany => "Extension.TooManyExtensions",
            ExtensionRefusal::MissingIdentifier => "Extension.MissingExtensionIdentifier",
            ExtensionRefusal::InvalidIdentifier => "Extension.InvalidExtensionIdentifier",
            ExtensionRefusal::Unknown(_) => "Extension.UnknownExtensionIdentifier",
            ExtensionRefusal::MissingHeader => "Extension.MissingHeader",
            ExtensionRefusal::SubscriptionClosed => "Telemetry.SubscriptionClosed",
        }
    }
}

/// 8-4-4-4-12 hexadecimal digits.
pub fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}
