//! What a statement does to the session it runs in, read from its text in one pass.
//!
//! This is no parser: it knows words, strings and comments, and the few forms that matter to a pooler. Where a text could do more than
//! it shows, the answer is the careful one.

mod lex;
mod mysql;
mod postgres;

pub use lex::{Dialect, Lexer, Token};
pub use mysql::mysql;
pub use postgres::postgres;

/// Longer statements pin on RDS Proxy (its documentation on pinning).
pub const LONGEST: usize = 16 * 1024;

/// What ties a session to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The text is longer than 16 KiB.
    LongStatement,
    /// A table lock.
    TableLock,
    /// A named or advisory lock.
    NamedLock,
    /// A user variable.
    UserVariable,
    /// A setting that is not tracked.
    Setting,
    /// A property of the next transaction.
    NextTransaction,
    /// A temporary object.
    Temporary,
    /// A question about the statement before.
    Previous,
    /// A prepared statement.
    Prepared,
    /// A comment that the server executes.
    ExecutableComment,
    /// A cursor.
    Cursor,
    /// Notifications.
    Listen,
    /// A library loaded into the session.
    Library,
    /// A sequence function.
    Sequence,
    /// A procedure, block or function whose effects cannot be seen.
    Opaque,
    /// The connection's own number.
    Identity,
    /// A transaction that outlives its session's rules (XA, two-phase).
    Distributed,
    /// The server says that the session has changed.
    StateChanged,
    /// Something else that the proxy does not follow.
    Other,
}

impl Cause {
    /// The reason in words, for logs.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::LongStatement => "the statement is longer than 16384 bytes",
            Self::TableLock => "SQL locked tables",
            Self::NamedLock => "SQL took a session-level lock",
            Self::UserVariable => "SQL uses a user variable",
            Self::Setting => "SQL changed session settings that the proxy doesn't track",
            Self::NextTransaction => "SQL set a property of the next transaction",
            Self::Temporary => "SQL created a temporary object",
            Self::Previous => "SQL asks about the statement before",
            Self::Prepared => "SQL or the protocol uses a prepared statement",
            Self::ExecutableComment => "the statement has an executable comment",
            Self::Cursor => "SQL declared a cursor",
            Self::Listen => "the session listens to notifications",
            Self::Library => "SQL loaded a library",
            Self::Sequence => "SQL used a sequence function",
            Self::Opaque => "SQL runs code whose effects the proxy cannot see",
            Self::Identity => "SQL asks for the connection's number",
            Self::Distributed => "SQL uses a distributed transaction",
            Self::StateChanged => "the server reports a change of session state",
            Self::Other => "the session uses something that the proxy does not follow",
        }
    }
}

/// `KILL`, whose number is the proxy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// The connection as its client knows it.
    pub id: u32,
    /// Where the number stands in the text.
    pub at: (usize, usize),
}

/// What the text of one or several statements says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Why RDS Proxy pins.
    pub rds: Option<Cause>,
    /// Whether only variables are set, which SessionPinningFilters can excuse.
    pub only_sets: bool,
    /// Why careful multiplexing pins.
    pub smart: Option<Cause>,
    /// Settings change, and nothing else.
    pub setting: bool,
    /// The server should be asked what changed before the connection is shared.
    pub doubt: bool,
    /// It asks for facts about the statement before.
    pub previous: bool,
    /// It asks for the last generated number.
    pub last_id: bool,
    /// It kills a connection.
    pub kill: Option<Kill>,
    /// Settings given as literals (PostgreSQL); `None` is a reset.
    pub settings: Vec<(String, Option<String>)>,
    /// It begins or ends a savepoint.
    pub savepoint: bool,
    /// A prepared statement of the session is dropped: its name, or all of them.
    pub deallocate: Option<Option<String>>,
    /// All session state is dropped.
    pub discard_all: bool,
    /// More than one statement.
    pub several: bool,
    /// It changes what names mean to others: tables, types, functions (PostgreSQL).
    pub defines: bool,
}

impl Class {
    fn pin(&mut self, cause: Cause) {
        self.rds.get_or_insert(cause);
        self.smart.get_or_insert(cause);
    }

    fn pin_rds(&mut self, cause: Cause) {
        self.rds.get_or_insert(cause);
    }

    fn pin_smart(&mut self, cause: Cause) {
        self.smart.get_or_insert(cause);
    }
}

/// The statement with its literals replaced, for logs: no data of users, at most `longest` bytes.
pub fn digest(sql: &[u8], dialect: Dialect, longest: usize) -> String {
    let mut out = String::new();
    let mut end = 0;
    let mut parameters = 0;
    for token in Lexer::new(sql, dialect) {
        if out.len() >= longest {
            break;
        }
        if token.start() > end && !out.is_empty() {
            out.push(' ');
        }
        end = token.end();
        match token {
            Token::String { .. } | Token::Number { .. } => {
                parameters += 1;
                out.push_str(&if dialect == Dialect::Postgres {
                    format!("${parameters}")
                } else {
                    "?".into()
                });
            }
            other => out.push_str(&String::from_utf8_lossy(other.text(sql))),
        }
    }
    let cut = (0..=longest.min(out.len())).rev().find(|&at| out.is_char_boundary(at)).unwrap_or(0);
    out.truncate(cut);
    out
}
