//! PostgreSQL: sessions of clients and sessions with the database.

mod command;
mod login;
mod reply;
mod server;
mod session;

use crate::auth::Salted;
use crate::config::{Config, Mode, Rules, TargetTls};
use crate::protocol::{Facts, Farewell, Protocol, Refusal};
use crate::turn::{Cancel, Pinned, Turn};
use danki_db_pool::{ClientId, ConnId, Key};
use danki_db_wire::Error as WireError;
use danki_db_wire::postgres::{Transaction, cancel_request, error_response};
use danki_db_wire::sql::{Cause, Dialect, digest};
use server::Server;
use session::{Interner, Parameters, Settings, Statement};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Most combinations of account, database and encryption; a client cannot make the proxy keep more.
const KEYS: usize = 10_000;
/// Length of a digest in logs.
const DIGEST: usize = 1024;

/// Which connections serve a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyParts {
    user: String,
    database: String,
    tls: bool,
}

/// How to cancel what a client is doing.
struct Cancelable {
    secret: u32,
    /// The number and secret of the connection that it has.
    backend: Option<(u32, u32, ConnId)>,
}

pub(crate) struct Postgres {
    config: Arc<Config>,
    /// From it comes each account's salt.
    salt: [u8; 16],
    salted: Rc<RefCell<Salted>>,
    keys: Vec<KeyParts>,
    key_numbers: HashMap<KeyParts, Key>,
    interner: Interner,
    /// How often something was defined that statements may mean.
    definitions: u64,
    base: Rc<Settings>,
    /// What clients of a key with these settings are told at login.
    greetings: HashMap<(Key, u64), Rc<Parameters>>,
    cancelables: HashMap<u32, Cancelable>,
    /// Connections whose last statement somebody has tried to cancel: the signal may still be on its way.
    cancelled: std::collections::HashSet<ConnId>,
}

/// Where a client stands.
enum Phase {
    /// Its first packet is awaited.
    Startup,
    /// Its password is.
    Login(login::Proof),
    /// It is who it says, and is told so once a connection has shown what to tell.
    Greeting,
    Ready,
}

/// What happens to input after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discard {
    Nothing,
    /// Up to the end of the query, or Sync.
    UntilReady,
}

pub(crate) struct Client {
    id: ClientId,
    phase: Phase,
    user: String,
    database: String,
    /// What it has asked for at login; RESET goes back to it.
    startup: Rc<Settings>,
    settings: Rc<Settings>,
    /// Set in a transaction that has not ended.
    pending: Vec<(String, Option<String>)>,
    savepoints: bool,
    shown: Option<Rc<Parameters>>,
    statements: HashMap<Vec<u8>, Rc<Statement>>,
    unnamed: Option<Rc<Statement>>,
    bound: Option<Rc<Statement>>,
    pinned: Option<Cause>,
    untouched: bool,
    discard: Discard,
    /// Bytes of a message that pass as they are.
    stream: usize,
    transaction: Transaction,
}

impl Postgres {
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

    fn parts_of(&self, client: &Client, client_tls: bool) -> KeyParts {
        let tls = match self.config.target.tls {
            TargetTls::Off => false,
            TargetTls::On => true,
            TargetTls::LikeClient => client_tls,
        };
        KeyParts { user: client.user.clone(), database: client.database.clone(), tls }
    }

    fn is_rds(&self) -> bool {
        matches!(self.config.mode, Mode::Rds)
    }

    /// Whether any Parse pins.
    fn parse_pins(&self) -> bool {
        self.config.mode == Mode::Rds && self.config.rules == Rules::Of2023
    }

    fn pin(&self, client: &mut Client, cause: Cause, sql: &[u8], turn: &mut Turn) {
        if client.pinned.is_none() {
            client.pinned = Some(cause);
            let sql = sql.split(|&byte| byte == 0).next().unwrap_or_default();
            turn.pinned = Some(Pinned { cause, digest: digest(sql, Dialect::Postgres, DIGEST) });
        }
    }

    /// The connection goes back if nothing ties the session to it.
    fn release_if_free(&mut self, client: &mut Client, server: &mut Server, turn: &mut Turn) {
        if client.pinned.is_some() || server.transaction != Transaction::Idle || !server.is_quiet() {
            return;
        }
        client.shown = Some(Rc::clone(&server.parameters));
        if let Some(cancelable) = self.cancelables.get_mut(&number(client.id)) {
            cancelable.backend = None;
        }
        turn.release = Some(!self.cancelled.remove(&server.conn));
    }
}

/// A client's number, as it is told: from it the client is found when its query is to be cancelled. The lower 20 bits are where the client
/// is kept, more than there are descriptors; those above, how many were kept there before: who comes next has another number.
const fn number(client: ClientId) -> u32 {
    let (place, times) = (client.0 as u32, (client.0 >> 32) as u32);
    (((times & 0x7ff) << 20) | (place & 0xf_ffff)).wrapping_add(1)
}

impl Protocol for Postgres {
    type Client = Client;
    type Server = Server;

    fn new(config: Arc<Config>) -> Self {
        let mut interner = Interner::default();
        let base = interner.settings(BTreeMap::new());
        Self {
            config,
            salt: crate::auth::random(),
            salted: Rc::default(),
            keys: Vec::new(),
            key_numbers: HashMap::new(),
            interner,
            definitions: 0,
            base,
            greetings: HashMap::new(),
            cancelables: HashMap::new(),
            cancelled: std::collections::HashSet::new(),
        }
    }

    fn reconfigure(&mut self, config: Arc<Config>) {
        self.config = config;
    }

    fn accept(&mut self, id: ClientId, _turn: &mut Turn) -> Client {
        Client {
            id,
            phase: Phase::Startup,
            user: String::new(),
            database: String::new(),
            startup: Rc::clone(&self.base),
            settings: Rc::clone(&self.base),
            pending: Vec::new(),
            savepoints: false,
            shown: None,
            statements: HashMap::new(),
            unnamed: None,
            bound: None,
            pinned: None,
            untouched: false,
            discard: Discard::Nothing,
            stream: 0,
            transaction: Transaction::Idle,
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
            Phase::Startup => self.startup(facts, client, bytes, turn),
            Phase::Login(_) => self.password(facts, client, bytes, turn),
            Phase::Greeting => Ok(self.greet(facts, client, server, turn)),
            Phase::Ready => self.commands(client, server, bytes, turn),
        }
    }

    fn wish(&mut self, client: &Client, client_tls: bool) -> Option<(Key, u64)> {
        let parts = self.parts_of(client, client_tls);
        self.key(parts).map(|key| (key, client.settings.number))
    }

    fn attach(
        &mut self,
        _facts: Facts,
        client: &mut Client,
        server: &mut Server,
        untouched: bool,
        turn: &mut Turn,
    ) {
        client.untouched = untouched;
        if let Some(cancelable) = self.cancelables.get_mut(&number(client.id)) {
            cancelable.backend = Some((server.process, server.secret, server.conn));
        }
        server.become_like(client, turn);
    }

    fn refuse(&mut self, client: &mut Client, refusal: Refusal, turn: &mut Turn) {
        let out = &mut turn.to_client;
        let severity = if matches!(client.phase, Phase::Ready) { "ERROR" } else { "FATAL" };
        match refusal {
            // Text and code of RDS Proxy (its troubleshooting page).
            Refusal::TimedOut => {
                error_response(
                    out,
                    severity,
                    "08000",
                    "Timed-out waiting to acquire database connection.",
                    "",
                );
            }
            Refusal::Crowded => {
                error_response(out, severity, "53300", "too many clients wait for a database connection", "");
            }
            Refusal::Database(words) => out.extend_from_slice(&words),
        }
        if matches!(client.phase, Phase::Ready) {
            client.discard = Discard::UntilReady;
        } else {
            turn.close_client = true;
        }
    }

    fn farewell(&mut self, _client: &mut Client, farewell: Farewell, turn: &mut Turn) {
        let out = &mut turn.to_client;
        match farewell {
            Farewell::Idle => {
                error_response(
                    out,
                    "FATAL",
                    "57P05",
                    "terminating connection due to idle-session timeout",
                    "",
                );
            }
            Farewell::Stop => {
                error_response(
                    out,
                    "FATAL",
                    "57P01",
                    "terminating connection due to administrator command",
                    "",
                );
            }
            Farewell::Lost => {
                let text = "the connection to the database was lost";
                error_response(out, "FATAL", "08006", text, "open another connection and try again");
            }
            Farewell::Crowded(limit) => {
                let text = format!("The maximum number of client connections to the proxy exceeded {limit}.");
                error_response(out, "FATAL", "53300", &text, "");
            }
            Farewell::Broken => error_response(out, "FATAL", "08P01", "invalid message from the client", ""),
        }
    }

    fn at_rest(&self, _client: &Client, attached: bool) -> bool {
        !attached
    }

    fn forget(&mut self, client: ClientId) {
        self.cancelables.remove(&number(client));
    }

    fn connect(&mut self, conn: ConnId, key: Key) -> Server {
        let parts = self.keys[key.0 as usize].clone();
        Server::new(conn, parts, &self.config, Rc::clone(&self.base), Rc::clone(&self.salted))
    }

    fn connected(&mut self, server: &mut Server, turn: &mut Turn) {
        server.start(turn);
    }

    fn server_input(
        &mut self,
        client: Option<(&mut Client, Facts)>,
        server: &mut Server,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        match client {
            _ if !server.is_ready() => server.login(bytes, turn),
            Some((client, _)) => self.replies(client, server, bytes, turn),
            None => server.alone(bytes, turn),
        }
    }

    fn state(&self, server: &Server) -> u64 {
        server.settings.number
    }

    fn in_transaction(&self, server: &Server) -> bool {
        server.transaction != Transaction::Idle
    }

    fn probe_key(&mut self) -> Option<Key> {
        let user = self.config.user.first()?.name.clone();
        let tls = self.config.target.tls == TargetTls::On;
        self.key(KeyParts { user, database: "postgres".to_owned(), tls })
    }

    fn probe(&mut self, server: &mut Server, turn: &mut Turn) {
        server.ask_max_connections(turn);
    }
}

impl Postgres {
    /// A request to cancel somebody's query. RDS Proxy ignores these.
    fn cancel(&mut self, process: u32, secret: u32, turn: &mut Turn) {
        turn.close_client = true;
        if self.is_rds() {
            return;
        }
        if let Some(cancelable) = self.cancelables.get(&process)
            && cancelable.secret == secret
            && let Some((process, secret, conn)) = cancelable.backend
        {
            // The signal may come late: whoever gets the connection next must not be hit.
            self.cancelled.insert(conn);
            turn.cancel = Some(Cancel::Send(cancel_request(process, secret).to_vec()));
        }
    }
}
