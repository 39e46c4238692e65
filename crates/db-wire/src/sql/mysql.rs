//! What MySQL and MariaDB statements do to a session. Sources: the pinning and limitations pages of RDS Proxy's guide; MySQL's
//! reference manual on session state.

use super::{Cause, Class, Dialect, Kill, LONGEST, Lexer, Token};

/// System variables that RDS Proxy follows for MySQL (its page on pinning), in lower case.
const FOLLOWED: &[&str] = &[
    "auto_increment_increment",
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_database",
    "character_set_filesystem",
    "character_set_results",
    "character_set_server",
    "collation_connection",
    "collation_database",
    "collation_server",
    "interactive_timeout",
    "net_write_timeout",
    "query_cache_type",
    "session_track_schema",
    "sql_mode",
    "time_zone",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
    "tx_read_only",
    "wait_timeout",
];

/// Words before a parenthesis that are no stored function: the server need not be asked what they have done. Sorted.
const HARMLESS: &[&str] = &[
    "abs",
    "adddate",
    "all",
    "and",
    "any",
    "as",
    "avg",
    "between",
    "by",
    "cast",
    "ceil",
    "ceiling",
    "char",
    "char_length",
    "coalesce",
    "concat",
    "concat_ws",
    "convert",
    "count",
    "curdate",
    "current_date",
    "current_time",
    "current_timestamp",
    "curtime",
    "database",
    "date",
    "date_add",
    "date_format",
    "date_sub",
    "datediff",
    "day",
    "decimal",
    "distinct",
    "exists",
    "extract",
    "field",
    "floor",
    "format",
    "from",
    "from_unixtime",
    "greatest",
    "group_concat",
    "hex",
    "hour",
    "if",
    "ifnull",
    "in",
    "index",
    "insert",
    "into",
    "is",
    "isnull",
    "join",
    "json_extract",
    "key",
    "lcase",
    "least",
    "left",
    "length",
    "like",
    "limit",
    "locate",
    "lower",
    "lpad",
    "ltrim",
    "max",
    "md5",
    "min",
    "minute",
    "mod",
    "month",
    "not",
    "now",
    "nullif",
    "on",
    "or",
    "over",
    "partition",
    "pow",
    "power",
    "quote",
    "rand",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "row_number",
    "rpad",
    "rtrim",
    "schema",
    "second",
    "select",
    "sha1",
    "sha2",
    "sign",
    "sleep",
    "sqrt",
    "str_to_date",
    "substr",
    "substring",
    "sum",
    "sysdate",
    "then",
    "time",
    "timestamp",
    "trim",
    "truncate",
    "ucase",
    "unhex",
    "union",
    "unix_timestamp",
    "upper",
    "user",
    "using",
    "utc_timestamp",
    "uuid",
    "value",
    "values",
    "varchar",
    "version",
    "when",
    "where",
    "year",
];

/// Reads one or several statements.
pub fn mysql(sql: &[u8]) -> Class {
    let mut class = Class::default();
    if sql.len() > LONGEST {
        class.pin_rds(Cause::LongStatement);
    }
    let mut reader = Reader { sql, lexer: Lexer::new(sql, Dialect::MySql), class: &mut class };
    let mut statements = 0;
    while let Some(first) = reader.lexer.next() {
        if first.is_mark(sql, b';') {
            continue;
        }
        statements += 1;
        reader.statement(first);
    }
    class.several = statements > 1;
    if class.several {
        class.setting = false;
        class.doubt = true;
    }
    class
}

struct Reader<'a, 'c> {
    sql: &'a [u8],
    lexer: Lexer<'a>,
    class: &'c mut Class,
}

impl Reader<'_, '_> {
    /// One statement, up to its semicolon.
    fn statement(&mut self, first: Token) {
        let mut buffer = [0; 24];
        match lower(first.text(self.sql), &mut buffer) {
            b"set" => return self.set(),
            b"use" => self.class.setting = true,
            b"lock" | b"flush" => self.lock(),
            b"create" | b"drop" => self.create(),
            b"prepare" | b"execute" | b"deallocate" => self.class.pin(Cause::Prepared),
            b"call" => self.class.doubt = true,
            b"do" => self.class.doubt = true,
            b"handler" => self.class.pin(Cause::Cursor),
            b"xa" => self.class.pin_smart(Cause::Distributed),
            b"begin" | b"start" | b"savepoint" | b"rollback" | b"commit" | b"release" => {}
            b"show" => self.show(),
            b"get" => {
                self.class.previous = true;
                self.class.pin_rds(Cause::Previous);
            }
            b"kill" => return self.kill(),
            b"install" | b"load" => self.class.doubt = true,
            _ => {}
        }
        self.body(first);
    }

    /// Looks for what matters anywhere, up to the statement's end.
    fn body(&mut self, first: Token) {
        let mut token = first;
        let mut buffer = [0; 24];
        loop {
            match token {
                Token::Mark { .. } if token.is_mark(self.sql, b';') => return,
                Token::Mark { .. } if token.is_mark(self.sql, b'(') => {}
                Token::Word { .. } => match lower(token.text(self.sql), &mut buffer) {
                    word @ (b"get_lock" | b"release_lock" | b"release_all_locks") => {
                        self.class.pin_smart(Cause::NamedLock);
                        if word == b"get_lock" {
                            self.class.pin_rds(Cause::NamedLock);
                        }
                    }
                    b"row_count" | b"found_rows" => {
                        self.class.previous = true;
                        self.class.pin_rds(Cause::Previous);
                    }
                    b"sql_calc_found_rows" => self.class.pin_smart(Cause::Previous),
                    b"last_insert_id" => {
                        self.class.last_id = true;
                        self.class.doubt = true;
                    }
                    b"connection_id" | b"pseudo_thread_id" => self.class.pin_smart(Cause::Identity),
                    b"nextval" | b"lastval" | b"setval" => self.class.pin_smart(Cause::Sequence),
                    // What a stored function does shows in the trackers only.
                    word if self.calls() && !is_harmless(word) => self.class.doubt = true,
                    _ => {}
                },
                Token::UserVariable { .. } => {
                    self.class.pin_smart(Cause::UserVariable);
                    if self.assigned(token) {
                        self.class.pin_rds(Cause::UserVariable);
                    }
                }
                Token::SystemVariable { .. } => self.variable(token),
                Token::Executable { .. } => self.class.pin(Cause::ExecutableComment),
                _ => {}
            }
            match self.lexer.next() {
                Some(next) => token = next,
                None => return,
            }
        }
    }

    fn calls(&self) -> bool {
        self.lexer.clone().next().is_some_and(|next| next.is_mark(self.sql, b'('))
    }

    /// `@x := …` and `… INTO @x`.
    fn assigned(&self, variable: Token) -> bool {
        let after = self.sql.get(variable.end()..).unwrap_or_default().trim_ascii_start();
        if after.starts_with(b":=") {
            return true;
        }
        let before = self.sql[..variable.start()].trim_ascii_end();
        let list = before.rsplit(|&byte| {
            !(byte == b',' || byte == b'@' || byte.is_ascii_whitespace() || byte.is_ascii_alphanumeric())
        });
        let tail = list.into_iter().next().unwrap_or_default().to_ascii_lowercase();
        tail.ends_with(b"into") || tail.windows(5).any(|window| window == b"into ")
    }

    fn variable(&mut self, token: Token) {
        let mut buffer = [0; 24];
        match lower(token.text(self.sql), &mut buffer) {
            b"@@identity" | b"@@last_insert_id" | b"@@insert_id" => self.class.last_id = true,
            b"@@warning_count" | b"@@error_count" => self.class.previous = true,
            b"@@pseudo_thread_id" => self.class.pin_smart(Cause::Identity),
            _ => {}
        }
    }

    fn next_word(&mut self, buffer: &mut [u8; 24]) -> usize {
        let Some(token) = self.lexer.clone().next() else { return 0 };
        let text = lower(token.text(self.sql), buffer).len();
        if matches!(token, Token::Word { .. }) { text } else { 0 }
    }

    fn lock(&mut self) {
        let mut buffer = [0; 24];
        let length = self.next_word(&mut buffer);
        if matches!(&buffer[..length], b"tables" | b"table" | b"instance") {
            self.class.pin(Cause::TableLock);
        }
    }

    fn create(&mut self) {
        let mut lexer = self.lexer.clone();
        for token in lexer.by_ref().take(3) {
            let mut buffer = [0; 24];
            match lower(token.text(self.sql), &mut buffer) {
                b"temporary" => self.class.pin(Cause::Temporary),
                b"database" | b"schema" => self.class.setting = true,
                _ => {}
            }
        }
    }

    fn show(&mut self) {
        for token in self.lexer.clone().take(6) {
            let mut buffer = [0; 24];
            match lower(token.text(self.sql), &mut buffer) {
                b"warnings" | b"errors" => self.class.previous = true,
                _ => {}
            }
        }
    }

    fn kill(&mut self) {
        for token in self.lexer.by_ref() {
            if token.is_mark(self.sql, b';') {
                return;
            }
            if let Token::Number { start, end } = token
                && let Some(id) =
                    std::str::from_utf8(token.text(self.sql)).ok().and_then(|text| text.parse().ok())
            {
                self.class.kill = Some(Kill { id, at: (start, end) });
            }
        }
    }

    /// SET: its assignments, separated by commas outside of parentheses.
    fn set(&mut self) {
        self.class.setting = true;
        let mut assignment = Vec::new();
        let mut depth = 0_usize;
        while let Some(token) = self.lexer.next() {
            if token.is_mark(self.sql, b'(') {
                depth += 1;
            } else if token.is_mark(self.sql, b')') {
                depth = depth.saturating_sub(1);
            }
            if token.is_mark(self.sql, b';') {
                break;
            }
            if depth == 0 && token.is_mark(self.sql, b',') {
                self.assignment(&assignment);
                assignment.clear();
            } else {
                assignment.push(token);
            }
        }
        self.assignment(&assignment);
    }

    fn assignment(&mut self, tokens: &[Token]) {
        let words: Vec<Vec<u8>> =
            tokens.iter().take(4).map(|token| token.text(self.sql).to_ascii_lowercase()).collect();
        let word = |at: usize| words.get(at).map_or(&b""[..], Vec::as_slice);
        if tokens.iter().any(|token| matches!(token, Token::Executable { .. })) {
            self.class.pin(Cause::ExecutableComment);
        }
        if tokens.iter().skip(1).any(|token| matches!(token, Token::UserVariable { .. })) {
            self.class.pin_smart(Cause::UserVariable);
        }
        if matches!(tokens.first(), Some(Token::UserVariable { .. })) {
            self.class.pin_smart(Cause::UserVariable);
            return self.untracked(Cause::UserVariable);
        }
        match word(0) {
            b"names" | b"charset" => {}
            b"character" if word(1) == b"set" => {}
            b"global" | b"persist" | b"persist_only" | b"@@global" | b"@@persist" => {}
            b"transaction" => self.class.pin(Cause::NextTransaction),
            b"session" | b"local" if word(1) == b"transaction" => {}
            b"password" | b"default" => {}
            b"role" | b"resource" => self.class.pin(Cause::Setting),
            // MariaDB: SET STATEMENT x = y FOR …; lasts as long as the statement, which may be anything.
            b"statement" => {
                self.class.pin(Cause::Setting);
            }
            b"session" | b"local" => self.named(word(1), false),
            b"@@session" | b"@@local" => self.named(word(2), false),
            name if name.starts_with(b"@@") => self.named(&name[2..], true),
            name => self.named(name, false),
        }
    }

    /// A system variable of the session, or with `next` perhaps of the next transaction.
    fn named(&mut self, name: &[u8], next: bool) {
        let name = String::from_utf8_lossy(name).trim_matches('`').to_owned();
        let for_next = ["transaction_isolation", "transaction_read_only", "tx_isolation", "tx_read_only"];
        if next && for_next.contains(&name.as_str()) {
            self.class.pin(Cause::NextTransaction);
        } else if !FOLLOWED.contains(&name.as_str()) {
            self.untracked(Cause::Setting);
        }
    }

    /// What RDS Proxy does not follow, and SessionPinningFilters can excuse.
    fn untracked(&mut self, cause: Cause) {
        if self.class.rds.is_none() {
            self.class.only_sets = true;
        }
        self.class.pin_rds(cause);
    }
}

fn is_harmless(word: &[u8]) -> bool {
    HARMLESS.binary_search_by(|known| known.as_bytes().cmp(word)).is_ok()
}

/// Lower case in a buffer; what is longer than any word that matters is cut.
fn lower<'b>(text: &[u8], buffer: &'b mut [u8; 24]) -> &'b [u8] {
    let length = text.len().min(buffer.len());
    for (into, from) in buffer.iter_mut().zip(text) {
        *into = from.to_ascii_lowercase();
    }
    &buffer[..length]
}
