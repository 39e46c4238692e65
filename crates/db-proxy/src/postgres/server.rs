//! A connection to PostgreSQL: its login, what it has prepared, what it still owes.

use super::session::{Parameters, Settings, Statement, transition};
use super::{Client, KeyParts, Phase};
use crate::auth::{Salted, ScramClient, postgres_md5_proof};
use crate::config::Config;
use crate::turn::{Failure, Turn};
use danki_db_pool::ConnId;
use danki_db_wire::postgres::{
    ErrorFields, HEAD, Transaction, error_response, head, parameter_status, put_close, put_message,
    put_parse, put_query, put_startup,
};
use danki_db_wire::{Cursor, Error as WireError};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// Statements prepared on one connection; the one longest unused makes room.
const PREPARED: usize = 500;
/// Messages during login are short.
const LONGEST: usize = 1 << 20;

/// What a statement does to the session if it succeeds.
#[derive(Debug)]
pub(crate) enum Effect {
    None,
    Settings(Vec<(String, Option<String>)>),
    DiscardAll,
    DeallocateAll,
}

/// A reply that is owed.
#[derive(Debug)]
pub(crate) enum Expect {
    Query(Effect),
    /// Named: under which name the client has it.
    Parse(Option<(Vec<u8>, Rc<Statement>)>),
    /// The client did not ask for it.
    HiddenParse(Rc<Statement>),
    HiddenClose,
    Bind,
    Describe,
    Execute(Effect),
    Close,
    Sync,
    /// The proxy's own answer, when its turn comes.
    Local(Vec<u8>),
    /// The connection had the statement: that it is prepared is the proxy's own answer. Under which name the client has it.
    Parsed(Vec<u8>),
    /// So is that it is closed: it stays for others.
    Closed(Vec<u8>, Rc<Statement>),
    /// The proxy's own error. The database was told something that it must refuse, so that both pass over the rest of the batch.
    Refused(Vec<u8>),
    /// The settings that a client needs; nothing of it is shown.
    Own(Rc<Settings>),
}

/// Messages of the extended protocol up to Sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    None,
    /// The database has had some of them, but not the Sync: it has not committed.
    Open,
    /// One of them was refused: the database passes over what comes before the Sync.
    Failed,
}

/// What the database is told to prepare so that it refuses.
const UNPREPARABLE: &[u8] = b"SELECT refused_by_the_proxy\0\0\0";

enum Step {
    /// Nothing has been said.
    New,
    /// TLS was asked for.
    AskedForTls,
    Login(Option<Box<ScramClient>>),
    /// The init query runs.
    Setup,
    Ready,
    Probe,
}

pub(crate) struct Server {
    pub conn: ConnId,
    parts: KeyParts,
    password: String,
    init_query: Option<String>,
    step: Step,
    tls: bool,
    pub process: u32,
    pub secret: u32,
    pub parameters: Rc<Parameters>,
    pub settings: Rc<Settings>,
    pub transaction: Transaction,
    pub unnamed: Option<u64>,
    salted: Rc<RefCell<Salted>>,
    pub expect: VecDeque<Expect>,
    pub batch: Batch,
    /// Since the last transaction something was defined that others' statements may mean.
    pub defined: bool,
    /// The last command's tag tells how a transaction ended.
    pub committed: Option<bool>,
    /// Bytes of a message that pass as they are.
    pub stream: usize,
    prepared: HashMap<u64, (u64, Rc<Statement>)>,
    uses: u64,
}

impl Server {
    pub fn new(
        conn: ConnId,
        parts: KeyParts,
        config: &Config,
        base: Rc<Settings>,
        salted: Rc<RefCell<Salted>>,
    ) -> Self {
        let user = config.user.iter().find(|user| user.name == parts.user);
        Self {
            conn,
            password: user.map(|user| user.password.clone()).unwrap_or_default(),
            init_query: config.pool.init_query.clone(),
            step: Step::New,
            tls: parts.tls,
            parts,
            process: 0,
            secret: 0,
            parameters: Rc::default(),
            settings: base,
            transaction: Transaction::Idle,
            unnamed: None,
            salted,
            expect: VecDeque::new(),
            batch: Batch::None,
            defined: false,
            committed: None,
            stream: 0,
            prepared: HashMap::new(),
            uses: 0,
        }
    }

    pub const fn is_ready(&self) -> bool {
        matches!(self.step, Step::Ready | Step::Probe)
    }

    /// Whether nothing is owed, to either side.
    pub fn is_quiet(&self) -> bool {
        self.expect.is_empty() && self.stream == 0 && self.batch == Batch::None
    }

    /// Whether a client's messages can go through: they wait while its settings are made.
    pub fn takes_commands(&self) -> bool {
        !self.expect.iter().any(|expect| matches!(expect, Expect::Own(_)))
    }

    /// Whether what was sent in this turn will be followed by Sync.
    pub fn in_batch(&self, turn: &Turn) -> bool {
        !turn.to_server.is_empty()
    }

    /// TCP is there, or TLS.
    pub fn start(&mut self, turn: &mut Turn) {
        if self.tls && matches!(self.step, Step::New) {
            self.step = Step::AskedForTls;
            turn.to_server.extend_from_slice(&[0, 0, 0, 8, 4, 210, 22, 47]);
            return;
        }
        self.step = Step::Login(None);
        put_startup(&mut turn.to_server, [("user", &*self.parts.user), ("database", &*self.parts.database)]);
    }

    pub fn login(&mut self, bytes: &[u8], turn: &mut Turn) -> Result<usize, WireError> {
        if matches!(self.step, Step::AskedForTls) {
            match bytes.first() {
                Some(b'S') => turn.server_tls = true,
                Some(_) => {
                    turn.server_failed = Some(Failure::Unavailable("the database does not speak TLS".into()));
                }
                None => return Ok(0),
            }
            return Ok(1);
        }
        let Some((kind, length)) = head(bytes) else { return Ok(0) };
        if !(HEAD..=LONGEST).contains(&length) {
            return Err(WireError::Malformed("the database's login"));
        }
        let Some(body) = bytes.get(HEAD..length) else { return Ok(0) };
        match kind {
            b'R' => self.authenticate(body, turn)?,
            b'S' => self.absorb(body),
            b'K' => {
                let mut cursor = Cursor::new(body);
                self.process = cursor.u32_be().unwrap_or(0);
                self.secret = cursor.u32_be().unwrap_or(0);
            }
            b'Z' => self.logged_in(turn),
            b'E' => turn.server_failed = Some(failure(body, &bytes[..length])),
            _ => {}
        }
        Ok(length)
    }

    fn logged_in(&mut self, turn: &mut Turn) {
        match self.init_query.take() {
            Some(query) => {
                self.step = Step::Setup;
                put_query(&mut turn.to_server, &query);
            }
            None => {
                self.step = Step::Ready;
                turn.server_ready = true;
            }
        }
    }

    fn authenticate(&mut self, body: &[u8], turn: &mut Turn) -> Result<(), WireError> {
        let malformed = WireError::Malformed("the database's authentication");
        let mut cursor = Cursor::new(body);
        let (user, password) = (self.parts.user.clone(), self.password.clone());
        let mut answer = |bytes: &[u8]| put_message(&mut turn.to_server, b'p', bytes);
        match cursor.u32_be().ok_or(malformed)? {
            0 => {}
            3 => answer(&[password.as_bytes(), &[0]].concat()),
            5 => {
                let salt = cursor.take(4).and_then(|salt| salt.try_into().ok()).ok_or(malformed)?;
                answer(
                    &[postgres_md5_proof(user.as_bytes(), password.as_bytes(), salt).as_bytes(), &[0]]
                        .concat(),
                );
            }
            10 => {
                let (scram, first) = ScramClient::start(&password);
                let length = (first.len() as u32).to_be_bytes();
                answer(&[b"SCRAM-SHA-256\0", &length[..], first.as_bytes()].concat());
                self.step = Step::Login(Some(Box::new(scram)));
            }
            code @ (11 | 12) => {
                let Step::Login(Some(scram)) = &mut self.step else { return Err(malformed) };
                let said = std::str::from_utf8(cursor.rest()).map_err(|_| malformed)?;
                if code == 11 {
                    answer(scram.answer(said, &mut self.salted.borrow_mut()).ok_or(malformed)?.as_bytes());
                } else if !scram.finish(said) {
                    return Err(WireError::Malformed("the database's proof that it knows the password"));
                }
            }
            _ => {
                let why = "the database wants an authentication that the proxy does not know";
                turn.server_failed = Some(Failure::Unavailable(why.into()));
            }
        }
        Ok(())
    }

    pub fn ask_max_connections(&mut self, turn: &mut Turn) {
        self.step = Step::Probe;
        put_query(&mut turn.to_server, "SHOW max_connections");
    }

    /// Bytes while no client has the connection: news of settings, the answer to a probe, a last word.
    pub fn alone(&mut self, bytes: &[u8], turn: &mut Turn) -> Result<usize, WireError> {
        let Some((kind, length)) = head(bytes) else { return Ok(0) };
        if !(HEAD..=LONGEST).contains(&length) {
            return Err(WireError::Malformed("a message of the database"));
        }
        let Some(body) = bytes.get(HEAD..length) else { return Ok(0) };
        match kind {
            b'S' => self.absorb(body),
            b'D' if matches!(self.step, Step::Probe) => {
                let text = body.get(6..).and_then(|text| std::str::from_utf8(text).ok());
                turn.probed = text.and_then(|text| text.parse().ok());
            }
            _ => {}
        }
        Ok(length)
    }

    pub fn absorb(&mut self, body: &[u8]) {
        if let Some((name, value)) = parameter_status(body) {
            Rc::make_mut(&mut self.parameters).insert(name.to_vec(), value.to_vec());
        }
    }

    /// Takes the settings of a client, or begins to.
    pub fn become_like(&mut self, client: &mut Client, turn: &mut Turn) {
        if self.settings.number != client.settings.number {
            let sql = transition(&self.settings, &client.settings);
            put_query(&mut turn.to_server, &sql);
            self.unnamed = None;
            self.expect.push_back(Expect::Own(Rc::clone(&client.settings)));
        } else {
            self.show(client, turn);
        }
    }

    /// Tells a client which reported parameters are different from what it was told last.
    pub fn show(&self, client: &mut Client, turn: &mut Turn) {
        if !matches!(client.phase, Phase::Ready) {
            return;
        }
        if let Some(shown) = &client.shown
            && !Rc::ptr_eq(shown, &self.parameters)
        {
            for (name, value) in
                self.parameters.iter().filter(|(name, value)| shown.get(*name) != Some(value))
            {
                put_message(&mut turn.to_client, b'S', &[&name[..], &[0], value, &[0]].concat());
            }
            client.shown = Some(Rc::clone(&self.parameters));
        }
    }

    /// The settings could not be made: the client cannot go on.
    pub fn settings_refused(&self, body: &[u8], turn: &mut Turn) {
        let fields =
            ErrorFields::parse(body).unwrap_or(ErrorFields { code: "XX000".into(), message: String::new() });
        error_response(&mut turn.to_client, "FATAL", &fields.code, &fields.message, "");
        turn.close_client = true;
    }

    pub fn has(&mut self, statement: &Statement) -> bool {
        self.uses += 1;
        let uses = self.uses;
        self.prepared.get_mut(&statement.number).map(|entry| entry.0 = uses).is_some()
    }

    /// A statement is being prepared; another may have to go.
    pub fn remember(&mut self, statement: Rc<Statement>, turn: &mut Turn) {
        self.uses += 1;
        self.prepared.insert(statement.number, (self.uses, statement));
        if self.prepared.len() > PREPARED
            && let Some((&oldest, _)) = self.prepared.iter().min_by_key(|(_, (used, _))| *used)
            && let Some((_, statement)) = self.prepared.remove(&oldest)
        {
            put_close(&mut turn.to_server, &statement.name);
            self.expect.push_back(Expect::HiddenClose);
        }
    }

    pub fn forget(&mut self, statement: &Statement) {
        self.prepared.remove(&statement.number);
        if self.unnamed == Some(statement.number) {
            self.unnamed = None;
        }
    }

    pub fn forget_all(&mut self) {
        self.prepared.clear();
    }

    /// The database is told a message of this kind.
    pub fn follow_batch(&mut self, kind: u8) {
        match kind {
            b'P' | b'B' | b'D' | b'E' | b'C' => self.batch = Batch::Open,
            // Commits what was open, as a simple query or a function call does.
            b'S' | b'Q' | b'F' => self.batch = Batch::None,
            _ => {}
        }
    }

    /// Answers with `error`, as if the database had.
    pub fn refuse(&mut self, error: Vec<u8>, turn: &mut Turn) {
        put_parse(&mut turn.to_server, b"danki_refused", UNPREPARABLE);
        self.expect.push_back(Expect::Refused(error));
    }

    /// The proxy's own error in place of the database's. A transaction that has failed already has the database's own.
    pub fn refusal(&self, body: &[u8]) -> Option<&[u8]> {
        match self.expect.front() {
            Some(Expect::Refused(error)) if !is_aborted(body) => Some(error),
            _ => None,
        }
    }

    /// Whether the next answer is the proxy's own.
    pub fn is_local_next(&self) -> bool {
        matches!(self.expect.front(), Some(Expect::Local(_) | Expect::Parsed(_) | Expect::Closed(..)))
    }

    /// Says the proxy's own answers whose turn has come.
    pub fn say_locals(&mut self, turn: &mut Turn) {
        while self.is_local_next() {
            match self.expect.pop_front() {
                Some(Expect::Local(out)) => turn.to_client.extend_from_slice(&out),
                Some(Expect::Parsed(_)) => put_message(&mut turn.to_client, b'1', b""),
                _ => put_message(&mut turn.to_client, b'3', b""),
            }
        }
    }
}

fn is_aborted(body: &[u8]) -> bool {
    ErrorFields::parse(body).is_some_and(|fields| fields.code == "25P02")
}

/// What an error during login means for those who wait.
fn failure(body: &[u8], message: &[u8]) -> Failure {
    let fields = ErrorFields::parse(body);
    let code = fields.as_ref().map_or("", |fields| &fields.code);
    // Account or database do not exist, or the password is wrong: waiting does not help.
    if code.starts_with("28") || code.starts_with("3D") {
        return Failure::Refused(message.to_vec());
    }
    Failure::Unavailable(fields.map_or_else(|| "an error without text".into(), |fields| fields.message))
}
