//! One parameter, its versions and how they are named.

use crate::reply::Refusal;
use crate::request::Tag;
use crate::{ACCOUNT, seconds};
use serde_json::{Value, json};

/// AWS keeps so many versions (user guide, "Working with parameter versions").
const MAX_VERSIONS: usize = 100;
/// Standard tier: 4 KB; advanced: 8 KB.
pub const MAX_VALUE_BYTES: [usize; 2] = [4_096, 8_192];

#[derive(Debug)]
pub struct Parameter {
    pub name: String,
    pub arn: String,
    pub tags: Vec<Tag>,
    /// Oldest first; never empty.
    pub versions: Vec<Version>,
}

#[derive(Clone, Debug)]
pub struct Version {
    pub number: u64,
    pub kind: Kind,
    pub value: String,
    pub modified_ms: u64,
    pub description: Option<String>,
    pub key_id: Option<String>,
    pub tier: String,
    pub data_type: String,
    pub allowed_pattern: Option<String>,
    pub labels: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    List,
    Secure,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Text => "String",
            Kind::List => "StringList",
            Kind::Secure => "SecureString",
        }
    }

    pub fn parse(text: &str) -> Result<Kind, Refusal> {
        match text {
            "String" => Ok(Kind::Text),
            "StringList" => Ok(Kind::List),
            "SecureString" => Ok(Kind::Secure),
            _ => Err(Refusal::validation(format!(
                "1 validation error detected: Value '{text}' at 'type' failed to satisfy constraint: Member must satisfy \
                 enum value set: [SecureString, StringList, String]"
            ))),
        }
    }
}

impl Parameter {
    pub fn new(region: &str, name: &str) -> Parameter {
        let slash = if name.starts_with('/') { "" } else { "/" };
        Parameter {
            name: name.to_owned(),
            arn: format!("arn:aws:ssm:{region}:{ACCOUNT}:parameter{slash}{name}"),
            tags: Vec::new(),
            versions: Vec::new(),
        }
    }

    /// The newest version.
    pub fn latest(&self) -> &Version {
        self.versions.last().expect("a parameter is stored with its first version")
    }

    /// Adds a version; beyond the bound the oldest goes, unless it has a label.
    pub fn add(&mut self, version: Version) -> Result<u64, Refusal> {
        if self.versions.len() >= MAX_VERSIONS {
            if !self.versions[0].labels.is_empty() {
                return Err(Refusal::common(
                    "ParameterMaxVersionLimitExceeded",
                    format!(
                        "You attempted to create a new version of {} by calling the PutParameter API with the overwrite \
                         flag. Version {}, the oldest version, can't be deleted because it has a label associated with it.",
                        self.name, self.versions[0].number
                    ),
                ));
            }
            self.versions.remove(0);
        }
        let number = version.number;
        self.versions.push(version);
        Ok(number)
    }

    /// The version that a selector (`3`, or a label) names.
    pub fn select(&self, selector: Option<&str>) -> Result<&Version, Refusal> {
        let Some(selector) = selector else { return Ok(self.latest()) };
        let (by, index) = match selector.parse::<u64>() {
            Ok(number) => ("version", self.versions.iter().position(|v| v.number == number)),
            Err(_) => ("label", self.versions.iter().position(|v| v.labels.iter().any(|l| l == selector))),
        };
        index.map(|index| &self.versions[index]).ok_or_else(|| self.lacks(by, selector))
    }

    /// The version of a number, to be changed.
    pub fn numbered(&mut self, number: u64) -> Result<&mut Version, Refusal> {
        match self.versions.iter().position(|v| v.number == number) {
            Some(index) => Ok(&mut self.versions[index]),
            None => Err(self.lacks("version", &number.to_string())),
        }
    }

    fn lacks(&self, by: &str, selector: &str) -> Refusal {
        let name = &self.name;
        let text = format!(
            "Systems Manager could not find {by} {selector} of {name}. Verify the {by} and try again."
        );
        Refusal::common("ParameterVersionNotFound", text)
    }

    /// What `GetParameter` tells of a version.
    pub fn shown(&self, version: &Version, decrypted: bool) -> Value {
        json!({
            "ARN": self.arn,
            "DataType": version.data_type,
            "LastModifiedDate": seconds(version.modified_ms),
            "Name": self.name,
            "Type": version.kind.as_str(),
            "Value": version.shown(decrypted),
            "Version": version.number,
        })
    }
}

impl Version {
    /// The value, or something that looks like its ciphertext and says nothing of it.
    pub fn shown(&self, decrypted: bool) -> String {
        match self.kind {
            Kind::Secure if !decrypted => ciphertext(self.modified_ms, self.number),
            _ => self.value.clone(),
        }
    }
}

/// A blob of KMS in base64 begins with its version and key id; the rest is noise here.
fn ciphertext(modified_ms: u64, number: u64) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = modified_ms ^ (number << 48) ^ 0x9e37_79b9_7f4a_7c15;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(DIGITS[usize::try_from(state >> 58).unwrap_or(0)])
    });
    "AQICAHh".chars().chain(noise.take(185)).collect()
}

/// The name in an ARN; a name as it is.
pub fn name_of(name: &str) -> &str {
    match name.strip_prefix("arn:") {
        Some(arn) => arn.split_once(":parameter/").map_or(name, |(_, name)| name),
        None => name,
    }
}

/// Name and selector of `name:3`, `name:label`, or of an ARN with one.
pub fn split_selector(asked: &str) -> (&str, Option<&str>) {
    let name = name_of(asked);
    match name.split_once(':') {
        Some((name, selector)) => (name, Some(selector)),
        None => (name, None),
    }
}
