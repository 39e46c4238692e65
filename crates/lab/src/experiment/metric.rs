//! `[[expect]]`: a number of the summary, or the ratio of two, beside a published one.

use super::keys::{ExpectKeys, Within};
use crate::BadInput;
use danki_record::Expectation;
use danki_stats::Ratio;
use serde::Serialize;
use serde_json::Value;

/// A figure to hold the results against.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expect {
    /// What is compared.
    pub name: String,
    /// The number.
    pub metric: Metric,
    /// The published figure, if there is one.
    pub published: Option<f64>,
    /// Where the number must lie.
    pub within: Allowed,
    /// Where the published figure comes from.
    pub source: String,
    /// Why the two may differ.
    pub reason: String,
}

/// A number of the summary, or a ratio of two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// As it was written.
    pub text: String,
    /// The number, or the upper one.
    pub over: Operand,
    /// The lower one.
    pub under: Option<Operand>,
}

/// A number of one variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Operand {
    /// Position of the variant.
    pub variant: usize,
    /// JSON pointer within the variant's object.
    pub pointer: String,
}

/// Where a number must lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    /// measured/published between 1/factor and factor.
    Factor(f64),
    /// The measured value itself between these.
    Range(f64, f64),
}

impl Metric {
    /// Reads `variant.path` or `variant.path / variant.path`.
    pub fn parse(text: &str, variants: &[&str]) -> Result<Metric, BadInput> {
        let (over, under) = match text.split_once('/') {
            Some((over, under)) => (over, Some(under)),
            None => (text, None),
        };
        let over = operand(over, variants)?;
        let under = under.map(|under| operand(under, variants)).transpose()?;
        Ok(Metric { text: text.trim().to_owned(), over, under })
    }

    /// The number, if the summary has it. `variants` are the variants' objects of `summary.json`.
    pub fn measure(&self, variants: &[Value]) -> Option<f64> {
        let number = |o: &Operand| variants.get(o.variant)?.pointer(&o.pointer)?.as_f64();
        let over = number(&self.over)?;
        match &self.under {
            None => Some(over),
            Some(under) => number(under).filter(|under| *under != 0.0).map(|under| over / under),
        }
    }
}

fn operand(text: &str, variants: &[&str]) -> Result<Operand, BadInput> {
    let text = text.trim();
    let shape =
        || BadInput::new(format!("metric {text:?} is not VARIANT.PATH or VARIANT.PATH / VARIANT.PATH"));
    let (variant, path) = text.split_once('.').ok_or_else(shape)?;
    if path.is_empty() || path.split('.').any(str::is_empty) {
        return Err(shape());
    }
    let position = variants.iter().position(|v| *v == variant).ok_or_else(|| {
        BadInput::new(format!("metric {text:?} names no variant of the experiment"))
            .hint(format!("variants are: {}", variants.join(", ")))
    })?;
    Ok(Operand { variant: position, pointer: format!("/{}", path.replace('.', "/")) })
}

impl Expect {
    pub(super) fn new(keys: ExpectKeys, variants: &[&str]) -> Result<Expect, BadInput> {
        let metric = Metric::parse(&keys.metric, variants)?;
        let within = match keys.within {
            Within::Factor(factor) if factor >= 1.0 && factor.is_finite() => Allowed::Factor(factor),
            Within::Factor(factor) => {
                return Err(BadInput::new(format!("within = {factor} is outside 1 to infinity"))
                    .hint("within = 2.0 allows half to twice the published figure"));
            }
            Within::Range(range) => {
                let (min, max) = (range.min.unwrap_or(f64::NEG_INFINITY), range.max.unwrap_or(f64::INFINITY));
                if min > max || (range.min, range.max) == (None, None) {
                    return Err(BadInput::new("within needs min, max or both, and min may not be above max"));
                }
                Allowed::Range(min, max)
            }
        };
        if matches!(within, Allowed::Factor(_)) && !keys.published.is_some_and(|p| p > 0.0) {
            return Err(BadInput::new("within as a factor needs a published figure above 0")
                .hint("add published = …, or give within = { min = …, max = … }"));
        }
        let ExpectKeys { name, published, source, reason, .. } = keys;
        Ok(Expect { name, metric, published, within, source, reason })
    }

    /// Holds the summary's variants against it.
    pub fn judge(&self, variants: &[Value]) -> Expectation {
        let measured = self.metric.measure(variants);
        let ratio = self.published.zip(measured).map(|(published, measured)| Ratio { measured, published });
        let within = match (self.within, measured) {
            (Allowed::Factor(factor), _) => ratio.is_some_and(|ratio| ratio.within_factor(factor)),
            (Allowed::Range(min, max), Some(measured)) => (min..=max).contains(&measured),
            (Allowed::Range(..), None) => false,
        };
        Expectation {
            name: self.name.clone(),
            metric: self.metric.text.clone(),
            published: self.published,
            measured,
            ratio: ratio.and_then(Ratio::value),
            within,
            allowed: self.within.to_string(),
            source: self.source.clone(),
            reason: self.reason.clone(),
        }
    }
}

impl std::fmt::Display for Allowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Allowed::Factor(factor) => write!(f, "×/÷ {factor}"),
            Allowed::Range(min, max) if max == f64::INFINITY => write!(f, "≥ {min}"),
            Allowed::Range(min, max) if min == f64::NEG_INFINITY => write!(f, "≤ {max}"),
            Allowed::Range(min, max) => write!(f, "{min} … {max}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::keys::RangeKeys;
    use serde_json::json;

    #[test]
    fn metrics_read_and_measure() {
        let summary = [json!({"d": {"p50": 6.0}, "n": 3}), json!({"d": {"p50": 2.0}, "n": 0})];
        let check = |text: &str, expect: Option<f64>| {
            let metric = Metric::parse(text, &["off", "on"]).expect(text);
            assert_eq!(metric.measure(&summary), expect, "{text}");
        };
        check("off.d.p50", Some(6.0));
        check("off.d.p50 / on.d.p50", Some(3.0));
        check("off.n / on.n", None);
        check("on.d.p99", None);
        for text in ["", "off", "off.", ".d", "off..d", "of.d.p50", "off.d / ", "off.n / x.n"] {
            assert!(Metric::parse(text, &["off", "on"]).is_err(), "{text}");
        }
    }

    #[test]
    fn figures_are_judged() {
        let check = |published: Option<f64>, within: Within, measured: f64, expect: bool| {
            let keys = ExpectKeys {
                name: "x".to_owned(),
                metric: "a.n".to_owned(),
                published,
                within,
                source: String::new(),
                reason: String::new(),
            };
            let judged = Expect::new(keys, &["a"]).expect("fine").judge(&[json!({"n": measured})]);
            assert_eq!(judged.within, expect, "{published:?} {within:?} {measured}");
        };
        check(Some(10.0), Within::Factor(2.0), 5.0, true);
        check(Some(10.0), Within::Factor(2.0), 20.1, false);
        check(None, Within::Range(RangeKeys { min: Some(3.0), max: None }), 3.0, true);
        check(Some(8.4), Within::Range(RangeKeys { min: Some(3.0), max: None }), 2.9, false);
    }
}
