//! YAML text as a tree that knows its lines.
//!
//! A general YAML value would lose two things that a template needs: where a value stands (errors name the line) and CloudFormation's short
//! tags (`!Ref x`), which become their long form (`{Ref: x}`) here so that nothing further on knows both. Scalars stay text: in a template
//! `8080` and `"8080"` mean the same. JSON is YAML, so JSON templates come this way too.

use crate::Error;
use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use std::collections::BTreeMap;

/// CloudFormation takes templates of up to 1 MB (quota "template body size", from S3).
pub(crate) const MAX_BYTES: usize = 1_048_576;
/// Deeper than any template; the walk over the tree is recursive.
const MAX_DEPTH: usize = 64;
/// Aliases copy what they name, and copies of copies grow without end.
const MAX_NODES: usize = 200_000;

/// A value and the line it begins on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub line: usize,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    pub fn text(line: usize, text: impl Into<String>) -> Node {
        Node { line, value: Value::Text(text.into()) }
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&[(String, Node)]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of a key; of a repeated key the last one, as in CloudFormation's reader.
    pub fn key(&self, key: &str) -> Option<&Node> {
        self.as_map()?.iter().rev().find(|(k, _)| k == key).map(|(_, node)| node)
    }

    /// What a person would call it.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Text(_) => "a scalar",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    fn size(&self) -> usize {
        1 + match &self.value {
            Value::Null | Value::Text(_) => 0,
            Value::List(items) => items.iter().map(Node::size).sum(),
            Value::Map(entries) => entries.iter().map(|(_, node)| node.size()).sum(),
        }
    }
}

/// The one document of a text.
pub(crate) fn parse(text: &str) -> Result<Node, Error> {
    if text.len() > MAX_BYTES {
        return Err(Error::at(
            0,
            format!("the template has {} bytes; at most {MAX_BYTES} are allowed", text.len()),
        ));
    }
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|e| Error::at(e.marker().line(), format!("not YAML: {}", e.info())))?;
        builder.event(event, span)?;
    }
    builder.document.ok_or_else(|| Error::at(0, "the template is empty"))
}

#[derive(Default)]
struct Builder {
    /// Collections that are open, outermost first.
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    document: Option<Node>,
}

struct Open {
    line: usize,
    anchor: usize,
    tag: Option<String>,
    items: Vec<Node>,
    is_map: bool,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Error> {
        let line = span.start.line();
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let null =
                    style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let value = if null && tag.is_none() { Value::Null } else { Value::Text(text.into_owned()) };
                self.add(Node { line, value }, anchor, short(tag.as_deref()))
            }
            Event::SequenceStart(anchor, tag) => self.begin(line, anchor, tag.as_deref(), false),
            Event::MappingStart(anchor, tag) => self.begin(line, anchor, tag.as_deref(), true),
            Event::SequenceEnd | Event::MappingEnd => {
                let open = self.open.pop().expect("the parser balances starts and ends");
                let node = close(open.items, open.line, open.is_map)?;
                self.add(node, open.anchor, open.tag)
            }
            Event::Alias(anchor) => {
                let node = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or_else(|| Error::at(line, "an alias to something that is not complete"))?;
                self.nodes += node.size();
                self.add(node, 0, None)
            }
            Event::DocumentStart(_) if self.document.is_some() => {
                Err(Error::at(line, "a second document; a template is one"))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, line: usize, anchor: usize, tag: Option<&Tag>, is_map: bool) -> Result<(), Error> {
        if self.open.len() == MAX_DEPTH {
            return Err(Error::at(line, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.open.push(Open { line, anchor, tag: short(tag), items: Vec::new(), is_map });
        Ok(())
    }

    fn add(&mut self, mut node: Node, anchor: usize, tag: Option<String>) -> Result<(), Error> {
        if let Some(name) = tag {
            let line = node.line;
            node = Node { line, value: Value::Map(vec![(name, node)]) };
        }
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Error::at(node.line, format!("more than {MAX_NODES} values, aliases counted")));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            Some(open) => open.items.push(node),
            None => self.document = Some(node),
        }
        Ok(())
    }
}

/// A finished collection. A map's keys and values come in turns.
fn close(items: Vec<Node>, line: usize, is_map: bool) -> Result<Node, Error> {
    if !is_map {
        return Ok(Node { line, value: Value::List(items) });
    }
    let mut entries: Vec<(String, Node)> = Vec::new();
    let mut merged: Vec<(String, Node)> = Vec::new();
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        match (key.value, value.value) {
            (Value::Text(name), Value::Map(more)) if name == "<<" => merged.extend(more),
            (Value::Text(name), plain) => entries.push((name, Node { line: value.line, value: plain })),
            (key_value, _) => {
                let kind = Node { line: key.line, value: key_value }.kind();
                return Err(Error::at(key.line, format!("a key is {kind}, not text")));
            }
        }
    }
    // The last one of a key counts, so what is merged comes first.
    merged.append(&mut entries);
    Ok(Node { line, value: Value::Map(merged) })
}

/// The long form of CloudFormation's short tag: `!Sub` is `Fn::Sub`, but `Ref` and `Condition` have no prefix.
fn short(tag: Option<&Tag>) -> Option<String> {
    let tag = tag.filter(|tag| tag.handle == "!")?;
    match tag.suffix.as_str() {
        "" => None,
        name @ ("Ref" | "Condition") => Some(name.to_owned()),
        name => Some(format!("Fn::{name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_tags_and_aliases_survive() {
        let text =
            "a: &x\n  k: !Sub 'v-${AWS::Region}'\nb: *x\nc: [1, ~, !GetAtt T.Arn]\nd:\n  <<: *x\n  k: mine\n";
        let root = parse(text).expect("YAML");
        let sub = root.key("b").and_then(|b| b.key("k")).expect("there");
        assert_eq!((sub.line, sub.key("Fn::Sub").and_then(Node::as_text)), (2, Some("v-${AWS::Region}")));
        let c = root.key("c").and_then(Node::as_list).expect("a list");
        assert_eq!((c[0].as_text(), &c[1].value), (Some("1"), &Value::Null));
        assert_eq!(c[2].key("Fn::GetAtt").and_then(Node::as_text), Some("T.Arn"));
        assert_eq!(root.key("d").and_then(|d| d.key("k")).and_then(Node::as_text), Some("mine"));
        assert_eq!(parse("{\"a\": [true, 2]}").expect("JSON").key("a").map(|a| a.kind()), Some("a list"));
    }

    #[test]
    fn what_cannot_be_read_names_its_line() {
        let bomb = (0..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| {
            format!("{text}a{}: &a{} [*a{i}, *a{i}]\n", i + 1, i + 1)
        });
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        for (text, part) in [
            ("a: [1\nb: 2", "line "),
            ("a: 1\n---\nb: 2", "second document"),
            ("", "empty"),
            ("? [a]\n: 1", "a key is a list"),
            (bomb.as_str(), "aliases counted"),
            (deep.as_str(), "nested deeper"),
        ] {
            let error = parse(text).expect_err("bad").to_string();
            assert!(error.contains(part), "{text:.20}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-a-c:!&*<>|{}\\[\\], \n'\"0-9]{0,80}") {
            let _ = parse(&text);
        }
    }
}
