//! A connection to MySQL: its login, what it has prepared, what it is doing.

use super::session::{State, Statement, TRACK, Variables, ask_base, transition};
use super::{KeyParts, OFFERED};
use crate::auth::{caching_sha2_proof, caching_sha2_sealed, native_proof};
use crate::config::Config;
use crate::turn::{Failure, Turn};
use danki_db_pool::ClientId;
use danki_db_wire::Error as WireError;
use danki_db_wire::mysql::{
    AuthSwitch, Awaits, ErrPacket, Greeting, LoginResponse, OkPacket, Part, Reply, Tracked, caps, command,
    header, packet, put_command, put_packet, ssl_request, statement_id,
};
use danki_db_wire::sql::{Dialect, Lexer};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// Statements prepared on one connection; the one longest unused makes room.
const PREPARED: usize = 500;
/// Packets during login are short.
const LONGEST: usize = 1 << 20;
/// What the proxy accepts in one packet: as much as MySQL has.
const MAX_PACKET: u32 = 1 << 30;
/// What a probe asks: the tracker reports the value that is assigned.
const PROBE: &str = "SET sql_select_limit = @@global.max_connections";

/// What a client's command does besides being answered.
#[derive(Debug, Default)]
pub(crate) struct Effect {
    /// Settings change, and nothing else.
    pub setting: bool,
    /// It may do more than its text shows.
    pub doubt: bool,
    pub prepared: Option<Rc<Statement>>,
    /// A statement with a cursor.
    pub cursor: Option<u32>,
}

/// What the proxy does on its own account, before or after a client's command.
#[derive(Clone, Debug)]
pub(crate) enum Own {
    Enter(String),
    Assign(String),
    Prepare(Rc<Statement>),
    /// The trackers may have something to say.
    Check,
    /// `LAST_INSERT_ID()` of the client that had the connection before.
    Learn(ClientId),
    Restore(String),
}

/// How something of the proxy's own has ended: the number of what was prepared, and the error.
pub(crate) type OwnEnd = (Option<u32>, Option<Vec<u8>>);

#[derive(Debug)]
pub(crate) enum Task {
    None,
    Client(Reply, Effect),
    Own(Own, Reply),
}

/// What trackers have reported since it was last looked at.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub variables: Vec<(String, String)>,
    pub schema: Option<String>,
    pub state: bool,
}

enum Step {
    Greeting,
    Tls(Box<Greeting>),
    Login,
    /// So many of the setup's statements are left.
    Setup(VecDeque<String>),
    Ready,
    Probe,
}

pub(crate) struct Server {
    pub parts: KeyParts,
    password: String,
    setup: Vec<String>,
    step: Step,
    tls: bool,
    plugin: String,
    scramble: Vec<u8>,
    pub version: String,
    pub offered: u32,
    pub capabilities: u32,
    pub thread: u32,
    pub status: u16,
    pub base: Variables,
    pub state: Rc<State>,
    target: Option<Rc<State>>,
    pub task: Task,
    own: VecDeque<Own>,
    own_number: Option<u32>,
    pub changes: Changes,
    /// The client whose INSERT was given the last number here.
    pub inserted_by: Option<ClientId>,
    prepared: HashMap<(u64, u64), (u64, u32)>,
    uses: u64,
}

impl Server {
    pub fn new(parts: KeyParts, config: &Config, fresh: Rc<State>) -> Self {
        let user = config.user.iter().find(|user| user.name == parts.user);
        Self {
            password: user.map(|user| user.password.clone()).unwrap_or_default(),
            setup: config.pool.init_query.as_deref().map(split).unwrap_or_default(),
            step: Step::Greeting,
            tls: false,
            parts,
            plugin: String::new(),
            scramble: Vec::new(),
            version: String::new(),
            offered: 0,
            capabilities: 0,
            thread: 0,
            status: 0,
            base: Variables::new(),
            state: fresh,
            target: None,
            task: Task::None,
            own: VecDeque::new(),
            own_number: None,
            changes: Changes::default(),
            inserted_by: None,
            prepared: HashMap::new(),
            uses: 0,
        }
    }

    pub const fn is_ready(&self) -> bool {
        matches!(self.step, Step::Ready | Step::Probe)
    }

    /// Whether it does nothing and has nothing to do.
    pub fn is_quiet(&self) -> bool {
        matches!(self.task, Task::None) && self.own.is_empty() && self.target.is_none()
    }

    /// A login without capabilities that matter is a probe's.
    pub const fn is_probe_of_version(&self) -> bool {
        self.parts.capabilities == 0 && !self.version.is_empty()
    }

    pub fn serve(&mut self, awaits: Awaits, effect: Effect) {
        self.task = Task::Client(Reply::new(awaits, self.capabilities), effect);
    }

    pub fn push(&mut self, own: Own) {
        self.own.push_back(own);
    }

    /// Takes the state of a client, when [`Server::next_own`] is called.
    pub fn become_like(&mut self, state: &Rc<State>) {
        if self.state.number == state.number {
            return;
        }
        if self.state.database != state.database
            && let Some(database) = &state.database
        {
            self.own.push_back(Own::Enter(database.clone()));
        }
        if let Some(sql) = transition(&self.base, &self.state.variables, &state.variables) {
            self.own.push_back(Own::Assign(sql));
        }
        self.target = Some(Rc::clone(state));
    }

    /// Begins the next thing of the proxy's own. False: there is none.
    pub fn next_own(&mut self, turn: &mut Turn) -> bool {
        let Some(own) = self.own.pop_front() else {
            if let Some(state) = self.target.take() {
                self.state = state;
            }
            return false;
        };
        let out = &mut turn.to_server;
        let awaits = match &own {
            Own::Enter(database) => {
                put_command(out, command::INIT_DB, database.as_bytes());
                Awaits::Simple
            }
            Own::Assign(sql) | Own::Restore(sql) => {
                put_command(out, command::QUERY, sql.as_bytes());
                Awaits::Results
            }
            Own::Prepare(statement) => {
                put_command(out, command::STMT_PREPARE, &statement.sql);
                Awaits::Prepared
            }
            Own::Check => {
                put_command(out, command::PING, b"");
                Awaits::Simple
            }
            Own::Learn(_) => {
                put_command(out, command::QUERY, b"SET last_insert_id = LAST_INSERT_ID()");
                Awaits::Results
            }
        };
        self.task = Task::Own(own, Reply::new(awaits, self.capabilities));
        true
    }

    /// What was planned cannot be done.
    pub fn give_up(&mut self) {
        self.own.clear();
        self.target = None;
    }

    pub fn absorb(&mut self, ok: &OkPacket<'_>) {
        self.status = ok.status;
        for tracked in ok.tracked() {
            match tracked {
                Tracked::Variable(name, value) => {
                    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                    self.changes.variables.push((text(name).to_ascii_lowercase(), text(value)));
                }
                Tracked::Schema(name) => {
                    self.changes.schema = Some(String::from_utf8_lossy(name).into_owned())
                }
                Tracked::State => self.changes.state = true,
                Tracked::Other(_) => {}
            }
        }
    }

    pub fn number_of(&mut self, statement: &Statement) -> Option<u32> {
        self.uses += 1;
        let uses = self.uses;
        let found = self.prepared.get_mut(&(statement.number, self.state.number))?;
        found.0 = uses;
        Some(found.1)
    }

    /// A statement has been prepared; another may have to go, and an older one of the same content does.
    pub fn remember(&mut self, statement: &Statement, number: u32, turn: &mut Turn) {
        self.uses += 1;
        let replaced = self.prepared.insert((statement.number, self.state.number), (self.uses, number));
        let mut going = replaced.map(|(_, number)| number);
        if self.prepared.len() > PREPARED
            && let Some((&oldest, _)) = self.prepared.iter().min_by_key(|(_, (used, _))| *used)
        {
            going = self.prepared.remove(&oldest).map(|(_, number)| number);
        }
        if let Some(number) = going {
            put_command(&mut turn.to_server, command::STMT_CLOSE, &number.to_le_bytes());
        }
    }

    pub fn forget(&mut self, statement: &Statement) -> Option<u32> {
        self.prepared.remove(&(statement.number, self.state.number)).map(|(_, number)| number)
    }

    pub fn tls_is_there(&mut self, turn: &mut Turn) {
        if let Step::Tls(greeting) = std::mem::replace(&mut self.step, Step::Login) {
            self.tls = true;
            self.respond(&greeting, 2, turn);
        } else {
            self.step = Step::Greeting;
        }
    }

    pub fn login(&mut self, bytes: &[u8], turn: &mut Turn) -> Result<usize, WireError> {
        if header(bytes).is_some_and(|(length, _)| length > LONGEST) {
            return Err(WireError::TooLong("a packet of the database's login"));
        }
        let Some((sequence, payload, length)) = packet(bytes) else { return Ok(0) };
        if payload.first() == Some(&0xFF) {
            turn.server_failed = Some(failure(payload));
            return Ok(length);
        }
        match &self.step {
            Step::Greeting => self.greeted(Greeting::parse(payload)?, turn),
            Step::Login => self.authenticate(sequence.wrapping_add(1), payload, turn)?,
            Step::Setup(_) => {
                if let Some(ok) = OkPacket::parse(payload, self.capabilities) {
                    self.absorb(&ok);
                }
                self.set_up(turn);
            }
            Step::Tls(_) | Step::Ready | Step::Probe => {}
        }
        Ok(length)
    }

    fn greeted(&mut self, greeting: Greeting, turn: &mut Turn) {
        self.version.clone_from(&greeting.version);
        self.thread = greeting.thread;
        self.offered = greeting.caps;
        self.plugin.clone_from(&greeting.plugin);
        self.scramble = greeting.scramble.to_vec();
        if greeting.caps & caps::SESSION_TRACK == 0 {
            let why = "the database cannot track sessions: MySQL 5.7 or MariaDB 10.2 is needed";
            turn.server_failed = Some(Failure::Unavailable(why.into()));
        } else if !self.parts.tls {
            self.step = Step::Login;
            self.respond(&greeting, 1, turn);
        } else if greeting.caps & caps::SSL == 0 {
            turn.server_failed = Some(Failure::Unavailable("the database does not speak TLS".into()));
        } else {
            let wanted = self.wanted(&greeting) | caps::SSL;
            put_packet(&mut turn.to_server, 1, &ssl_request(wanted, MAX_PACKET, self.parts.collation));
            turn.server_tls = true;
            self.step = Step::Tls(Box::new(greeting));
        }
    }

    fn wanted(&self, greeting: &Greeting) -> u32 {
        let always = caps::LONG_PASSWORD
            | caps::PROTOCOL_41
            | caps::TRANSACTIONS
            | caps::SECURE_CONNECTION
            | caps::PLUGIN_AUTH
            | caps::PLUGIN_AUTH_LENENC
            | caps::SESSION_TRACK;
        ((self.parts.capabilities & OFFERED) | always)
            & (greeting.caps | caps::PLUGIN_AUTH_LENENC | caps::LONG_PASSWORD)
    }

    fn respond(&mut self, greeting: &Greeting, sequence: u8, turn: &mut Turn) {
        self.capabilities = self.wanted(greeting) | if self.tls { caps::SSL } else { 0 };
        let login = LoginResponse {
            caps: self.capabilities,
            max_packet: MAX_PACKET,
            collation: self.parts.collation,
            user: self.parts.user.clone(),
            auth: self.proof(),
            database: None,
            plugin: self.plugin.clone(),
        };
        put_packet(&mut turn.to_server, sequence, &login.build());
    }

    fn proof(&self) -> Vec<u8> {
        match &*self.plugin {
            "caching_sha2_password" => caching_sha2_proof(&self.password, &self.scramble),
            "mysql_native_password" => native_proof(&self.password, &self.scramble),
            "mysql_clear_password" if self.tls => [self.password.as_bytes(), &[0]].concat(),
            _ => Vec::new(),
        }
    }

    fn authenticate(&mut self, sequence: u8, payload: &[u8], turn: &mut Turn) -> Result<(), WireError> {
        match (payload.first(), payload.get(1..).unwrap_or_default()) {
            (Some(0), _) => {
                let mut statements: VecDeque<String> = std::mem::take(&mut self.setup).into();
                statements.push_back(TRACK.to_owned());
                statements.push_back(ask_base(&self.version));
                self.step = Step::Setup(statements);
                self.set_up(turn);
            }
            (Some(0xFE), _) => {
                let switch = AuthSwitch::parse(payload)?;
                self.plugin = switch.plugin;
                self.scramble = switch.data;
                put_packet(&mut turn.to_server, sequence, &self.proof());
            }
            // "Fast authentication has succeeded": OK follows.
            (Some(1), [3]) => {}
            (Some(1), [4]) if self.tls => {
                put_packet(&mut turn.to_server, sequence, &[self.password.as_bytes(), &[0]].concat());
            }
            // Without TLS: the server's public key, please.
            (Some(1), [4]) => put_packet(&mut turn.to_server, sequence, &[2]),
            (Some(1), key) => {
                let sealed = caching_sha2_sealed(&self.password, &self.scramble, key);
                let sealed = sealed.ok_or(WireError::Malformed("the database's public key"))?;
                put_packet(&mut turn.to_server, sequence, &sealed);
            }
            _ => return Err(WireError::Malformed("the database's authentication")),
        }
        Ok(())
    }

    fn set_up(&mut self, turn: &mut Turn) {
        let Step::Setup(left) = &mut self.step else { return };
        if let Some(sql) = left.pop_front() {
            // Of what the setup changes, only the last answer counts: it has the values to go back to.
            self.changes = Changes::default();
            return put_command(&mut turn.to_server, command::QUERY, sql.as_bytes());
        }
        let Changes { variables, .. } = std::mem::take(&mut self.changes);
        self.base =
            variables.into_iter().filter(|(name, _)| name != "session_track_system_variables").collect();
        self.step = Step::Ready;
        turn.server_ready = true;
    }

    pub fn ask_max_connections(&mut self, turn: &mut Turn) {
        self.step = Step::Probe;
        put_command(&mut turn.to_server, command::QUERY, PROBE.as_bytes());
    }

    /// Bytes while no client has the connection: the answer to a probe, or a last word.
    pub fn alone(&mut self, bytes: &[u8], turn: &mut Turn) -> Result<usize, WireError> {
        let Some((_, payload, length)) = packet(bytes) else { return Ok(0) };
        if let Some(ok) =
            OkPacket::parse(payload, self.capabilities).filter(|_| matches!(self.step, Step::Probe))
        {
            let found = ok.tracked().find_map(|tracked| match tracked {
                Tracked::Variable(b"sql_select_limit", value) => {
                    std::str::from_utf8(value).ok()?.parse().ok()
                }
                _ => None,
            });
            turn.probed = found;
        }
        Ok(length)
    }

    /// The next part of a reply to the proxy itself. Some: it has ended, with this number if something was prepared, or this error.
    pub fn own_part(&mut self, bytes: &[u8]) -> Result<(usize, Option<OwnEnd>), WireError> {
        let Task::Own(_, reply) = &mut self.task else { return Ok((0, None)) };
        let (mut at, mut number, mut error) = (0, None, None);
        let mut oks = Vec::new();
        loop {
            let part = reply.next(&bytes[at..])?;
            at += part.length();
            match part {
                Part::Ok(payload) => oks.push(payload),
                Part::Err(payload) => error = Some(payload.to_vec()),
                Part::Prepared(payload) => number = statement_id(payload),
                Part::Pass(_) | Part::Eof(_) => {}
                Part::File(_) => return Err(WireError::Malformed("a reply: nobody has asked for a file")),
                Part::More | Part::End => break,
            }
        }
        // What was prepared is told before the definitions, which may not be there yet.
        self.own_number = number.or(self.own_number);
        let ended = matches!(&self.task, Task::Own(_, reply) if reply.ended());
        let capabilities = self.capabilities;
        for ok in oks.into_iter().filter_map(|payload| OkPacket::parse(payload, capabilities)) {
            self.absorb(&ok);
        }
        Ok((at, ended.then(|| (self.own_number.take(), error))))
    }
}

/// What an error during login means for those who wait.
fn failure(payload: &[u8]) -> Failure {
    match ErrPacket::parse(payload) {
        // The account is refused: waiting does not help.
        Some(ErrPacket { code: 1044 | 1045 | 1049 | 1698, .. }) => Failure::Refused(payload.to_vec()),
        Some(error) => Failure::Unavailable(format!("{} {}", error.code, error.message)),
        None => Failure::Unavailable("an error without text".into()),
    }
}

/// The statements of an init query.
fn split(query: &str) -> Vec<String> {
    let bytes = query.as_bytes();
    let mut statements = Vec::new();
    let mut start = 0;
    let ends = Lexer::new(bytes, Dialect::MySql)
        .filter(|token| token.is_mark(bytes, b';'))
        .map(|token| token.start());
    for end in ends.chain(Some(bytes.len())) {
        statements
            .extend(query.get(start..end).map(str::trim).filter(|sql| !sql.is_empty()).map(str::to_owned));
        start = end + 1;
    }
    statements
}
