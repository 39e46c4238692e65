//! Words, strings, numbers, comments.

/// Whose SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL and MariaDB.
    MySql,
    /// PostgreSQL.
    Postgres,
}

/// A piece of SQL: where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each has the same two fields: the first byte, and the one behind the last")]
pub enum Token {
    /// A keyword or name.
    Word { start: usize, end: usize },
    /// A quoted name.
    Name { start: usize, end: usize },
    /// A string.
    String { start: usize, end: usize },
    /// A number.
    Number { start: usize, end: usize },
    /// `@name` of MySQL.
    UserVariable { start: usize, end: usize },
    /// `@@name` of MySQL, without what follows a dot.
    SystemVariable { start: usize, end: usize },
    /// The head of a comment that MySQL executes; its content follows as tokens.
    Executable { start: usize, end: usize },
    /// Any other character; a letter that is none of the above too.
    Mark { start: usize, end: usize },
}

impl Token {
    /// First byte.
    pub const fn start(&self) -> usize {
        self.span().0
    }

    /// Behind the last byte.
    pub const fn end(&self) -> usize {
        self.span().1
    }

    const fn span(&self) -> (usize, usize) {
        match *self {
            Self::Word { start, end }
            | Self::Name { start, end }
            | Self::String { start, end }
            | Self::Number { start, end }
            | Self::UserVariable { start, end }
            | Self::SystemVariable { start, end }
            | Self::Executable { start, end }
            | Self::Mark { start, end } => (start, end),
        }
    }

    /// Its bytes in the text that it was read from.
    pub fn text<'a>(&self, sql: &'a [u8]) -> &'a [u8] {
        sql.get(self.start()..self.end()).unwrap_or_default()
    }

    /// Whether it is this mark.
    pub fn is_mark(&self, sql: &[u8], mark: u8) -> bool {
        matches!(self, Self::Mark { .. }) && self.text(sql) == [mark]
    }
}

/// Reads tokens; comments and white space are left out.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    dialect: Dialect,
}

impl<'a> Lexer<'a> {
    /// At the start of `sql`.
    pub const fn new(sql: &'a [u8], dialect: Dialect) -> Self {
        Self { sql, at: 0, dialect }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.sql.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Passes white space and comments. Some: the head of an executable comment.
    fn blank(&mut self) -> Option<Token> {
        let mysql = self.dialect == Dialect::MySql;
        while self.at < self.sql.len() {
            match (self.peek(0), self.peek(1)) {
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C, _) => self.at += 1,
                (b'#', _) if mysql => self.line(),
                (b'-', b'-') if !mysql || self.peek(2) <= b' ' => self.line(),
                (b'/', b'*')
                    if mysql && (self.peek(2) == b'!' || (self.peek(2) == b'M' && self.peek(3) == b'!')) =>
                {
                    let start = self.at;
                    self.at += if self.peek(2) == b'!' { 3 } else { 4 };
                    while self.peek(0).is_ascii_digit() {
                        self.at += 1;
                    }
                    return Some(Token::Executable { start, end: self.at });
                }
                (b'/', b'*') => self.block(!mysql),
                // The end of an executable comment.
                (b'*', b'/') if mysql => self.at += 2,
                _ => return None,
            }
        }
        None
    }

    fn line(&mut self) {
        let rest = &self.sql[self.at..];
        self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }

    fn block(&mut self, nested: bool) {
        let mut depth = 0;
        while self.at < self.sql.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') if nested || depth == 0 => depth += 1,
                (b'*', b'/') => depth -= 1,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return;
            }
        }
        self.at = self.sql.len();
    }

    /// From behind the opening quote to behind the closing one.
    fn quoted(&mut self, quote: u8, backslash: bool) {
        while self.at < self.sql.len() {
            let byte = self.peek(0);
            let pair = (byte == b'\\' && backslash) || (byte == quote && self.peek(1) == quote);
            if pair {
                self.at += 2;
            } else {
                self.at += 1;
                if byte == quote {
                    break;
                }
            }
        }
        self.at = self.at.min(self.sql.len());
    }

    fn word(&mut self) {
        while is_word(self.peek(0)) && self.at < self.sql.len() {
            self.at += 1;
        }
    }

    /// `$tag$ … $tag$`. False: it is a parameter, or just a dollar.
    fn dollar(&mut self) -> bool {
        let rest = &self.sql[self.at..];
        let Some(length) = rest[1..].iter().position(|&byte| byte == b'$' || !is_word(byte)) else {
            return false;
        };
        let tag = &rest[..length + 2];
        if tag.last() != Some(&b'$') || tag[1].is_ascii_digit() {
            return false;
        }
        let body = &rest[tag.len()..];
        let closing = body.windows(tag.len()).position(|window| window == tag);
        self.at += closing.map_or(rest.len(), |found| found + 2 * tag.len());
        true
    }

    fn variable(&mut self, start: usize) -> Token {
        if self.peek(1) == b'@' {
            self.at += 2;
            self.word();
            return Token::SystemVariable { start, end: self.at };
        }
        self.at += 1;
        match self.peek(0) {
            quote @ (b'\'' | b'"' | b'`') => {
                self.at += 1;
                self.quoted(quote, quote != b'`');
            }
            _ => {
                while (is_word(self.peek(0)) || self.peek(0) == b'.') && self.at < self.sql.len() {
                    self.at += 1;
                }
            }
        }
        Token::UserVariable { start, end: self.at }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        if let Some(executable) = self.blank() {
            return Some(executable);
        }
        let mysql = self.dialect == Dialect::MySql;
        let start = self.at;
        let first = *self.sql.get(start)?;
        let escaped = matches!(first, b'e' | b'E') && self.peek(1) == b'\'' && !mysql;
        match first {
            b'\'' => {
                self.at += 1;
                self.quoted(b'\'', mysql);
                return Some(Token::String { start, end: self.at });
            }
            _ if escaped => {
                self.at += 2;
                self.quoted(b'\'', true);
                return Some(Token::String { start, end: self.at });
            }
            b'"' | b'`' if mysql || first == b'"' => {
                self.at += 1;
                self.quoted(first, mysql && first == b'"');
                // Under ANSI_QUOTES MySQL's "…" is a name; nothing here depends on which.
                let string = mysql && first == b'"';
                let end = self.at;
                return Some(if string { Token::String { start, end } } else { Token::Name { start, end } });
            }
            b'$' if !mysql && self.dollar() => return Some(Token::String { start, end: self.at }),
            b'@' if mysql => return Some(self.variable(start)),
            b'$' if !mysql && self.peek(1).is_ascii_digit() => {
                self.at += 1;
                self.word();
                return Some(Token::Number { start, end: self.at });
            }
            b'0'..=b'9' => {
                while (is_word(self.peek(0)) || self.peek(0) == b'.') && self.at < self.sql.len() {
                    self.at += 1;
                }
                return Some(Token::Number { start, end: self.at });
            }
            _ if is_word(first) => {
                self.word();
                return Some(Token::Word { start, end: self.at });
            }
            _ => {}
        }
        self.at += 1;
        Some(Token::Mark { start, end: self.at })
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(sql: &str, dialect: Dialect, expected: &[&str]) {
        let found: Vec<_> = Lexer::new(sql.as_bytes(), dialect)
            .map(|token| String::from_utf8_lossy(token.text(sql.as_bytes())).into_owned())
            .collect();
        assert_eq!(found, expected, "{sql}");
    }

    #[test]
    fn tokens_are_found() {
        use Dialect::{MySql, Postgres};
        check(
            "select 'a''b\\'c', `x y` -- end\n+1",
            MySql,
            &["select", "'a''b\\'c'", ",", "`x y`", "+", "1"],
        );
        check("a--b", MySql, &["a", "-", "-", "b"]);
        check("a--b\nc", Postgres, &["a", "c"]);
        check("a /* /* x */ y */ b", Postgres, &["a", "b"]);
        check("a /* /* x */ b", MySql, &["a", "b"]);
        check("/*!50003 set */ @x:=@@a.b", MySql, &["/*!50003", "set", "@x", ":", "=", "@@a", ".", "b"]);
        check("/*M! set */", MySql, &["/*M!", "set"]);
        check(
            "'a\\' || E'a\\'b' $q$ ; $q$ $1",
            Postgres,
            &["'a\\'", "|", "|", "E'a\\'b'", "$q$ ; $q$", "$1"],
        );
        check("# all", MySql, &[]);
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_read_once_and_in_order(sql: Vec<u8>, mysql: bool) {
            let dialect = if mysql { Dialect::MySql } else { Dialect::Postgres };
            let mut end = 0;
            for token in Lexer::new(&sql, dialect) {
                prop_assert!(token.start() >= end && token.end() > token.start() && token.end() <= sql.len());
                end = token.end();
            }
        }
    }
}
