//! What a client says once it is in: forwarded, answered here, or held until there is a connection.

use super::server::{Batch, Effect, Expect};
use super::session::{Meaning, Statement};
use super::{Client, Discard, Postgres, Server};
use crate::turn::Turn;
use danki_db_wire::Error as WireError;
use danki_db_wire::postgres::{
    HEAD, bind_names, close_target, error_response, head, parse_parts, put_close, put_message, put_parse,
    rename_bind, rename_describe,
};
use danki_db_wire::sql::{Cause, Class, LONGEST, postgres};
use std::rc::Rc;

/// So much of a statement is read at most before it is sent on.
const READ: usize = HEAD + LONGEST + 2;
/// A statement to prepare is kept, so that it can be prepared elsewhere; longer ones are refused.
const LONGEST_PARSE: usize = 4 << 20;
/// Names of statements and portals end within this.
const NAMES: usize = 16 * 1024;

impl Postgres {
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
            if client.stream > 0 {
                let length = client.stream.min(rest.len());
                if server.is_some() && client.discard == Discard::Nothing {
                    turn.to_server.extend_from_slice(&rest[..length]);
                }
                client.stream -= length;
                at += length;
                continue;
            }
            let Some((kind, length)) = head(rest) else { break };
            if length < HEAD {
                return Err(WireError::Malformed("a message's length"));
            }
            let used = match server.as_deref_mut() {
                _ if client.discard == Discard::UntilReady => Some(discard(client, kind, length, rest, turn)),
                _ if kind == b'X' => {
                    turn.close_client = true;
                    Some(rest.len())
                }
                None => self.without_connection(client, kind, length, rest, turn)?,
                Some(server) if !server.takes_commands() => None,
                Some(server) if server.batch == Batch::Failed && kind != b'S' => {
                    forward(client, length, rest, turn)
                }
                Some(server) => {
                    let before = turn.to_server.len();
                    let used = self.command(client, server, kind, length, rest, turn)?;
                    if turn.to_server.len() > before {
                        server.follow_batch(kind);
                    }
                    used
                }
            };
            match used {
                Some(used) => at += used,
                None => break,
            }
        }
        Ok(at)
    }

    /// A message while the client has no connection: some need none.
    fn without_connection(
        &mut self,
        client: &mut Client,
        kind: u8,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Result<Option<usize>, WireError> {
        match kind {
            b'S' if length <= rest.len() => put_message(&mut turn.to_client, b'Z', b"I"),
            b'H' if length <= rest.len() => {}
            b'C' => {
                let Some(body) = rest.get(HEAD..length) else { return too_long(length, NAMES, turn) };
                let (kind, name) = close_target(body).ok_or(WireError::Malformed("Close"))?;
                if kind == b'S' {
                    client.forget_statement(name);
                }
                put_message(&mut turn.to_client, b'3', b"");
            }
            // Copied data after the copy has failed: the server would pass over it too.
            b'd' | b'c' | b'f' => {
                client.stream = length.saturating_sub(rest.len());
                return Ok(Some(length.min(rest.len())));
            }
            b'Q' | b'P' | b'B' | b'D' | b'E' | b'F' => {
                turn.borrow = true;
                return Ok(None);
            }
            _ => return Err(WireError::Malformed("a message of no known kind")),
        }
        Ok((length <= rest.len()).then_some(length))
    }

    fn command(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        kind: u8,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Result<Option<usize>, WireError> {
        match kind {
            b'Q' => self.query(client, server, length, rest, turn),
            b'P' => self.parse(client, server, length, rest, turn),
            b'B' => self.bind(client, server, length, rest, turn),
            b'D' => self.describe(client, server, length, rest, turn),
            b'C' => Self::close(client, server, length, rest, turn),
            b'E' => {
                self.note_definition(client.bound.as_ref().is_some_and(|bound| bound.class.defines), server);
                let bound = client.bound.as_ref().filter(|bound| !bound.class.settings.is_empty());
                let effect =
                    bound.map_or(Effect::None, |bound| Effect::Settings(bound.class.settings.clone()));
                server.expect.push_back(Expect::Execute(effect));
                Ok(forward(client, length, rest, turn))
            }
            // Nothing of the batch has had to be sent: the database need not be asked for its end.
            b'S' if server.is_quiet() && turn.to_server.is_empty() && length <= rest.len() => {
                put_message(&mut turn.to_client, b'Z', &[server.transaction.byte()]);
                turn.ended += 1;
                self.release_if_free(client, server, turn);
                Ok(Some(length))
            }
            b'S' => {
                server.expect.push_back(Expect::Sync);
                turn.began += 1;
                Ok(forward(client, length, rest, turn))
            }
            b'F' => {
                self.pin(client, Cause::Opaque, b"", turn);
                server.expect.push_back(Expect::Query(Effect::None));
                Ok(forward(client, length, rest, turn))
            }
            b'H' | b'd' | b'c' | b'f' => Ok(forward(client, length, rest, turn)),
            _ => Err(WireError::Malformed("a message of no known kind")),
        }
    }

    /// What statements mean may change now, and again when the transaction ends.
    fn note_definition(&mut self, defines: bool, server: &mut Server) {
        if defines {
            self.definitions += 1;
            server.defined = true;
        }
    }

    /// Pins if the text says so. An error: it asks for something that is lost.
    fn judge(&self, client: &mut Client, class: &Class, sql: &[u8], turn: &mut Turn) -> Result<(), Vec<u8>> {
        let cause = if self.is_rds() { class.rds } else { class.smart };
        if let Some(cause) = cause {
            self.pin(client, cause, sql, turn);
        }
        if class.previous && !self.is_rds() && !client.untouched && client.pinned.is_none() {
            let text = "currval() and lastval() are not known any more: another session has used the connection since";
            let hint = "use INSERT … RETURNING, or ask within the same transaction";
            return Err(error("55000", text, hint));
        }
        if sql.windows(6).any(|word| word.eq_ignore_ascii_case(b"insert")) {
            client.untouched = true;
        }
        client.savepoints |= class.savepoint;
        Ok(())
    }

    fn query(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Result<Option<usize>, WireError> {
        let seen = length.min(READ);
        let Some(body) = rest.get(HEAD..seen) else { return Ok(None) };
        let sql = body.split(|&byte| byte == 0).next().unwrap_or_default();
        let class = postgres(sql);
        turn.began += 1;
        let whole = length <= rest.len();
        if let (Some(Some(name)), false, true) = (&class.deallocate, class.several, whole)
            && client.statements.contains_key(name.as_bytes())
        {
            client.forget_statement(name.as_bytes());
            let mut out = Vec::new();
            put_message(&mut out, b'C', b"DEALLOCATE\0");
            put_message(&mut out, b'Z', &[server.transaction.byte()]);
            server.expect.push_back(Expect::Local(out));
            self.local(client, server, turn);
            return Ok(Some(length));
        }
        if let Err(mut error) = self.judge(client, &class, sql, turn) {
            put_message(&mut error, b'Z', &[server.transaction.byte()]);
            server.expect.push_back(Expect::Local(error));
            self.local(client, server, turn);
            client.stream = length.saturating_sub(rest.len());
            return Ok(Some(length.min(rest.len())));
        }
        self.note_definition(class.defines, server);
        client.unnamed = None;
        server.unnamed = None;
        let effect = if class.discard_all {
            Effect::DiscardAll
        } else if class.deallocate == Some(None) {
            Effect::DeallocateAll
        } else if class.settings.is_empty() {
            Effect::None
        } else {
            Effect::Settings(class.settings)
        };
        server.expect.push_back(Expect::Query(effect));
        Ok(forward(client, length, rest, turn))
    }

    fn parse(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Result<Option<usize>, WireError> {
        let Some(body) = rest.get(HEAD..length) else { return too_long(length, LONGEST_PARSE, turn) };
        let (name, sql, what) = parse_parts(body).ok_or(WireError::Malformed("Parse"))?;
        if client.statements.contains_key(name) {
            let text = format!("prepared statement \"{}\" already exists", String::from_utf8_lossy(name));
            server.refuse(error("42P05", &text, ""), turn);
            return Ok(Some(length));
        }
        let meaning = Meaning { settings: client.settings.number, definitions: self.definitions };
        let statement = self.interner.statement(what, meaning, || postgres(sql));
        if self.parse_pins() {
            self.pin(client, Cause::Prepared, sql, turn);
        }
        if !self.is_rds() && (statement.class.deallocate.is_some() || statement.class.discard_all) {
            self.pin(client, Cause::Prepared, sql, turn);
        }
        if let Err(error) = self.judge(client, &statement.class, sql, turn) {
            server.refuse(error, turn);
            return Ok(Some(length));
        }
        if name.is_empty() {
            server.unnamed = Some(statement.number);
            server.expect.push_back(Expect::Parse(None));
            turn.to_server.extend_from_slice(&rest[..length]);
            client.unnamed = Some(statement);
            return Ok(Some(length));
        }
        client.statements.insert(name.to_vec(), Rc::clone(&statement));
        // Settings that are not committed may make the same text mean something else.
        if client.pending.is_empty() && server.has(&statement) {
            server.expect.push_back(Expect::Parsed(name.to_vec()));
            // Sync will follow, and only then may the connection go.
            server.say_locals(turn);
        } else {
            if server.has(&statement) {
                put_close(&mut turn.to_server, &statement.name);
                server.expect.push_back(Expect::HiddenClose);
            }
            put_parse(&mut turn.to_server, &statement.name, &statement.rest);
            server.expect.push_back(Expect::Parse(Some((name.to_vec(), Rc::clone(&statement)))));
            server.remember(statement, turn);
        }
        Ok(Some(length))
    }

    fn bind(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Result<Option<usize>, WireError> {
        let body = rest.get(HEAD..length.min(rest.len())).unwrap_or_default();
        let Some((_, name)) = bind_names(body) else {
            return if body.len() < NAMES && length > rest.len() {
                Ok(None)
            } else {
                Err(WireError::Malformed("Bind"))
            };
        };
        let statement = client.statement(name);
        client.bound.clone_from(&statement);
        let Some(statement) = statement else {
            server.expect.push_back(Expect::Bind);
            return Ok(forward(client, length, rest, turn));
        };
        let renamed = self.provide(server, name, &statement, turn);
        server.expect.push_back(Expect::Bind);
        let Some(renamed) = renamed else { return Ok(forward(client, length, rest, turn)) };
        let start = turn.to_server.len();
        rename_bind(&mut turn.to_server, body, renamed).ok_or(WireError::Malformed("Bind"))?;
        // The rest of a long one follows as it is: its length is part of the new head.
        let missing = length.saturating_sub(rest.len());
        let announced = (turn.to_server.len() - start - 1 + missing) as u32;
        turn.to_server[start + 1..start + HEAD].copy_from_slice(&announced.to_be_bytes());
        client.stream = missing;
        Ok(Some(length.min(rest.len())))
    }

    /// Makes sure that the connection has the statement. Some: under this name.
    fn provide<'a>(
        &self,
        server: &mut Server,
        name: &[u8],
        statement: &'a Rc<Statement>,
        turn: &mut Turn,
    ) -> Option<&'a [u8]> {
        if name.is_empty() {
            if server.unnamed != Some(statement.number) {
                put_parse(&mut turn.to_server, b"", &statement.rest);
                server.expect.push_back(Expect::HiddenParse(Rc::clone(statement)));
                server.unnamed = Some(statement.number);
            }
            return None;
        }
        if !server.has(statement) {
            put_parse(&mut turn.to_server, &statement.name, &statement.rest);
            server.expect.push_back(Expect::HiddenParse(Rc::clone(statement)));
            server.remember(Rc::clone(statement), turn);
        }
        Some(&statement.name)
    }

    fn describe(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Result<Option<usize>, WireError> {
        let Some(body) = rest.get(HEAD..length) else { return too_long(length, NAMES, turn) };
        let (kind, name) = close_target(body).ok_or(WireError::Malformed("Describe"))?;
        let statement = if kind == b'S' { client.statement(name) } else { None };
        let renamed = statement.as_ref().and_then(|statement| self.provide(server, name, statement, turn));
        server.expect.push_back(Expect::Describe);
        match renamed {
            Some(renamed) => rename_describe(&mut turn.to_server, renamed),
            None => turn.to_server.extend_from_slice(&rest[..length]),
        }
        Ok(Some(length))
    }

    /// Statements stay on the connection for whoever needs the same.
    fn close(
        client: &mut Client,
        server: &mut Server,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Result<Option<usize>, WireError> {
        let Some(body) = rest.get(HEAD..length) else { return too_long(length, NAMES, turn) };
        let (kind, name) = close_target(body).ok_or(WireError::Malformed("Close"))?;
        if kind == b'S' && client.statements.contains_key(name) {
            let statement = client.statements.remove(name);
            server.expect.extend(statement.map(|statement| Expect::Closed(name.to_vec(), statement)));
            server.say_locals(turn);
            return Ok(Some(length));
        }
        if kind == b'S' && name.is_empty() {
            client.unnamed = None;
            server.unnamed = None;
        }
        server.expect.push_back(Expect::Close);
        turn.to_server.extend_from_slice(&rest[..length]);
        Ok(Some(length))
    }

    /// An answer of the proxy's own may be the last thing that was outstanding.
    fn local(&mut self, client: &mut Client, server: &mut Server, turn: &mut Turn) {
        server.say_locals(turn);
        if server.expect.is_empty() && !server.in_batch(turn) {
            turn.ended += 1;
            self.release_if_free(client, server, turn);
        }
    }
}

impl Client {
    fn statement(&self, name: &[u8]) -> Option<Rc<Statement>> {
        if name.is_empty() { self.unnamed.clone() } else { self.statements.get(name).cloned() }
    }

    fn forget_statement(&mut self, name: &[u8]) {
        if name.is_empty() {
            self.unnamed = None;
        } else {
            self.statements.remove(name);
        }
    }
}

/// Sends on what is there, and the rest of the message when it comes.
fn forward(client: &mut Client, length: usize, rest: &[u8], turn: &mut Turn) -> Option<usize> {
    let there = length.min(rest.len());
    turn.to_server.extend_from_slice(&rest[..there]);
    client.stream = length - there;
    Some(there)
}

/// Not all of it is there yet; or there will be too much.
fn too_long(length: usize, longest: usize, turn: &mut Turn) -> Result<Option<usize>, WireError> {
    if length > longest {
        return Err(WireError::TooLong("a message that must be read as a whole"));
    }
    turn.needs = length;
    Ok(None)
}

/// After an error the rest of the batch is passed over, as the server would.
fn discard(client: &mut Client, kind: u8, length: usize, rest: &[u8], turn: &mut Turn) -> usize {
    let there = length.min(rest.len());
    client.stream = length - there;
    match kind {
        b'Q' | b'S' => {
            put_message(&mut turn.to_client, b'Z', &[client.transaction.byte()]);
            // The rest of a long query has to go the same way.
            client.discard = if client.stream > 0 { Discard::UntilReady } else { Discard::Nothing };
        }
        b'X' => turn.close_client = true,
        _ => {}
    }
    there
}

fn error(code: &str, text: &str, hint: &str) -> Vec<u8> {
    let mut out = Vec::new();
    error_response(&mut out, "ERROR", code, text, hint);
    out
}
