//! What the engine needs of a protocol. MySQL and PostgreSQL have the same shape: a session of a client, a session with the database,
//! and rules for what passes between them. Bytes in, a [`Turn`] out; no socket.

use crate::config::Config;
use crate::turn::Turn;
use danki_db_pool::{ClientId, ConnId, Key};
use danki_db_wire::Error as WireError;
use std::sync::Arc;

/// Why a client gets no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It has waited as long as it may.
    TimedOut,
    /// Too many wait already.
    Crowded,
    /// The database has refused the account: its own words, as a reply of this protocol.
    Database(Vec<u8>),
}

/// Why the proxy ends a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// It was idle for too long, or connected for too long.
    Idle,
    /// The proxy stops.
    Stop,
    /// The database connection that it was using has gone.
    Lost,
    /// There are too many clients.
    Crowded(u32),
    /// It has sent what the protocol does not allow.
    Broken,
}

/// Facts that both sessions need and that the engine knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub client_tls: bool,
}

pub(crate) trait Protocol: Sized {
    type Client;
    type Server;

    fn new(config: Arc<Config>) -> Self;
    fn reconfigure(&mut self, config: Arc<Config>);

    /// A client has connected.
    fn accept(&mut self, client: ClientId, turn: &mut Turn) -> Self::Client;
    /// Bytes of a client. Returns how many were used; the rest comes again, with more behind it or after [`Turn::resume`].
    fn client_input(
        &mut self,
        facts: Facts,
        client: &mut Self::Client,
        server: Option<&mut Self::Server>,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError>;
    /// Which connections serve this client, and the state that it wants.
    fn wish(&mut self, client: &Self::Client, client_tls: bool) -> Option<(Key, u64)>;
    /// The client has this connection now.
    fn attach(
        &mut self,
        facts: Facts,
        client: &mut Self::Client,
        server: &mut Self::Server,
        untouched: bool,
        turn: &mut Turn,
    );
    /// The client gets none.
    fn refuse(&mut self, client: &mut Self::Client, refusal: Refusal, turn: &mut Turn);
    /// Last words to a client.
    fn farewell(&mut self, client: &mut Self::Client, farewell: Farewell, turn: &mut Turn);
    /// Whether ending this client now interrupts nothing.
    fn at_rest(&self, client: &Self::Client, attached: bool) -> bool;
    /// The client is gone.
    fn forget(&mut self, client: ClientId);

    /// A connection to the database is being made.
    fn connect(&mut self, conn: ConnId, key: Key) -> Self::Server;
    /// TCP is there (MySQL's server speaks first, PostgreSQL's does not).
    fn connected(&mut self, server: &mut Self::Server, turn: &mut Turn);
    /// Bytes of the database, for the client that has the connection, or for none.
    fn server_input(
        &mut self,
        client: Option<(&mut Self::Client, Facts)>,
        server: &mut Self::Server,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError>;
    /// State that the connection is in, to match it with wishes.
    fn state(&self, server: &Self::Server) -> u64;
    /// Whether it is in a transaction, for the metrics.
    fn in_transaction(&self, server: &Self::Server) -> bool;
    /// The key of connections that ask the database how it is.
    fn probe_key(&mut self) -> Option<Key>;
    /// Asks the database for its `max_connections`.
    fn probe(&mut self, server: &mut Self::Server, turn: &mut Turn);
}
