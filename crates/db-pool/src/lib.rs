//! Who gets which database connection, and who waits: a state machine without clock or socket.
//!
//! A pool belongs to one database server and has one cap, as RDS Proxy's `MaxConnectionsPercent` is of the server's
//! `max_connections`. Connections differ by key (account, database, settings that cannot be changed); a connection serves clients
//! of its key only, so the pool closes an idle one of another key when a waiter needs the room. A client that asks becomes a waiter
//! unless a connection is free, and whoever has waited longest comes first. Because opening a connection costs more than lending
//! one, a waiter may be overtaken by others whose key fits what has just become free, but only [`PATIENCE`] times.
//!
//! Every method appends what is to be done to a list of [`Act`]s. The caller does it, in order.

mod conns;
mod pool;
mod waiters;

pub use pool::{Limits, Pool};

/// How often a waiter is overtaken before an idle or returned connection of another key is closed for it.
pub const PATIENCE: u32 = 32;

/// A connection to the database; numbers are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// A client of the proxy; numbers are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// Which connections can serve a client: an account, a database and what else cannot be changed. Interned by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub u32);

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Who asks.
    pub client: ClientId,
    /// What fits.
    pub key: Key,
    /// Its session state: a connection that has it already is taken first.
    pub state: u64,
    /// The connection that it had last: taken first of all, if it is idle.
    pub last: Option<ConnId>,
}

/// What the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The client has this connection now.
    Lend {
        /// To whom.
        client: ClientId,
        /// Which.
        conn: ConnId,
        /// Nobody else has had it since this client had it last.
        untouched: bool,
        /// How long the client has waited.
        waited_ns: u64,
    },
    /// A connection is to be opened; the answer is [`Pool::opened`] or [`Pool::open_failed`].
    Open {
        /// Its number.
        conn: ConnId,
        /// What for.
        key: Key,
    },
    /// The connection is to be closed; the pool has forgotten it.
    Close {
        /// Which.
        conn: ConnId,
        /// Why.
        why: Closed,
    },
    /// The client has waited as long as it may.
    TimedOut {
        /// Who.
        client: ClientId,
        /// How long.
        waited_ns: u64,
    },
    /// Too many wait already.
    Crowded {
        /// Who.
        client: ClientId,
    },
}

/// Why the pool closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// It was given back in a state that nobody may see.
    Dirty,
    /// A waiter with another key needs the room.
    Room,
    /// More were idle than may be.
    Idle,
    /// It is too old.
    Old,
    /// The cap has fallen.
    Cap,
    /// The pool ends.
    Drained,
}

/// The pool's figures at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Opening, lent or idle.
    pub connections: u32,
    /// Being opened.
    pub opening: u32,
    /// Lent.
    pub lent: u32,
    /// Free.
    pub idle: u32,
    /// Clients that wait.
    pub waiting: u32,
}
