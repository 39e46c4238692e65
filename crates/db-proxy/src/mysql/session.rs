//! What a session consists of besides its connection: database, variables, statements by content.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Most different states, and statements, that are remembered although nobody uses them.
const REMEMBERED: usize = 10_000;

/// Variables whose values a connection can be given and relieved of, on MySQL and MariaDB alike. Their values at login are asked for.
const RESTORABLE: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "default_week_format",
    "div_precision_increment",
    "foreign_key_checks",
    "group_concat_max_len",
    "innodb_lock_wait_timeout",
    "interactive_timeout",
    "join_buffer_size",
    "lc_time_names",
    "lock_wait_timeout",
    "max_heap_table_size",
    "max_sort_length",
    "net_read_timeout",
    "net_write_timeout",
    "optimizer_switch",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_mode",
    "sql_notes",
    "sql_safe_updates",
    "sql_select_limit",
    "sql_warnings",
    "time_zone",
    "tmp_table_size",
    "unique_checks",
    "wait_timeout",
];
const RESTORABLE_MARIADB: &[&str] = &["max_statement_time", "tx_isolation", "tx_read_only"];
const RESTORABLE_MYSQL: &[&str] = &["max_execution_time", "transaction_isolation", "transaction_read_only"];

/// Switches the trackers on. Their reports are the only source of what a statement has changed.
pub(crate) const TRACK: &str =
    "SET session_track_system_variables = '*', session_track_schema = ON, session_track_state_change = ON";

/// Assigns each restorable variable to itself: the tracker then tells its value, and no result set has to be read.
pub(crate) fn ask_base(version: &str) -> String {
    let more = if version.contains("MariaDB") { RESTORABLE_MARIADB } else { RESTORABLE_MYSQL };
    let pairs: Vec<_> = RESTORABLE.iter().chain(more).map(|name| format!("{name} = @@{name}")).collect();
    format!("SET {}", pairs.join(", "))
}

/// Names and values of variables.
pub(crate) type Variables = BTreeMap<String, String>;

/// The part of a session's state that can be carried to another connection.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub number: u64,
    pub database: Option<String>,
    /// What differs from the values after login.
    pub variables: Variables,
}

/// A statement of the binary protocol.
#[derive(Debug)]
pub(crate) struct Statement {
    pub number: u64,
    pub sql: Vec<u8>,
    /// It may do more than its text shows.
    pub doubt: bool,
}

/// States and statements are shared by all sessions that have the same: equality is equality of the number.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    states: HashMap<(Option<String>, Variables), Rc<State>>,
    statements: HashMap<Vec<u8>, Rc<Statement>>,
    next: u64,
}

impl Interner {
    pub fn state(&mut self, database: Option<String>, variables: Variables) -> Rc<State> {
        let content = (database, variables);
        if let Some(found) = self.states.get(&content) {
            return Rc::clone(found);
        }
        if self.states.len() >= REMEMBERED {
            self.states.retain(|_, state| Rc::strong_count(state) > 1);
        }
        self.next += 1;
        let (database, variables) = content.clone();
        let state = Rc::new(State { number: self.next, database, variables });
        self.states.insert(content, Rc::clone(&state));
        state
    }

    pub fn statement(&mut self, sql: &[u8], doubt: bool) -> Rc<Statement> {
        if let Some(found) = self.statements.get(sql) {
            return Rc::clone(found);
        }
        if self.statements.len() >= REMEMBERED {
            self.statements.retain(|_, statement| Rc::strong_count(statement) > 1);
        }
        self.next += 1;
        let statement = Rc::new(Statement { number: self.next, sql: sql.to_vec(), doubt });
        self.statements.insert(sql.to_vec(), Rc::clone(&statement));
        statement
    }
}

/// The SET that turns a connection with `from` into one with `to`, where `base` is what it had at login. None if nothing differs.
pub(crate) fn transition(base: &Variables, from: &Variables, to: &Variables) -> Option<String> {
    let mut assignments = Vec::new();
    for (name, value) in base {
        let wanted = to.get(name).unwrap_or(value);
        if from.get(name).unwrap_or(value) != wanted {
            assignments.push(format!("{name} = {}", literal(name, wanted)));
        }
    }
    // Assigning a character set changes the collation, so that comes last; the names sort that way.
    (!assignments.is_empty()).then(|| format!("SET {}", assignments.join(", ")))
}

/// A tracked value as SQL.
fn literal(name: &str, value: &str) -> String {
    let number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if number && name != "sql_mode" && name != "time_zone" {
        value.to_owned()
    } else if value.is_empty() && name.starts_with("character_set") {
        "NULL".to_owned()
    } else {
        // Doubled quotes mean the same under every sql_mode; backslashes do not occur in these values.
        format!("'{}'", value.replace('\'', "''").replace('\\', ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn transitions_change_what_differs() {
        let base = variables(&[("autocommit", "ON"), ("sql_mode", "STRICT"), ("wait_timeout", "28800")]);
        let none = Variables::new();
        let off = variables(&[("autocommit", "OFF"), ("wait_timeout", "60")]);
        assert_eq!(
            transition(&base, &none, &off).as_deref(),
            Some("SET autocommit = 'OFF', wait_timeout = 60")
        );
        assert_eq!(
            transition(&base, &off, &none).as_deref(),
            Some("SET autocommit = 'ON', wait_timeout = 28800")
        );
        assert_eq!(transition(&base, &off, &off), None);
        assert_eq!(literal("character_set_results", ""), "NULL");
        assert_eq!(literal("sql_mode", ""), "''");
    }

    #[test]
    fn base_values_are_asked_in_the_server_s_names() {
        assert!(ask_base("10.11.6-MariaDB").contains("tx_isolation = @@tx_isolation"));
        assert!(ask_base("8.0.36").contains("transaction_isolation = @@transaction_isolation"));
    }
}
