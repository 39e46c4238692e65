//! What happens in a proxy, for logs. Wording of RDS Proxy's log where it has one.

use danki_db_pool::Closed;
use std::fmt;
use std::net::SocketAddr;

/// Takes events, from the proxy's own thread: it must not block.
pub type Sink = Box<dyn Fn(&Event<'_>) + Send>;

/// One thing that happened. Numbers of clients and servers are the proxy's own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants' words are their documentation; see `Display`")]
pub enum Event<'a> {
    Listening { backlog: usize },
    ClientConnected { client: u64, from: Option<SocketAddr> },
    ClientClosed { client: u64, why: &'a str },
    ServerOpened { server: u64 },
    ServerClosed { server: u64, why: &'a str },
    Borrowed { client: u64, server: u64, waited_ns: u64 },
    Answered { client: u64, took_ns: u64 },
    BorrowTimedOut { client: u64, waited_ns: u64 },
    Pinned { client: u64, server: Option<u64>, reason: &'a str, digest: &'a str },
    Unhealthy { why: String },
    Moved { why: &'a str },
    Failed { what: String },
    Reloaded,
    Draining { clients: usize },
}

impl Event<'_> {
    /// The level that RDS Proxy logs it at.
    pub const fn level(&self) -> &'static str {
        match self {
            Self::Pinned { .. }
            | Self::BorrowTimedOut { .. }
            | Self::Unhealthy { .. }
            | Self::Moved { .. }
            | Self::Failed { .. } => "WARN",
            _ => "INFO",
        }
    }

    /// Whether it may happen with every statement: no log of RDS Proxy shows it.
    pub const fn frequent(&self) -> bool {
        matches!(self, Self::Answered { .. } | Self::Borrowed { waited_ns: 0, .. })
    }

    /// Whether only RDS Proxy's enhanced logging shows it: it happens with every client.
    pub const fn detailed(&self) -> bool {
        !matches!(
            self,
            Self::Pinned { .. }
                | Self::Unhealthy { .. }
                | Self::Moved { .. }
                | Self::Failed { .. }
                | Self::Listening { .. }
                | Self::Draining { .. }
                | Self::Reloaded
                | Self::BorrowTimedOut { .. }
        )
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening { .. } => write!(out, "The proxy accepts connections."),
            Self::ClientConnected { client, from } => {
                write!(out, "[clientConnection={client}] A new client connected")?;
                from.iter().try_for_each(|from| write!(out, " from {from}"))?;
                write!(out, ".")
            }
            Self::ClientClosed { client, why } => {
                write!(out, "[clientConnection={client}] The client connection closed. Reason: {why}.")
            }
            Self::ServerOpened { server } => {
                write!(out, "[dbConnection={server}] A database connection was opened.")
            }
            Self::ServerClosed { server, why } => {
                write!(out, "[dbConnection={server}] The database connection closed. Reason: {why}.")
            }
            Self::Borrowed { client, server, waited_ns } => write!(
                out,
                "[clientConnection={client}] [dbConnection={server}] A database connection was borrowed after {} ms.",
                waited_ns / 1_000_000
            ),
            Self::Answered { client, took_ns } => {
                write!(
                    out,
                    "[clientConnection={client}] A statement was answered after {} ms.",
                    took_ns / 1_000_000
                )
            }
            Self::BorrowTimedOut { client, waited_ns } => write!(
                out,
                "[clientConnection={client}] Timed-out waiting to acquire database connection, after {} ms.",
                waited_ns / 1_000_000
            ),
            Self::Pinned { client, server, reason, digest } => write!(
                out,
                "[clientConnection={client}] The client session was pinned to the database connection [dbConnection={}] for the \
                 remainder of the session. The proxy can't reuse this connection until the session ends. Reason: {reason}. \
                 Digest: \"{digest}\".",
                server.map_or("none yet".to_owned(), |server| server.to_string())
            ),
            Self::Unhealthy { why } => write!(out, "The database does not answer. Reason: {why}."),
            Self::Moved { why } => write!(out, "The database has moved. Reason: {why}."),
            Self::Failed { what } => write!(out, "{what}."),
            Self::Reloaded => write!(out, "The configuration was read again."),
            Self::Draining { clients } => write!(out, "The proxy stops; {clients} clients are connected."),
        }
    }
}

pub(crate) const fn closed(why: Closed) -> &'static str {
    match why {
        Closed::Dirty => "its session's state cannot be shared",
        Closed::Room => "a client with another account or database waits for room",
        Closed::Idle => "more connections are idle than may be",
        Closed::Old => "it is too old",
        Closed::Cap => "the database allows fewer connections",
        Closed::Drained => "the database has moved",
    }
}
