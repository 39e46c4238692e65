//! X-Ray's filter expressions: which traces to look at.
//!
//! `responsetime <= 0.1 AND service("orders") AND !fault`. The grammar is that of AWS's page "Using filter expressions": keywords with
//! `= != < <= > >= CONTAINS BEGINSWITH ENDSWITH`, joined by `AND`, `OR`, `NOT` or `!`, in parentheses. Times are in seconds. A keyword
//! that danki has no fact for is an error, not a filter that finds nothing.

use crate::document::{Entity, Outcome};
use crate::trace::Trace;
use serde_json::Value;

mod parse;

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFilter {
    /// Position in bytes.
    pub at: usize,
    /// What was expected.
    pub what: String,
}

/// A filter expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Both.
    And(Box<Filter>, Box<Filter>),
    /// Either.
    Or(Box<Filter>, Box<Filter>),
    /// Not.
    Not(Box<Filter>),
    /// A keyword that is true or not.
    Is(Flag),
    /// A keyword against a number.
    Number(Quantity, Compare, f64),
    /// A keyword against a text.
    Text(Field, Compare, String),
    /// A service, or anything called, of this name is in the trace.
    Service(String),
}

/// Keywords that are true or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Nothing went wrong.
    Ok,
    /// A 4xx somewhere.
    Error,
    /// A 5xx, or an error of the function.
    Fault,
    /// A 429 somewhere.
    Throttle,
    /// Something has not ended.
    Partial,
}

/// Keywords that are numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// Length of the first segment, s.
    ResponseTime,
    /// First begin to last end, s.
    Duration,
    /// Any HTTP status.
    HttpStatus,
    /// An annotation.
    Annotation(String),
}

/// Keywords that are texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Any URL.
    HttpUrl,
    /// Any method.
    HttpMethod,
    /// The user of a segment.
    User,
    /// An annotation.
    Annotation(String),
}

/// How a keyword is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `CONTAINS`
    Contains,
    /// `BEGINSWITH`
    Begins,
    /// `ENDSWITH`
    Ends,
}

impl Filter {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Filter, BadFilter> {
        parse::expression(text)
    }

    /// Whether a trace is one of those asked for.
    pub fn takes(&self, trace: &Trace) -> bool {
        let any = |of: &dyn Fn(&Entity) -> bool| trace.entities.iter().any(of);
        match self {
            Filter::And(a, b) => a.takes(trace) && b.takes(trace),
            Filter::Or(a, b) => a.takes(trace) || b.takes(trace),
            Filter::Not(inner) => !inner.takes(trace),
            Filter::Is(Flag::Ok) => trace.entities.iter().all(|e| e.outcome == Outcome::Ok),
            Filter::Is(Flag::Error) => any(&|e| matches!(e.outcome, Outcome::Error | Outcome::Throttle)),
            Filter::Is(Flag::Fault) => any(&|e| e.outcome == Outcome::Fault),
            Filter::Is(Flag::Throttle) => any(&|e| e.outcome == Outcome::Throttle),
            Filter::Is(Flag::Partial) => any(&|e| e.end_ns.is_none()),
            Filter::Number(quantity, compare, to) => {
                quantity.of(trace).iter().any(|n| compare.number(*n, *to))
            }
            Filter::Text(field, compare, to) => field.of(trace).iter().any(|text| compare.text(text, to)),
            // Calls that danki saw are named by service and operation.
            Filter::Service(name) => any(&|e| {
                e.name == *name || e.name.split_once(' ').is_some_and(|(service, _)| service == name)
            }),
        }
    }
}

impl Trace {
    /// Length of its first segment, ns: X-Ray's response time.
    pub fn response_ns(&self) -> u64 {
        let segments = self.entities.iter().filter(|e| e.origin.is_some());
        segments.min_by_key(|e| e.start_ns).and_then(Entity::len_ns).unwrap_or(0)
    }
}

impl Quantity {
    fn of(&self, trace: &Trace) -> Vec<f64> {
        match self {
            Quantity::ResponseTime => vec![trace.response_ns() as f64 / 1e9],
            Quantity::Duration => vec![trace.span().len_ns() as f64 / 1e9],
            Quantity::HttpStatus => {
                let status = |e: &Entity| {
                    let http = e.details.get("http")?;
                    http["response"]["status"].as_f64().or_else(|| http["status"].as_f64())
                };
                trace.entities.iter().filter_map(status).collect()
            }
            Quantity::Annotation(key) => annotations(trace, key).filter_map(Value::as_f64).collect(),
        }
    }
}

impl Field {
    fn of<'a>(&self, trace: &'a Trace) -> Vec<&'a str> {
        let http = |name: &'static str| {
            move |e: &'a Entity| e.details.get("http").and_then(|http| http["request"][name].as_str())
        };
        match self {
            Field::HttpUrl => trace.entities.iter().filter_map(http("url")).collect(),
            Field::HttpMethod => trace.entities.iter().filter_map(http("method")).collect(),
            Field::User => trace.entities.iter().filter_map(|e| e.details.get("user")?.as_str()).collect(),
            Field::Annotation(key) => annotations(trace, key).filter_map(Value::as_str).collect(),
        }
    }
}

fn annotations<'a>(trace: &'a Trace, key: &str) -> impl Iterator<Item = &'a Value> {
    trace.entities.iter().filter_map(move |e| e.details.get("annotations")?.get(key))
}

impl Compare {
    fn number(self, n: f64, to: f64) -> bool {
        match self {
            Compare::Equal => n == to,
            Compare::Unequal => n != to,
            Compare::Less => n < to,
            Compare::AtMost => n <= to,
            Compare::More => n > to,
            Compare::AtLeast => n >= to,
            Compare::Contains | Compare::Begins | Compare::Ends => false,
        }
    }

    fn text(self, text: &str, to: &str) -> bool {
        match self {
            Compare::Equal => text == to,
            Compare::Unequal => text != to,
            Compare::Contains => text.contains(to),
            Compare::Begins => text.starts_with(to),
            Compare::Ends => text.ends_with(to),
            Compare::Less | Compare::AtMost | Compare::More | Compare::AtLeast => false,
        }
    }
}

#[cfg(test)]
mod tests;
