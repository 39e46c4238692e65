//! What PostgreSQL statements do to a session. Sources: the pinning page of RDS Proxy's guide; PostgreSQL's manual. PostgreSQL does
//! not tell a client what changed (but for a few settings), so a function that is not known to be harmless is a reason to pin.

use super::{Cause, Class, Dialect, LONGEST, Lexer, Token};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Functions and keywords before a parenthesis that leave the session alone: PostgreSQL 15's `pg_catalog`, without those that take
/// locks, move sequences, change settings or answer for one connection.
static HARMLESS: LazyLock<HashSet<&'static [u8]>> = LazyLock::new(|| {
    include_str!("postgres_functions.txt").split_ascii_whitespace().map(str::as_bytes).collect()
});

/// Reads one or several statements.
pub fn postgres(sql: &[u8]) -> Class {
    let mut class = Class::default();
    if sql.len() > LONGEST {
        class.pin_rds(Cause::LongStatement);
    }
    let mut lexer = Lexer::new(sql, Dialect::Postgres);
    let mut statement = Vec::with_capacity(32);
    let mut statements = 0;
    loop {
        let token = lexer.next();
        match token {
            Some(token) if !token.is_mark(sql, b';') => statement.push(token),
            _ => {
                if !statement.is_empty() {
                    statements += 1;
                    Statement { sql, tokens: &statement, class: &mut class }.read();
                    statement.clear();
                }
                if token.is_none() {
                    break;
                }
            }
        }
    }
    class.several = statements > 1;
    if class.several && !class.settings.is_empty() {
        class.pin_smart(Cause::Setting);
    }
    if class.several && (class.discard_all || class.deallocate.is_some()) {
        class.pin_smart(Cause::Prepared);
    }
    class
}

struct Statement<'a, 'c> {
    sql: &'a [u8],
    tokens: &'a [Token],
    class: &'c mut Class,
}

impl Statement<'_, '_> {
    /// The word at a place, in lower case; empty if it is none or longer than any that matters.
    fn word(&self, at: usize) -> Word {
        match self.tokens.get(at) {
            Some(token @ Token::Word { .. }) => Word::new(token.text(self.sql)),
            _ => Word::new(b""),
        }
    }

    fn read(&mut self) {
        let mut functions = true;
        match self.word(0).bytes() {
            b"set" => return self.set(),
            b"reset" => return self.reset(),
            b"discard" => {
                self.class.pin_rds(Cause::Prepared);
                self.class.discard_all = self.word(1).bytes() == b"all";
            }
            b"prepare" if self.word(1).bytes() == b"transaction" => self.class.pin(Cause::Distributed),
            b"prepare" | b"execute" => self.class.pin(Cause::Prepared),
            b"deallocate" => self.deallocate(),
            b"listen" => self.class.pin(Cause::Listen),
            b"unlisten" => self.class.pin_rds(Cause::Listen),
            b"load" => self.class.pin(Cause::Library),
            b"do" | b"call" => {
                self.class.pin_smart(Cause::Opaque);
                self.class.defines = true;
            }
            b"declare" => self.declare(),
            b"savepoint" | b"release" => self.class.savepoint = true,
            b"rollback" => self.class.savepoint |= (1..4).any(|at| self.word(at).bytes() == b"to"),
            b"create" => {
                functions = false;
                self.create();
            }
            b"alter" | b"drop" | b"import" => {
                functions = false;
                self.class.defines = true;
            }
            b"comment" | b"grant" | b"revoke" | b"copy" | b"vacuum" | b"analyze" | b"truncate" => {
                functions = false;
            }
            _ => {}
        }
        self.anywhere(functions);
    }

    /// What matters in any statement.
    fn anywhere(&mut self, functions: bool) {
        for at in 0..self.tokens.len() {
            let word = self.word(at);
            let text = word.bytes();
            if text.is_empty() {
                continue;
            }
            if text.starts_with(b"pg_temp") {
                self.class.pin_smart(Cause::Temporary);
            }
            // SELECT … INTO TEMP …
            if text == b"into" {
                match self.word(at + 1).bytes() {
                    b"temp" | b"temporary" => self.class.pin(Cause::Temporary),
                    _ => self.class.defines |= self.word(0).bytes() == b"select",
                }
            }
            if !self.tokens.get(at + 1).is_some_and(|next| next.is_mark(self.sql, b'(')) {
                continue;
            }
            match text {
                b"set_config" => self.class.pin(Cause::Setting),
                b"nextval" | b"setval" => {
                    self.class.pin_rds(Cause::Sequence);
                    self.class.pin_smart(Cause::Sequence);
                }
                b"currval" | b"lastval" => self.class.previous = true,
                b"pg_backend_pid" => self.class.pin_smart(Cause::Identity),
                _ if is_session_lock(text) => self.class.pin(Cause::NamedLock),
                _ if functions && !self.names_a_table(at) && !HARMLESS.contains(text) => {
                    self.class.pin_smart(Cause::Opaque);
                }
                _ => {}
            }
        }
    }

    /// `INTO t (`, `WITH t (`, `AS t (`, `::numeric(`, `, t (` of WITH: a name with columns, or a type, not a function.
    fn names_a_table(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        match self.word(before).bytes() {
            b"into" | b"with" | b"recursive" | b"as" | b"table" | b"references" | b"index" => return true,
            _ => {}
        }
        let mark = |at: usize, mark| self.tokens.get(at).is_some_and(|token| token.is_mark(self.sql, mark));
        // `INTO schema.table (`
        mark(before, b':') || (mark(before, b'.') && at >= 3 && self.word(at - 3).bytes() == b"into")
    }

    fn create(&mut self) {
        let temporary = |word: Word| matches!(word.bytes(), b"temp" | b"temporary");
        if (1..5).any(|at| temporary(self.word(at))) {
            self.class.pin(Cause::Temporary);
        } else {
            self.class.defines = true;
        }
    }

    fn declare(&mut self) {
        self.class.pin_rds(Cause::Cursor);
        let hold = |at: usize| self.word(at).bytes() == b"with" && self.word(at + 1).bytes() == b"hold";
        if (1..self.tokens.len()).any(hold) {
            self.class.pin_smart(Cause::Cursor);
        }
    }

    fn deallocate(&mut self) {
        self.class.pin_rds(Cause::Prepared);
        let at = if self.word(1).bytes() == b"prepare" { 2 } else { 1 };
        self.class.deallocate = match (self.word(at).bytes(), self.tokens.get(at)) {
            (b"all", _) => Some(None),
            (_, Some(token)) => Some(Some(self.identifier(*token))),
            (_, None) => None,
        };
    }

    /// A name as the server stores it.
    fn identifier(&self, token: Token) -> String {
        let text = String::from_utf8_lossy(token.text(self.sql)).into_owned();
        match (token, text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"'))) {
            (Token::Name { .. }, Some(inner)) => inner.replace("\"\"", "\""),
            _ => text.to_ascii_lowercase(),
        }
    }

    fn reset(&mut self) {
        self.class.pin_rds(Cause::Setting);
        let first = self.word(1);
        match first.bytes() {
            b"all" | b"role" | b"session" | b"time" => self.class.pin_smart(Cause::Setting),
            _ if self.tokens.len() == 2 => {
                let name = self.tokens.get(1).map(|&token| self.identifier(token));
                self.class.settings.extend(name.map(|name| (name, None)));
                self.class.setting = true;
            }
            _ => self.class.pin_smart(Cause::Setting),
        }
    }

    fn set(&mut self) {
        let mut at = 1;
        match self.word(1).bytes() {
            // Ends with the transaction.
            b"local" | b"constraints" => return self.class.pin_rds(Cause::Setting),
            b"transaction" => return,
            b"session" => at = 2,
            _ => {}
        }
        self.class.pin_rds(Cause::Setting);
        let name = self.word(at);
        let assigned = self.tokens.get(at + 1).is_some_and(|token| token.is_mark(self.sql, b'='))
            || self.word(at + 1).bytes() == b"to";
        let plain = !matches!(name.bytes(), b"role" | b"session_authorization" | b"seed" | b"");
        if !(assigned && plain) {
            return self.class.pin_smart(Cause::Setting);
        }
        let (Some(first), Some(last)) = (self.tokens.get(at + 2), self.tokens.last()) else {
            return self.class.pin_smart(Cause::Setting);
        };
        let value = self.sql.get(first.start()..last.end()).unwrap_or_default();
        let value = String::from_utf8_lossy(value).into_owned();
        let name = String::from_utf8_lossy(name.bytes()).into_owned();
        let value = Some(value).filter(|value| !value.eq_ignore_ascii_case("default"));
        self.class.settings.push((name, value));
        self.class.setting = true;
    }
}

/// Advisory locks of the session; those of a transaction have `xact` in their name.
fn is_session_lock(name: &[u8]) -> bool {
    (name.starts_with(b"pg_advisory_") || name.starts_with(b"pg_try_advisory_"))
        && !name.windows(4).any(|window| window == b"xact")
}

/// A word in lower case, if it is short enough to matter.
#[derive(Clone, Copy)]
struct Word {
    buffer: [u8; 48],
    length: usize,
}

impl Word {
    fn new(text: &[u8]) -> Self {
        // What is longer than any known function is cut, and then not known.
        let mut word = Self { buffer: [0; 48], length: text.len().min(48) };
        for (into, from) in word.buffer.iter_mut().zip(text) {
            *into = from.to_ascii_lowercase();
        }
        word
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}
