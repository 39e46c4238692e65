//! What a session consists of besides its connection: settings, and statements by content.

use danki_db_wire::sql::Class;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Most different settings, and statements, that are remembered although nobody uses them.
const REMEMBERED: usize = 10_000;

/// Settings that differ from what a fresh connection has: name → the SQL that makes it so.
#[derive(Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Settings {
    pub number: u64,
    pub statements: BTreeMap<String, String>,
}

/// Parameters that the server reports.
pub(crate) type Parameters = BTreeMap<Vec<u8>, Vec<u8>>;

/// What besides its text decides on what a statement means: the settings that it is prepared with, and how often tables, types or
/// functions had been defined anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub settings: u64,
    pub definitions: u64,
}

/// A statement of the extended protocol: what Parse says besides the name.
#[derive(Debug)]
pub(crate) struct Statement {
    pub number: u64,
    meaning: Meaning,
    pub name: Vec<u8>,
    pub rest: Vec<u8>,
    pub class: Class,
}

/// Settings and statements are shared by all sessions that have the same: equality is equality of the number.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    settings: HashMap<BTreeMap<String, String>, Rc<Settings>>,
    statements: HashMap<Vec<u8>, Vec<Rc<Statement>>>,
    next: u64,
}

impl Interner {
    pub fn settings(&mut self, statements: BTreeMap<String, String>) -> Rc<Settings> {
        if let Some(found) = self.settings.get(&statements) {
            return Rc::clone(found);
        }
        if self.settings.len() >= REMEMBERED {
            self.settings.retain(|_, settings| Rc::strong_count(settings) > 1);
        }
        self.next += 1;
        let number = if statements.is_empty() { 0 } else { self.next };
        let settings = Rc::new(Settings { number, statements: statements.clone() });
        self.settings.insert(statements, Rc::clone(&settings));
        settings
    }

    pub fn statement(
        &mut self,
        rest: &[u8],
        meaning: Meaning,
        class: impl FnOnce() -> Class,
    ) -> Rc<Statement> {
        let same = |statement: &&Rc<Statement>| statement.meaning == meaning;
        if let Some(found) = self.statements.get(rest).and_then(|all| all.iter().find(same)) {
            return Rc::clone(found);
        }
        if self.statements.len() >= REMEMBERED {
            self.statements.retain(|_, all| {
                all.retain(|statement| Rc::strong_count(statement) > 1);
                !all.is_empty()
            });
        }
        self.next += 1;
        let name = format!("danki_{}", self.next).into_bytes();
        let rest = rest.to_vec();
        let statement =
            Rc::new(Statement { number: self.next, meaning, name, rest: rest.clone(), class: class() });
        let all = self.statements.entry(rest).or_default();
        all.retain(|old| Rc::strong_count(old) > 1);
        all.push(Rc::clone(&statement));
        statement
    }
}

/// The SQL that turns a connection with `from` into one with `to`; empty if nothing differs.
pub(crate) fn transition(from: &Settings, to: &Settings) -> String {
    let mut sql = String::new();
    for name in from.statements.keys().filter(|name| !to.statements.contains_key(*name)) {
        sql += &format!("RESET {name};");
    }
    for (name, statement) in &to.statements {
        if from.statements.get(name) != Some(statement) {
            sql += statement;
            sql.push(';');
        }
    }
    sql
}

/// The SQL that sets a parameter of the startup packet. None: the name is none.
pub(crate) fn startup_setting(name: &str, value: &str) -> Option<(String, String)> {
    let mut parts = name.split('.');
    let is_name = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if !parts.all(is_name) || name.len() > 63 {
        return None;
    }
    let name = name.to_ascii_lowercase();
    // A literal that means the same whatever `standard_conforming_strings` is.
    let escaped = value.replace('\\', "\\\\").replace('\'', "''");
    Some((name.clone(), format!("SELECT pg_catalog.set_config('{name}', E'{escaped}', false)")))
}

/// `-c name=value` and `--name=value` of the startup packet's `options`. None: it has something else.
pub(crate) fn startup_options(options: &str) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut words = split_options(options).into_iter();
    while let Some(word) = words.next() {
        let pair = match word.as_str() {
            "-c" => words.next()?,
            _ => word.strip_prefix("--").or_else(|| word.strip_prefix("-c"))?.to_owned(),
        };
        let (name, value) = pair.split_once('=')?;
        found.push((name.replace('-', "_"), value.to_owned()));
    }
    Some(found)
}

/// Words separated by white space, where a backslash keeps the next character.
fn split_options(options: &str) -> Vec<String> {
    let (mut words, mut word, mut inside) = (Vec::new(), String::new(), false);
    let mut characters = options.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                word.extend(characters.next());
                inside = true;
            }
            space if space.is_ascii_whitespace() => {
                if std::mem::take(&mut inside) {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => {
                word.push(other);
                inside = true;
            }
        }
    }
    if inside {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let statements = pairs.iter().map(|(name, sql)| ((*name).to_owned(), (*sql).to_owned())).collect();
        Settings { number: 1, statements }
    }

    #[test]
    fn transitions_change_what_differs() {
        let (a, b) =
            (settings(&[("x", "SET x TO 1"), ("y", "SET y TO 1")]), settings(&[("y", "SET y TO 2")]));
        assert_eq!(transition(&a, &b), "RESET x;SET y TO 2;");
        assert_eq!(transition(&a, &a), "");
    }

    #[test]
    fn startup_parameters_cannot_inject() {
        let (name, sql) = startup_setting("search_path", "a', 'b\\'; DROP TABLE t; --").expect("a name");
        assert_eq!(name, "search_path");
        assert_eq!(
            sql,
            "SELECT pg_catalog.set_config('search_path', E'a'', ''b\\\\''; DROP TABLE t; --', false)"
        );
        for name in ["", "a b", "a;b", "1a", "a'", ".", "a."] {
            assert_eq!(startup_setting(name, "x"), None, "{name}");
        }
    }

    #[test]
    fn options_are_read() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = vec![pair("a", "b c"), pair("work_mem", "1MB"), pair("d", "e")];
        assert_eq!(startup_options("-c a=b\\ c --work-mem=1MB  -cd=e"), Some(expected));
        assert_eq!(startup_options("-e"), None);
        assert_eq!(startup_options(""), Some(vec![]));
    }

    #[test]
    fn equal_contents_have_one_number() {
        let mut interner = Interner::default();
        let mut of = |text: &[u8], settings: u64, definitions: u64| {
            interner.statement(text, Meaning { settings, definitions }, Class::default)
        };
        let a = of(b"SELECT 1\0", 0, 0);
        assert!(Rc::ptr_eq(&a, &of(b"SELECT 1\0", 0, 0)) && a.name.starts_with(b"danki_"));
        for other in [of(b"SELECT 2\0", 0, 0), of(b"SELECT 1\0", 1, 0), of(b"SELECT 1\0", 0, 1)] {
            assert_ne!(other.number, a.number);
        }
        assert_eq!(interner.settings(BTreeMap::new()).number, 0);
    }
}
