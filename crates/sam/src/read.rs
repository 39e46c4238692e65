//! Typed reading of resolved properties. Every error names the line and the key.

use crate::Error;
use crate::yaml::{Node, Value};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The properties of a resource, with the defaults of `Globals` behind them.
#[derive(Clone, Copy)]
pub(crate) struct Properties<'n> {
    pub node: &'n Node,
}

impl<'n> Properties<'n> {
    pub fn key(self, key: &str) -> Option<&'n Node> {
        self.node.key(key).filter(|node| node.value != Value::Null)
    }

    pub fn text(self, key: &str) -> Result<Option<String>, Error> {
        let Some(node) = self.key(key) else { return Ok(None) };
        let text = node.as_text().ok_or_else(|| wrong(key, node, "text"))?;
        Ok(Some(text.to_owned()))
    }

    pub fn needed(self, key: &str) -> Result<String, Error> {
        self.text(key)?.ok_or_else(|| Error::at(self.node.line, format!("{key} is missing")))
    }

    /// A number within a range.
    pub fn number<T>(self, key: &str, range: RangeInclusive<T>) -> Result<Option<T>, Error>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let line = self.key(key).map_or(0, |node| node.line);
        let (least, most) = (*range.start(), *range.end());
        let number = text.parse().ok().filter(|number| range.contains(number));
        number
            .map(Some)
            .ok_or_else(|| Error::at(line, format!("{key} is {text:?}; allowed: {least} to {most}")))
    }

    /// The properties under a key; empty ones if it is absent.
    pub fn under(self, key: &str) -> Result<Option<Properties<'n>>, Error> {
        let Some(node) = self.key(key) else { return Ok(None) };
        node.as_map().ok_or_else(|| wrong(key, node, "a map"))?;
        Ok(Some(Properties { node }))
    }

    pub fn list(self, key: &str) -> Result<&'n [Node], Error> {
        let Some(node) = self.key(key) else { return Ok(&[]) };
        node.as_list().ok_or_else(|| wrong(key, node, "a list"))
    }

    /// Names and texts, e.g. environment variables.
    pub fn texts(self, key: &str) -> Result<BTreeMap<String, String>, Error> {
        let Some(under) = self.under(key)? else { return Ok(BTreeMap::new()) };
        let entries = under.node.as_map().unwrap_or_default();
        let text = |(name, node): &(String, Node)| {
            let text = node.as_text().ok_or_else(|| wrong(name, node, "text").path(key))?;
            Ok((name.clone(), text.to_owned()))
        };
        entries.iter().map(text).collect()
    }
}

fn wrong(key: &str, node: &Node, wanted: &str) -> Error {
    Error::at(node.line, format!("{key} is {}, not {wanted}", node.kind()))
}

/// `defaults` with `own` over it: maps are merged, lists appended, all else replaced, as SAM merges `Globals`.
pub(crate) fn merged(defaults: &Node, own: &Node) -> Node {
    let value = match (&defaults.value, &own.value) {
        (Value::Map(below), Value::Map(above)) => {
            let mut entries = below.clone();
            for (key, node) in above {
                match entries.iter_mut().find(|(known, _)| known == key) {
                    Some((_, under)) => *under = merged(under, node),
                    None => entries.push((key.clone(), node.clone())),
                }
            }
            Value::Map(entries)
        }
        (Value::List(below), Value::List(above)) => Value::List([below.as_slice(), above].concat()),
        _ => own.value.clone(),
    };
    Node { line: own.line, value }
}
