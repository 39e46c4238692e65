//! The payload of an invocation, byte for byte as it was written: order of keys and spelling of numbers are kept.

use crate::BadInput;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(String);

impl Default for Payload {
    /// The empty object.
    fn default() -> Self {
        Payload("{}".to_owned())
    }
}

impl Payload {
    /// Text from `place`; an empty one is the empty object.
    pub fn parse(text: &str, place: &str) -> Result<Payload, BadInput> {
        if text.trim().is_empty() {
            return Ok(Payload::default());
        }
        match serde_json::from_str::<Value>(text) {
            Ok(_) => Ok(Payload(text.trim().to_owned())),
            Err(e) => Err(BadInput::new(format!("not JSON: {e}")).at(format!("{place}:{}", e.line()))),
        }
    }

    /// The text of a file.
    pub fn read(path: &Path) -> Result<Payload, BadInput> {
        let place = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|e| BadInput::new(e.to_string()).at(&place))?;
        Payload::parse(&text, &place)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Payload {
        Payload(value.to_string())
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<Value>(&self.0).unwrap_or_default().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_kept_as_it_was_written() {
        let text = r#"{"b": 1.0, "a": [2]}"#;
        assert_eq!(Payload::parse(text, "x").map(|p| p.as_str().to_owned()), Ok(text.to_owned()));
        assert_eq!(Payload::parse(" \n", "x"), Ok(Payload::default()));
        let bad = Payload::parse("{\n1", "x").expect_err("no JSON");
        assert!(bad.to_string().starts_with("x:2: not JSON"), "{bad}");
    }
}
