//! Upstream's JSON → the bodies of AWS's extension: every field there is, null where upstream sent none, dates in RFC 3339, and an
//! empty `ResultMetadata`, as Go's SDK has it. Captured bodies are in `tests/fixtures`. The agent's form is made from the same.

use crate::date::Utc;
use crate::json::{push_member, push_name, push_strings};
use serde::Deserialize;
use std::time::Duration;
use zeroize::{Zeroize, Zeroizing};

/// A body that holds a value, overwritten when dropped.
pub type Body = Zeroizing<Vec<u8>>;

/// A secret as Secrets Manager sends it.
#[derive(Deserialize)]
pub struct Secret {
    #[serde(rename = "ARN")]
    pub(crate) arn: Option<String>,
    #[serde(rename = "CreatedDate")]
    created: Option<Moment>,
    #[serde(rename = "Name")]
    pub(crate) name: Option<String>,
    #[serde(rename = "SecretBinary")]
    binary: Option<String>,
    #[serde(rename = "SecretString")]
    string: Option<String>,
    #[serde(rename = "VersionId")]
    version_id: Option<String>,
    #[serde(rename = "VersionStages")]
    version_stages: Option<Vec<String>>,
}

/// A parameter as Parameter Store sends it.
#[derive(Deserialize)]
pub struct Parameter {
    #[serde(rename = "ARN")]
    pub(crate) arn: Option<String>,
    #[serde(rename = "DataType")]
    data_type: Option<String>,
    #[serde(rename = "LastModifiedDate")]
    modified: Option<Moment>,
    #[serde(rename = "Name")]
    pub(crate) name: Option<String>,
    #[serde(rename = "Selector")]
    pub(crate) selector: Option<String>,
    #[serde(rename = "SourceResult")]
    source_result: Option<String>,
    #[serde(rename = "Type")]
    kind: Option<String>,
    #[serde(rename = "Value")]
    value: Option<String>,
    #[serde(rename = "Version")]
    version: Option<i64>,
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.binary.zeroize();
        self.string.zeroize();
    }
}

impl Drop for Parameter {
    fn drop(&mut self) {
        self.value.zeroize();
        self.source_result.zeroize();
    }
}

/// Seconds since the epoch, as AWS sends them, or text, as some emulators do.
#[derive(Deserialize)]
#[serde(untagged)]
enum Moment {
    Seconds(f64),
    Text(String),
}

impl Moment {
    fn text(&self) -> String {
        match self {
            Moment::Text(text) => text.clone(),
            Moment::Seconds(seconds) => Utc::of(whole_millis(*seconds)).rfc3339(),
        }
    }
}

/// Half a millisecond is added because what follows cuts to milliseconds, which is what Go's SDK reads; what is no date is the epoch.
fn whole_millis(seconds: f64) -> Duration {
    // The year 9999: dates beyond have no RFC 3339 form.
    let seconds = seconds.clamp(0.0, 253_402_300_799.0);
    Duration::try_from_secs_f64(seconds).unwrap_or_default() + Duration::from_micros(500)
}

/// The body of a secret, from upstream's answer to `GetSecretValue`.
pub fn secret(upstream: &[u8]) -> Option<Body> {
    Some(secret_body(&serde_json::from_slice(upstream).ok()?))
}

/// The body of a parameter, from upstream's answer to `GetParameter`.
pub fn parameter(upstream: &[u8]) -> Option<Body> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "Parameter")]
        parameter: Parameter,
    }
    let answer: Answer = serde_json::from_slice(upstream).ok()?;
    Some(parameter_body(&answer.parameter))
}

/// The secrets of an answer to `BatchGetSecretValue`.
pub fn secrets(upstream: &[u8]) -> Option<Vec<Secret>> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "SecretValues")]
        values: Vec<Secret>,
    }
    serde_json::from_slice(upstream).ok().map(|answer: Answer| answer.values)
}

/// The parameters of an answer to `GetParameters`.
pub fn parameters(upstream: &[u8]) -> Option<Vec<Parameter>> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "Parameters")]
        values: Vec<Parameter>,
    }
    serde_json::from_slice(upstream).ok().map(|answer: Answer| answer.values)
}

/// A secret's body.
pub fn secret_body(secret: &Secret) -> Body {
    let mut out = room(secret.string.as_deref().or(secret.binary.as_deref()));
    out.push(b'{');
    push_member(&mut out, "ARN", secret.arn.as_deref());
    push_member(&mut out, "CreatedDate", secret.created.as_ref().map(Moment::text).as_deref());
    push_member(&mut out, "Name", secret.name.as_deref());
    push_member(&mut out, "SecretBinary", secret.binary.as_deref());
    push_member(&mut out, "SecretString", secret.string.as_deref());
    push_member(&mut out, "VersionId", secret.version_id.as_deref());
    push_strings(&mut out, "VersionStages", secret.version_stages.as_deref());
    out.extend_from_slice(b",\"ResultMetadata\":{}}");
    out
}

/// A parameter's body.
pub fn parameter_body(parameter: &Parameter) -> Body {
    let mut out = room(parameter.source_result.as_deref().or(parameter.value.as_deref()));
    out.extend_from_slice(b"{\"Parameter\":{");
    push_member(&mut out, "ARN", parameter.arn.as_deref());
    push_member(&mut out, "DataType", parameter.data_type.as_deref());
    push_member(&mut out, "LastModifiedDate", parameter.modified.as_ref().map(Moment::text).as_deref());
    push_member(&mut out, "Name", parameter.name.as_deref());
    push_member(&mut out, "Selector", parameter.selector.as_deref());
    push_member(&mut out, "SourceResult", parameter.source_result.as_deref());
    push_member(&mut out, "Type", parameter.kind.as_deref());
    push_member(&mut out, "Value", parameter.value.as_deref());
    push_name(&mut out, "Version");
    out.extend_from_slice(parameter.version.unwrap_or_default().to_string().as_bytes());
    out.extend_from_slice(b"},\"ResultMetadata\":{}}");
    out
}

/// Room for a body, so that it seldom grows: growing leaves a copy of the value behind. Escapes lengthen; a sixfold value is rare.
fn room(value: Option<&str>) -> Body {
    Zeroizing::new(Vec::with_capacity(1024 + 3 * value.map_or(0, str::len)))
}

/// The agent's form of a secret's body: what is null is left out, the date is seconds since the epoch as a string.
pub fn agent(body: &[u8]) -> Option<Body> {
    let secret: Secret = serde_json::from_slice(body).ok()?;
    let mut out = room(secret.string.as_deref().or(secret.binary.as_deref()));
    out.push(b'{');
    let members = [
        ("ARN", &secret.arn),
        ("Name", &secret.name),
        ("VersionId", &secret.version_id),
        ("SecretString", &secret.string),
        ("SecretBinary", &secret.binary),
    ];
    for (name, value) in members.into_iter().filter(|(_, value)| value.is_some()) {
        push_member(&mut out, name, value.as_deref());
    }
    push_strings(&mut out, "VersionStages", secret.version_stages.as_deref());
    if let Some(created) = &secret.created {
        push_member(&mut out, "CreatedDate", Some(&epoch_text(&created.text())));
    }
    out.push(b'}');
    Some(out)
}

/// Our own RFC 3339 text back to seconds; any other text is left as it is.
fn epoch_text(text: &str) -> String {
    let parsed = (|| {
        let (day, clock) = text.strip_suffix('Z')?.split_once('T')?;
        let mut day = day.split('-');
        let (year, month, date) = (day.next()?, day.next()?.parse::<usize>().ok()?, day.next()?);
        let month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            .get(month.checked_sub(1)?)?;
        let (clock, fraction) =
            clock.split_once('.').map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));
        let seconds = crate::date::parse_http(&format!("x, {date} {month} {year} {clock}"))?;
        Some(fraction.map_or_else(|| seconds.to_string(), |fraction| format!("{seconds}.{fraction}")))
    })();
    parsed.unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(body: Option<Body>) -> String {
        String::from_utf8(body.expect("a body").to_vec()).expect("UTF-8")
    }

    #[test]
    fn absent_fields_are_null() {
        let none = r#"{"ARN":null,"CreatedDate":null,"Name":null,"SecretBinary":null,"SecretString":null,"VersionId":null,"VersionStages":null,"ResultMetadata":{}}"#;
        assert_eq!(text(secret(b"{}")), none);
        let none = r#"{"Parameter":{"ARN":null,"DataType":null,"LastModifiedDate":null,"Name":null,"Selector":null,"SourceResult":null,"Type":null,"Value":null,"Version":0},"ResultMetadata":{}}"#;
        assert_eq!(text(parameter(b"{\"Parameter\":{}}")), none);
        assert!(parameter(b"{}").is_none() && secret(b"[").is_none());
    }

    #[test]
    fn the_agents_form_leaves_out_what_is_null() {
        let body = secret(br#"{"ARN":"a","CreatedDate":1668586960.499,"Name":"n","SecretString":"s","VersionId":"v","VersionStages":["AWSCURRENT"]}"#);
        let expect = r#"{"ARN":"a","Name":"n","VersionId":"v","SecretString":"s","VersionStages":["AWSCURRENT"],"CreatedDate":"1668586960.499"}"#;
        assert_eq!(text(agent(&body.expect("a body"))), expect);
    }

    #[test]
    fn odd_dates_do_no_harm() {
        for date in ["1e300", "-5", "0", "253402300800", "\"soon\""] {
            let body = secret(format!("{{\"CreatedDate\":{date}}}").as_bytes());
            assert!(agent(&body.expect(date)).is_some(), "{date}");
        }
    }

    proptest! {
        #[test]
        fn any_value_comes_back(value in any::<String>(), seconds in 0.0..4e9_f64) {
            let upstream = serde_json::json!({"SecretString": value, "CreatedDate": seconds}).to_string();
            let body = secret(upstream.as_bytes()).expect("a body");
            let read: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            prop_assert_eq!(read["SecretString"].as_str(), Some(value.as_str()));
            let read: serde_json::Value = serde_json::from_slice(&agent(&body).expect("a body")).expect("JSON");
            let back: f64 = read["CreatedDate"].as_str().expect("text").parse().expect("seconds");
            prop_assert!((back - seconds).abs() < 0.002);
        }

        #[test]
        fn any_bytes_are_shaped_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (secret(&bytes).is_some(), parameter(&bytes).is_some(), secrets(&bytes).is_some(), agent(&bytes).is_some());
        }
    }
}
