//! MySQL and MariaDB: sessions of clients and sessions with the database.

mod command;
mod login;
mod reply;
mod server;
mod session;
mod statement;

use crate::auth;
use crate::config::{Config, Mode, PasswordType, TargetTls};
use crate::protocol::{Facts, Farewell, Protocol, Refusal};
use crate::turn::{Pinned, Turn};
use danki_db_pool::{ClientId, ConnId, Key};
use danki_db_wire::Error as WireError;
use danki_db_wire::mysql::{Greeting, caps, err_packet, put_packet, status};
use danki_db_wire::sql::{Cause, Dialect, digest};
use server::{Own, Server};
use session::{Interner, State, Variables};
use statement::Prepared;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Most combinations of account, capabilities and encryption; a client cannot make the proxy keep more.
const KEYS: usize = 10_000;
/// Length of a digest in logs.
const DIGEST: usize = 1024;
/// Clients' numbers begin here, far from those that the database gives.
const FIRST_CLIENT: u32 = 0x4000_0000;

/// Capabilities that clients may use. What is not here would have to be understood first: compression, session tracking for clients,
/// query attributes, MariaDB's own.
const OFFERED: u32 = caps::LONG_PASSWORD
    | caps::FOUND_ROWS
    | caps::LONG_FLAG
    | caps::CONNECT_WITH_DB
    | caps::NO_SCHEMA
    | caps::ODBC
    | caps::LOCAL_FILES
    | caps::IGNORE_SPACE
    | caps::PROTOCOL_41
    | caps::INTERACTIVE
    | caps::IGNORE_SIGPIPE
    | caps::TRANSACTIONS
    | caps::SECURE_CONNECTION
    | caps::MULTI_STATEMENTS
    | caps::MULTI_RESULTS
    | caps::PS_MULTI_RESULTS
    | caps::PLUGIN_AUTH
    | caps::CONNECT_ATTRS
    | caps::PLUGIN_AUTH_LENENC
    | caps::CAN_HANDLE_EXPIRED_PASSWORDS
    | caps::DEPRECATE_EOF;

/// Those that change what a statement means or how its reply looks: only clients with the same share connections.
const MEANINGFUL: u32 = caps::FOUND_ROWS
    | caps::LONG_FLAG
    | caps::NO_SCHEMA
    | caps::ODBC
    | caps::LOCAL_FILES
    | caps::IGNORE_SPACE
    | caps::INTERACTIVE
    | caps::MULTI_STATEMENTS
    | caps::MULTI_RESULTS
    | caps::PS_MULTI_RESULTS
    | caps::DEPRECATE_EOF;

/// Which connections serve a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyParts {
    user: String,
    capabilities: u32,
    collation: u8,
    /// A database cannot be left again, only changed.
    in_database: bool,
    tls: bool,
}

/// How to find a client by the number that it was greeted with.
struct Thread {
    client: ClientId,
    /// The number of the connection that it has.
    backend: Option<u32>,
}

pub(crate) struct MySql {
    config: Arc<Config>,
    keys: Vec<KeyParts>,
    key_numbers: HashMap<KeyParts, Key>,
    interner: Interner,
    threads: HashMap<u32, Thread>,
    /// `LAST_INSERT_ID()` of clients whose connection another client has been given.
    learned: HashMap<ClientId, String>,
    /// Databases that an account has been let into.
    databases: HashSet<(String, String)>,
    /// As the database greets.
    version: String,
    server_caps: u32,
}

enum Phase {
    /// It has been greeted.
    Login,
    /// It was asked for another proof, with this packet number.
    Proof,
    /// Its database is being entered.
    Entering,
    Ready,
}

pub(crate) struct Client {
    id: ClientId,
    tls: bool,
    phase: Phase,
    scramble: [u8; 20],
    sequence: u8,
    capabilities: u32,
    collation: u8,
    user: String,
    state: Rc<State>,
    statements: HashMap<u32, Prepared>,
    next_statement: u32,
    /// Statements with an open cursor, or data that was sent ahead.
    holds: HashSet<u32>,
    pinned: Option<Cause>,
    untouched: bool,
    /// Something has run, so there is something that could be asked about.
    ran: bool,
    /// An INSERT has given a number, so there is one that could be asked for.
    inserted: bool,
    /// The reply to the command that comes next, which is not executed.
    refused: Option<Vec<u8>>,
    stream: Stream,
    /// A file goes to the server.
    uploading: bool,
    status: u16,
    /// The server may know of changes that its reply could not tell.
    wants_check: bool,
    /// It is being asked.
    checking: bool,
    /// It was asked since the last statement, which has overwritten what the statement left.
    asked: bool,
    /// The last part of the reply could tell of changes.
    told: bool,
}

/// A packet, or several that belong together, on its way through.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    left: usize,
    continued: bool,
    dropped: bool,
}

impl Stream {
    const fn is_open(&self) -> bool {
        self.left > 0 || self.continued
    }
}

impl MySql {
    fn key(&mut self, parts: KeyParts) -> Option<Key> {
        if let Some(&key) = self.key_numbers.get(&parts) {
            return Some(key);
        }
        if self.keys.len() >= KEYS {
            return None;
        }
        let key = Key(self.keys.len() as u32);
        self.keys.push(parts.clone());
        self.key_numbers.insert(parts, key);
        Some(key)
    }

    fn is_rds(&self) -> bool {
        matches!(self.config.mode, Mode::Rds)
    }

    fn pin(&self, client: &mut Client, cause: Cause, sql: &[u8], turn: &mut Turn) {
        if client.pinned.is_none() {
            client.pinned = Some(cause);
            turn.pinned = Some(Pinned { cause, digest: digest(sql, Dialect::MySql, DIGEST) });
        }
    }

    /// The connection goes back if nothing ties the session to it; the server is asked first if it might know more.
    fn release_if_free(&mut self, client: &mut Client, server: &mut Server, turn: &mut Turn) {
        let tied = client.pinned.is_some()
            || !client.holds.is_empty()
            || client.uploading
            || client.stream.is_open();
        if tied || server.status & status::IN_TRANS != 0 || !server.is_quiet() {
            return;
        }
        if std::mem::take(&mut client.wants_check) {
            client.checking = true;
            client.asked = true;
            server.push(Own::Check);
            server.next_own(turn);
            return;
        }
        if let Some(thread) = self.threads.get_mut(&number(client.id)) {
            thread.backend = None;
        }
        // Once in a database, a connection is of no use to clients without one.
        turn.release = Some(server.parts.in_database == server.state.database.is_some());
    }

    /// What the proxy has to say about a plugin's name.
    fn plugin(&self) -> &'static str {
        match self.config.client_password_auth_type {
            Some(PasswordType::MysqlCachingSha2Password) => "caching_sha2_password",
            _ => "mysql_native_password",
        }
    }
}

const fn number(client: ClientId) -> u32 {
    FIRST_CLIENT + (client.0 as u32 & 0x3FFF_FFFF)
}

fn error(turn: &mut Turn, sequence: u8, code: u16, state: &str, text: &str) {
    put_packet(&mut turn.to_client, sequence, &err_packet(code, state, text));
}

impl Protocol for MySql {
    type Client = Client;
    type Server = Server;

    fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            keys: Vec::new(),
            key_numbers: HashMap::new(),
            interner: Interner::default(),
            threads: HashMap::new(),
            learned: HashMap::new(),
            databases: HashSet::new(),
            version: "8.0.36".to_owned(),
            server_caps: u32::MAX,
        }
    }

    fn reconfigure(&mut self, config: Arc<Config>) {
        self.config = config;
        self.databases.clear();
    }

    fn accept(&mut self, id: ClientId, turn: &mut Turn) -> Client {
        let scramble = auth::scramble();
        let tls = if self.config.tls_certificate.is_some() { caps::SSL } else { 0 };
        let greeting = Greeting {
            version: self.version.clone(),
            thread: number(id),
            scramble,
            caps: OFFERED & (self.server_caps | caps::CONNECT_ATTRS | caps::PLUGIN_AUTH_LENENC) | tls,
            collation: 45,
            status: status::AUTOCOMMIT,
            plugin: self.plugin().to_owned(),
        };
        put_packet(&mut turn.to_client, 0, &greeting.build());
        self.threads.insert(number(id), Thread { client: id, backend: None });
        Client {
            id,
            tls: false,
            phase: Phase::Login,
            scramble,
            sequence: 1,
            capabilities: 0,
            collation: 45,
            user: String::new(),
            state: self.interner.state(None, Variables::new()),
            statements: HashMap::new(),
            next_statement: 1,
            holds: HashSet::new(),
            pinned: None,
            untouched: false,
            ran: false,
            inserted: false,
            refused: None,
            stream: Stream::default(),
            uploading: false,
            status: status::AUTOCOMMIT,
            wants_check: false,
            checking: false,
            asked: false,
            told: false,
        }
    }

    fn client_input(
        &mut self,
        facts: Facts,
        client: &mut Client,
        server: Option<&mut Server>,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        match client.phase {
            Phase::Login => self.login(facts, client, bytes, turn),
            Phase::Proof => self.proof(facts, client, bytes, turn),
            Phase::Entering => Ok(self.entered(client, server, turn)),
            Phase::Ready => self.commands(client, server, bytes, turn),
        }
    }

    fn wish(&mut self, client: &Client, client_tls: bool) -> Option<(Key, u64)> {
        let tls = match self.config.target.tls {
            TargetTls::Off => false,
            TargetTls::On => true,
            TargetTls::LikeClient => client_tls,
        };
        let parts = KeyParts {
            user: client.user.clone(),
            capabilities: client.capabilities & MEANINGFUL,
            collation: client.collation,
            in_database: client.state.database.is_some(),
            tls,
        };
        self.key(parts).map(|key| (key, client.state.number))
    }

    fn attach(
        &mut self,
        _facts: Facts,
        client: &mut Client,
        server: &mut Server,
        untouched: bool,
        turn: &mut Turn,
    ) {
        client.untouched = untouched && !client.asked;
        if let Some(thread) = self.threads.get_mut(&number(client.id)) {
            thread.backend = Some(server.thread);
        }
        if let Some(other) = server.inserted_by.filter(|other| *other != client.id) {
            server.inserted_by = None;
            // The number that another client's INSERT was given would be lost.
            if self.threads.get(&number(other)).is_some_and(|thread| thread.client == other) && !self.is_rds()
            {
                server.push(Own::Learn(other));
            }
        }
        server.become_like(&client.state);
        // Without anything to do, the client's input is looked at again anyway.
        server.next_own(turn);
    }

    fn refuse(&mut self, client: &mut Client, refusal: Refusal, turn: &mut Turn) {
        let packet = match refusal {
            // Number and text of RDS Proxy (its troubleshooting page).
            Refusal::TimedOut => {
                err_packet(9501, "HY000", "Timed-out waiting to acquire database connection")
            }
            Refusal::Crowded => err_packet(1040, "08004", "Too many clients wait for a database connection"),
            Refusal::Database(words) => words,
        };
        if matches!(client.phase, Phase::Ready) {
            client.refused = Some(packet);
        } else {
            put_packet(&mut turn.to_client, client.sequence, &packet);
            turn.close_client = true;
        }
    }

    fn farewell(&mut self, client: &mut Client, farewell: Farewell, turn: &mut Turn) {
        // A client that is being served, or not yet, reads this as its answer; one at rest finds it later.
        match farewell {
            Farewell::Idle => error(
                turn,
                0,
                4031,
                "HY000",
                "The client was disconnected by the server because of inactivity",
            ),
            Farewell::Stop => error(turn, 0, 1053, "08S01", "Server shutdown in progress"),
            Farewell::Lost => error(turn, 1, 2013, "HY000", "Lost connection to the database during query"),
            Farewell::Crowded(limit) => {
                turn.to_client.clear();
                error(turn, 0, 1040, "HY000", &format!("Number simultaneous connections exceeded ({limit})"));
            }
            Farewell::Broken => error(turn, client.sequence, 1835, "HY000", "Malformed communication packet"),
        }
    }

    fn at_rest(&self, client: &Client, attached: bool) -> bool {
        !attached && !client.stream.is_open()
    }

    fn forget(&mut self, client: ClientId) {
        self.threads.remove(&number(client));
        self.learned.remove(&client);
    }

    fn connect(&mut self, _conn: ConnId, key: Key) -> Server {
        let parts = self.keys[key.0 as usize].clone();
        let fresh = self.interner.state(None, Variables::new());
        Server::new(parts, &self.config, fresh)
    }

    fn connected(&mut self, server: &mut Server, turn: &mut Turn) {
        // MySQL's server speaks first; but once TLS is there, it is our turn.
        server.tls_is_there(turn);
    }

    fn server_input(
        &mut self,
        client: Option<(&mut Client, Facts)>,
        server: &mut Server,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        match client {
            _ if !server.is_ready() => {
                let used = server.login(bytes, turn)?;
                if server.is_probe_of_version() {
                    self.version.clone_from(&server.version);
                    self.server_caps = server.offered;
                }
                Ok(used)
            }
            Some((client, _)) => self.replies(client, server, bytes, turn),
            None => server.alone(bytes, turn),
        }
    }

    fn state(&self, server: &Server) -> u64 {
        server.state.number
    }

    fn in_transaction(&self, server: &Server) -> bool {
        server.status & status::IN_TRANS != 0
    }

    fn probe_key(&mut self) -> Option<Key> {
        let user = self.config.user.first()?.name.clone();
        let tls = self.config.target.tls == TargetTls::On;
        self.key(KeyParts { user, capabilities: 0, collation: 45, in_database: false, tls })
    }

    fn probe(&mut self, server: &mut Server, turn: &mut Turn) {
        server.ask_max_connections(turn);
    }
}
