//! What a protocol wants done after it has looked at some bytes. The engine does it; the protocols touch no socket.

use danki_db_pool::ClientId;
use danki_db_wire::sql::Cause;

/// A session is tied to its connection from here on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pinned {
    pub cause: Cause,
    /// The statement, without its literals.
    pub digest: String,
}

/// Why a connection to the database could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Waiting may cure it.
    Unavailable(String),
    /// It will not: the database has refused the account. The reply, as the client shall see it.
    Refused(Vec<u8>),
}

/// Somebody asks that another client's statement, or the client itself, be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cancel {
    /// PostgreSQL: these bytes, over a connection of their own.
    Send(Vec<u8>),
    /// The client goes.
    Client(ClientId),
}

/// Collected while bytes are looked at, and emptied when it is done.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub to_client: Vec<u8>,
    pub to_server: Vec<u8>,
    /// TLS begins with the client's next byte.
    pub client_tls: bool,
    /// TLS begins with our next byte to the database.
    pub server_tls: bool,
    /// The client has proved who it is.
    pub client_ready: bool,
    /// The login failed.
    pub auth_failed: bool,
    /// The client needs a connection before it can go on.
    pub borrow: bool,
    /// The connection goes back; whether it is clean.
    pub release: Option<bool>,
    /// The connection is logged in and set up.
    pub server_ready: bool,
    pub server_failed: Option<Failure>,
    /// The database allows so many connections (answer to a probe).
    pub probed: Option<u32>,
    /// Input that the client has sent already can be looked at again.
    pub resume: bool,
    /// The next message is understood as a whole only, and takes so many bytes.
    pub needs: usize,
    /// The database takes no writes: another one does, perhaps.
    pub write_refused: bool,
    /// A statement has begun, or its reply has ended.
    pub began: u32,
    pub ended: u32,
    pub pinned: Option<Pinned>,
    pub cancel: Option<Cancel>,
    pub close_client: bool,
}

impl Turn {
    pub fn clear(&mut self) {
        let (mut to_client, mut to_server) =
            (std::mem::take(&mut self.to_client), std::mem::take(&mut self.to_server));
        to_client.clear();
        to_server.clear();
        *self = Self { to_client, to_server, ..Self::default() };
    }
}
