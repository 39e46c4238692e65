//! A function's configuration against Lambda's limits: all that is wrong with it, at once.

use crate::{FunctionSpec, Runtime, environment, limits};
use std::fmt;

/// One setting that Lambda would not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Which setting.
    pub what: String,
    /// Its value.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
    /// The next step.
    pub hint: &'static str,
}

impl std::error::Error for SpecError {}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpecError { what, value, allowed, hint } = self;
        write!(f, "{what} is {value}; allowed: {allowed}\nhint: {hint}")
    }
}

impl FunctionSpec {
    /// Everything in it that Lambda would not accept; empty when it is fine. Files are not looked at.
    pub fn validate(&self) -> Vec<SpecError> {
        let mut errors: Vec<SpecError> = [
            self.check_name(),
            self.check_handler(),
            check(
                limits::TIMEOUT_MS.contains(&self.timeout_ms),
                "timeout_ms",
                self.timeout_ms,
                "1000 to 900000",
                "a Lambda timeout is 1 s to 15 min",
            ),
            check(
                limits::EPHEMERAL_MB.contains(&self.ephemeral_mb),
                "ephemeral_mb",
                self.ephemeral_mb,
                "512 to 10240",
                "leave it out for 512",
            ),
            check(
                self.layers.len() <= limits::LAYERS,
                "number of layers",
                self.layers.len(),
                "0 to 5",
                "merge layers",
            ),
            check(
                self.image.is_none() || self.layers.is_empty(),
                "number of layers beside an image",
                self.layers.len(),
                "none",
                "an image has its layers inside",
            ),
            check(
                is_region(&self.region),
                "region",
                format!("{:?}", self.region),
                "an AWS region name",
                "for example ap-northeast-1",
            ),
        ]
        .into_iter()
        .flatten()
        .collect();
        errors.extend(self.check_environment());
        errors
    }

    fn check_name(&self) -> Option<SpecError> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let ok = (1..=limits::NAME_CHARS).contains(&self.name.len()) && self.name.chars().all(legal);
        check(
            ok,
            "function name",
            format!("{:?}", self.name),
            "1 to 64 of a-z A-Z 0-9 - _",
            "rename the function",
        )
    }

    fn check_handler(&self) -> Option<SpecError> {
        if self.image.is_some() {
            return None;
        }
        let h = &self.handler;
        let shape = self.runtime == Runtime::Provided
            || h.rsplit_once('.').is_some_and(|(file, name)| !file.is_empty() && !name.is_empty());
        let ok = shape && h.len() <= limits::HANDLER_CHARS && !h.contains(char::is_whitespace);
        check(
            ok,
            "handler",
            format!("{h:?}"),
            "<file>.<function>, at most 128 characters, no spaces",
            "for example index.handler",
        )
    }

    fn check_environment(&self) -> Vec<SpecError> {
        let total: usize = self.environment.iter().map(|(name, value)| name.len() + value.len()).sum();
        let size = check(
            total <= limits::ENVIRONMENT_BYTES,
            "size of the environment variables",
            format!("{total} bytes"),
            "0 to 4096 bytes in all",
            "shorten or remove variables",
        );
        let names = self.environment.keys().filter_map(|name| {
            let what = "environment variable";
            if environment::is_reserved(name) {
                let hint = "Lambda sets this one itself; remove it";
                return check(false, what, name, "a name that is not reserved", hint);
            }
            let mut chars = name.chars();
            let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
            let ok = first && name.len() >= 2 && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
            check(
                ok,
                what,
                format!("{name:?}"),
                "a letter, then letters, digits or _; 2 or more",
                "rename the variable",
            )
        });
        names.chain(size).collect()
    }
}

fn is_region(region: &str) -> bool {
    let parts: Vec<&str> = region.split('-').collect();
    let words = |p: &&str| !p.is_empty() && p.chars().all(|c| c.is_ascii_lowercase());
    match parts.split_last() {
        Some((number, rest)) => rest.len() >= 2 && rest.iter().all(words) && number.parse::<u8>().is_ok(),
        None => false,
    }
}

fn check(ok: bool, what: &str, value: impl ToString, allowed: &str, hint: &'static str) -> Option<SpecError> {
    (!ok).then(|| SpecError {
        what: what.to_owned(),
        value: value.to_string(),
        allowed: allowed.to_owned(),
        hint,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::tests::spec as spec_for_tests;

    fn complaints(change: impl FnOnce(&mut FunctionSpec)) -> Vec<String> {
        let mut spec = spec_for_tests();
        change(&mut spec);
        spec.validate().into_iter().map(|e| e.what).collect()
    }

    #[test]
    fn each_limit_is_named() {
        assert!(complaints(|_| {}).is_empty());
        assert_eq!(complaints(|s| s.name = "a b".to_owned()), ["function name"]);
        assert_eq!(complaints(|s| s.name = "n".repeat(65)), ["function name"]);
        assert_eq!(complaints(|s| s.handler = "handler".to_owned()), ["handler"]);
        assert!(complaints(|s| (s.handler, s.runtime) = ("main".to_owned(), Runtime::Provided)).is_empty());
        assert_eq!(complaints(|s| s.timeout_ms = 999), ["timeout_ms"]);
        assert_eq!(complaints(|s| s.timeout_ms = 900_001), ["timeout_ms"]);
        assert_eq!(complaints(|s| s.ephemeral_mb = 511), ["ephemeral_mb"]);
        assert_eq!(complaints(|s| s.layers = vec!["l".into(); 6]), ["number of layers"]);
        assert_eq!(complaints(|s| s.region = "tokyo".to_owned()), ["region"]);
        assert!(complaints(|s| s.region = "us-gov-west-1".to_owned()).is_empty());
        let set = |name: &str, value: String| {
            complaints(|s| {
                s.environment.insert(name.to_owned(), value);
            })
        };
        assert_eq!(set("AWS_REGION", String::new()), ["environment variable"]);
        assert_eq!(set("1X", String::new()), ["environment variable"]);
        assert_eq!(set("BIG", "v".repeat(4_094)), ["size of the environment variables"]);
        assert!(set("BIG", "v".repeat(4_093)).is_empty());
    }

    #[test]
    fn an_error_says_what_value_range_and_hint() {
        let mut spec = spec_for_tests();
        spec.timeout_ms = 500;
        let text = spec.validate()[0].to_string();
        assert_eq!(
            text,
            "timeout_ms is 500; allowed: 1000 to 900000\nhint: a Lambda timeout is 1 s to 15 min"
        );
    }
}
