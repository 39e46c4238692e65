//! Where in the file a mistake is, and what was probably meant.

use crate::BadInput;
use toml::de::{DeTable, DeValue};

/// A step to a value: a key, or an index of an array.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// The file's text and its name, for finding places.
pub struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// `file:line` of a byte offset.
    pub fn line(&self, offset: usize) -> String {
        let before = self.text.as_bytes().iter().take(offset);
        format!("{}:{}", self.file, 1 + before.filter(|b| **b == b'\n').count())
    }

    /// `file:line` of a value, or of the innermost table on the way to it that exists.
    pub fn find(&self, path: &[Step<'_>]) -> String {
        let Ok(root) = DeTable::parse(self.text) else { return self.file.to_owned() };
        let mut offset = None;
        let root = DeValue::Table(root.into_inner());
        let mut value = &root;
        for step in path {
            let next = match (value, *step) {
                (DeValue::Table(table), Step::Key(key)) => {
                    table.get_key_value(key).map(|(k, v)| (k.span(), v))
                }
                (DeValue::Array(array), Step::Index(n)) => array.get(n).map(|v| (v.span(), v)),
                _ => None,
            };
            let Some((span, next)) = next else { break };
            offset = Some(span.start);
            value = next.get_ref();
        }
        offset.map_or_else(|| self.file.to_owned(), |offset| self.line(offset))
    }

    /// A parse error in the user's words.
    pub fn explain(&self, error: &toml::de::Error) -> BadInput {
        let place = error.span().map_or_else(|| self.file.to_owned(), |span| self.line(span.start));
        let message = error.message().trim();
        let Some(rest) = message.strip_prefix("unknown field ") else {
            return BadInput::new(message.replace("missing field", "missing key").replace('\n', "; "))
                .at(place);
        };
        let quoted: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        let (unknown, known) = quoted.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
        let bad = BadInput::new(format!("unknown key {unknown:?}")).at(place);
        match nearest(unknown, known) {
            Some(near) => bad.hint(format!("did you mean {near:?}?")),
            None if known.is_empty() => bad,
            None => bad.hint(format!("known here: {}", known.join(", "))),
        }
    }
}

/// The known word that was probably meant.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let best = known.iter().map(|k| (distance(word, k), *k)).min()?;
    (best.0 <= 1 + word.chars().count() / 4).then_some(best.1)
}

/// Insertions, deletions, replacements and swaps of neighbours that make one word of another.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let cheapest = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    if swapped { cheapest.min(rows[i - 2][j - 2] + 1) } else { cheapest }
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant() {
        let known = ["count", "gap_ms", "gaps_ms", "memory_mb"];
        assert_eq!(nearest("conut", &known), Some("count"));
        assert_eq!(nearest("memory", &known), None);
        assert_eq!(nearest("memory_md", &known), Some("memory_mb"));
        assert_eq!(nearest("xyz", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }

    #[test]
    fn places_are_lines() {
        let text =
            "name = 'x'\n[function]\nmemory_mb = 1\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n";
        let source = Source { file: "x.toml", text };
        assert_eq!(source.find(&[Step::Key("function"), Step::Key("memory_mb")]), "x.toml:3");
        assert_eq!(source.find(&[Step::Key("function"), Step::Key("absent")]), "x.toml:2");
        assert_eq!(source.find(&[Step::Key("variant"), Step::Index(1), Step::Key("name")]), "x.toml:7");
        assert_eq!(source.find(&[Step::Key("absent")]), "x.toml");
    }
}
