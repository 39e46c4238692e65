//! What a client says once it is in: forwarded, answered here, or held until there is a connection.

use super::server::{Effect, Own, Server};
use super::session::{Interner, Variables};
use super::{Client, MySql, Stream, error};
use crate::turn::{Cancel, Turn};
use danki_db_wire::Error as WireError;
use danki_db_wire::mysql::{Awaits, FULL, HEADER, command, header, ok_packet, put_command, put_packet};
use danki_db_wire::sql::{Cause, Class, Dialect, LONGEST, Lexer, mysql};

/// So much of a statement is read at most before it is sent on.
const READ: usize = 1 + LONGEST + 1;
/// Commands that only replication uses: register, dump, and dump by GTID or table.
const REPLICATION: [u8; 4] = [0x12, 0x13, 0x15, 0x1E];

impl MySql {
    pub(super) fn commands(
        &mut self,
        client: &mut Client,
        mut server: Option<&mut Server>,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        let mut at = 0;
        while at < bytes.len() && !turn.borrow && !turn.close_client && turn.release.is_none() {
            let rest = &bytes[at..];
            if client.stream.is_open() {
                match client.pass(rest, turn) {
                    0 => break,
                    passed => at += passed,
                }
                continue;
            }
            let Some((length, _)) = header(rest) else { break };
            if client.uploading {
                client.uploading = length > 0;
                client.stream = Stream { left: HEADER + length, continued: false, dropped: server.is_none() };
                continue;
            }
            if server.as_ref().is_some_and(|server| !server.is_quiet()) {
                break;
            }
            match self.command(client, server.as_deref_mut(), length, rest, turn)? {
                Some(used) => at += used,
                None => break,
            }
        }
        Ok(at)
    }

    fn command(
        &mut self,
        client: &mut Client,
        server: Option<&mut Server>,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Result<Option<usize>, WireError> {
        let payload = &rest[HEADER..rest.len().min(HEADER + length)];
        let Some(&kind) = payload.first() else {
            return if length == 0 { Err(WireError::Malformed("a command")) } else { Ok(None) };
        };
        if let Some(words) = client.refused.take() {
            if !matches!(kind, command::STMT_SEND_LONG_DATA | command::STMT_CLOSE) {
                put_packet(&mut turn.to_client, 1, &words);
            }
            return Ok(Some(client.drop_packet(length, rest)));
        }
        let whole = payload.len() == length;
        match (kind, server) {
            (command::QUIT, _) => turn.close_client = true,
            (command::PING, None) => put_packet(&mut turn.to_client, 1, &ok_packet(client.status)),
            (command::STMT_CLOSE, server) if whole => self.close_statement(client, server, payload, turn),
            (command::STMT_RESET, None) if whole => {
                put_packet(&mut turn.to_client, 1, &ok_packet(client.status))
            }
            (command::RESET_CONNECTION, server) if whole => self.reset(client, server.is_some(), turn),
            (command::CHANGE_USER, server) if whole => {
                if server.is_some() {
                    turn.release = Some(false);
                }
                self.change_user(client, &payload[1..], turn)?;
            }
            (
                command::CHANGE_USER | command::RESET_CONNECTION | command::STMT_CLOSE | command::STMT_RESET,
                _,
            ) if !whole => {
                return if length > READ { Err(WireError::TooLong("a command")) } else { Ok(None) };
            }
            (kind, _) if REPLICATION.contains(&kind) => {
                let text = "The proxy does not carry replication; hint: connect to the database itself";
                error(turn, 1, 1047, "08S01", text);
                return Ok(Some(client.drop_packet(length, rest)));
            }
            (kind, None) if is_known(kind) => {
                turn.borrow = true;
                return Ok(None);
            }
            (kind, Some(server)) if is_known(kind) => {
                return self.forwarded(client, server, kind, length, rest, turn);
            }
            _ => {
                error(turn, 1, 1047, "08S01", "Unknown command");
                return Ok(Some(client.drop_packet(length, rest)));
            }
        }
        Ok(Some(HEADER + length))
    }

    /// A command that needs the database.
    fn forwarded(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        kind: u8,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Result<Option<usize>, WireError> {
        let simple = |server: &mut Server, awaits, setting| {
            server.serve(awaits, Effect { setting, ..Effect::default() });
        };
        match kind {
            command::QUERY => return Ok(self.query(client, server, length, rest, turn)),
            command::STMT_PREPARE => return Ok(self.prepare(client, server, length, rest, turn)),
            command::STMT_EXECUTE => return Ok(self.execute(client, server, length, rest, turn)),
            command::STMT_SEND_LONG_DATA | command::STMT_FETCH | command::STMT_RESET => {
                return Ok(self.with_statement(client, server, kind, length, rest, turn));
            }
            command::PROCESS_KILL => return Ok(self.process_kill(client, server, length, rest, turn)),
            command::INIT_DB => simple(server, Awaits::Simple, true),
            command::FIELD_LIST => simple(server, Awaits::Rows, false),
            command::STATISTICS => simple(server, Awaits::Text, false),
            command::SET_OPTION => {
                self.pin(client, Cause::Other, b"", turn);
                simple(server, Awaits::Simple, true);
            }
            _ => simple(server, Awaits::Simple, false),
        }
        Ok(Some(client.forward(length, rest, turn)))
    }

    fn query(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Option<usize> {
        let sql = rest.get(HEADER + 1..HEADER + length.min(READ))?;
        let class = mysql(sql);
        let whole = rest.len() >= HEADER + length;
        if !self.is_rds() && !self.answerable(client, server, &class, turn)? {
            return Some(client.drop_packet(length, rest));
        }
        if let Some(kill) = class.kill.filter(|_| whole) {
            let query_only = Lexer::new(sql, Dialect::MySql)
                .nth(1)
                .is_some_and(|token| token.text(sql).eq_ignore_ascii_case(b"query"));
            if let Some(text) = self.kill(kill.id, query_only, turn)? {
                let sql = [&sql[..kill.at.0], text.as_bytes(), &sql[kill.at.1..]].concat();
                server.serve(Awaits::Results, Effect::default());
                put_command(&mut turn.to_server, command::QUERY, &sql);
            }
            return Some(HEADER + length);
        }
        self.judge(client, &class, sql, turn);
        turn.began += 1;
        client.ran = true;
        client.untouched = true;
        client.asked = false;
        server.serve(
            Awaits::Results,
            Effect { setting: class.setting, doubt: class.doubt, ..Effect::default() },
        );
        Some(client.forward(length, rest, turn))
    }

    fn judge(&self, client: &mut Client, class: &Class, sql: &[u8], turn: &mut Turn) {
        let excused = class.only_sets && self.config.pool.excludes_sets();
        let cause = if self.is_rds() { class.rds.filter(|_| !excused) } else { class.smart };
        if let Some(cause) = cause {
            self.pin(client, cause, sql, turn);
        }
    }

    /// Questions about the statement before need the connection that ran it, or its answer brought along. Some(false): the question
    /// cannot be answered any more, and the client has been told. None: the answer is being brought.
    fn answerable(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        class: &Class,
        turn: &mut Turn,
    ) -> Option<bool> {
        if client.pinned.is_some() {
            return Some(true);
        }
        if class.previous && client.ran && !client.untouched {
            let text = "What the statement before has left is not known any more: another session has used the connection since; \
                        hint: ask within the same transaction, or in the same query";
            error(turn, 1, 1105, "HY000", text);
            return Some(false);
        }
        if !class.last_id || !client.inserted || client.untouched || server.inserted_by == Some(client.id) {
            return Some(true);
        }
        match self.learned.get(&client.id) {
            Some(id) => {
                server.push(Own::Restore(format!("SET last_insert_id = {id}")));
                server.next_own(turn);
                client.untouched = true;
                None
            }
            None => {
                let text = "LAST_INSERT_ID() is not known any more: its connection has gone; hint: ask within the same transaction";
                error(turn, 1, 1105, "HY000", text);
                Some(false)
            }
        }
    }

    /// Some(Some): the number to kill instead. Some(None): done here. None: never.
    fn kill(&mut self, id: u32, query_only: bool, turn: &mut Turn) -> Option<Option<String>> {
        let Some(thread) = self.threads.get(&id) else { return Some(Some(id.to_string())) };
        match thread.backend {
            Some(backend) if query_only => return Some(Some(backend.to_string())),
            _ if query_only => {}
            _ => turn.cancel = Some(Cancel::Client(thread.client)),
        }
        put_packet(&mut turn.to_client, 1, &ok_packet(2));
        Some(None)
    }

    fn process_kill(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Option<usize> {
        let id = rest.get(HEADER + 1..HEADER + 5)?;
        let id = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
        if self.threads.contains_key(&id) {
            self.kill(id, false, turn);
            return Some(client.drop_packet(length, rest));
        }
        server.serve(Awaits::Simple, Effect::default());
        Some(client.forward(length, rest, turn))
    }

    /// COM_RESET_CONNECTION: the session begins anew, on whatever connection comes next.
    fn reset(&mut self, client: &mut Client, attached: bool, turn: &mut Turn) {
        if attached {
            turn.release = Some(false);
        }
        let database = client.state.database.clone();
        client.forget_session(&mut self.interner);
        client.state = self.interner.state(database, Variables::new());
        put_packet(&mut turn.to_client, 1, &ok_packet(client.status));
    }
}

impl Client {
    /// Sends on what is there, and the rest of the packet when it comes.
    pub(super) fn forward(&mut self, length: usize, rest: &[u8], turn: &mut Turn) -> usize {
        let there = rest.len().min(HEADER + length);
        turn.to_server.extend_from_slice(&rest[..there]);
        self.stream = Stream { left: HEADER + length - there, continued: length == FULL, dropped: false };
        there
    }

    /// Leaves a command unanswered and unexecuted; its end may not have come yet.
    pub(super) fn drop_packet(&mut self, length: usize, rest: &[u8]) -> usize {
        let there = rest.len().min(HEADER + length);
        self.stream = Stream { left: HEADER + length - there, continued: length == FULL, dropped: true };
        there
    }

    fn pass(&mut self, rest: &[u8], turn: &mut Turn) -> usize {
        if self.stream.left == 0 {
            let Some((length, _)) = header(rest) else { return 0 };
            self.stream.left = HEADER + length;
            self.stream.continued = length == FULL;
        }
        let there = self.stream.left.min(rest.len());
        if !self.stream.dropped {
            turn.to_server.extend_from_slice(&rest[..there]);
        }
        self.stream.left -= there;
        there
    }

    pub(super) fn forget_session(&mut self, interner: &mut Interner) {
        self.statements.clear();
        self.holds.clear();
        self.pinned = None;
        self.ran = false;
        self.inserted = false;
        self.wants_check = false;
        self.status = 2;
        self.state = interner.state(None, Variables::new());
    }
}

const fn is_known(kind: u8) -> bool {
    matches!(
        kind,
        command::INIT_DB
            | command::QUERY
            | command::FIELD_LIST
            | command::STATISTICS
            | command::PROCESS_KILL
            | command::PING
            | command::STMT_PREPARE
            | command::STMT_EXECUTE
            | command::STMT_SEND_LONG_DATA
            | command::STMT_RESET
            | command::SET_OPTION
            | command::STMT_FETCH
    )
}
