//! Prepared statements of the binary protocol. The client's numbers are the proxy's; each connection prepares what it lacks, by content.

use super::server::{Effect, Own, Server};
use super::session::Statement;
use super::{Client, MySql, error};
use crate::turn::Turn;
use danki_db_wire::mysql::{
    Awaits, FULL, HEADER, command, execute_flags, put_command, statement_id, with_statement_id, with_types,
};
use danki_db_wire::sql::{Cause, mysql};
use std::rc::Rc;

/// A statement as a client has it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub statement: Rc<Statement>,
    pub parameters: u16,
    /// Types of its parameters, once they were sent.
    pub types: Vec<u8>,
}

/// A statement to prepare is kept, so that it can be prepared elsewhere; one of several packets is not.
const LONGEST: usize = FULL - 1;

impl MySql {
    pub(super) fn prepare(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Option<usize> {
        if length > LONGEST {
            error(turn, 1, 1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes");
            return Some(client.drop_packet(length, rest));
        }
        let Some(sql) = rest.get(HEADER + 1..HEADER + length) else {
            turn.needs = HEADER + length;
            return None;
        };
        let class = mysql(sql);
        if self.is_rds() {
            self.pin(client, Cause::Prepared, sql, turn);
        } else if let Some(cause) = class.smart {
            self.pin(client, cause, sql, turn);
        } else if class.setting || class.previous || class.last_id {
            // What it does shows when it is executed, perhaps elsewhere.
            self.pin(client, Cause::Prepared, sql, turn);
        }
        turn.began += 1;
        let statement = self.interner.statement(sql, class.doubt);
        server.serve(Awaits::Prepared, Effect { prepared: Some(statement), ..Effect::default() });
        Some(client.forward(length, rest, turn))
    }

    /// The connection's number of a statement. None: it is being prepared.
    fn provide(&self, client: &Client, server: &mut Server, id: u32, turn: &mut Turn) -> Option<u32> {
        let prepared = client.statements.get(&id)?;
        let found = server.number_of(&prepared.statement);
        if found.is_none() {
            server.push(Own::Prepare(Rc::clone(&prepared.statement)));
            server.next_own(turn);
        }
        found
    }

    pub(super) fn execute(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Option<usize> {
        let payload = &rest[HEADER..rest.len().min(HEADER + length)];
        let id =
            if payload.len() < 10 && payload.len() < length { return None } else { statement_id(payload) };
        let Some((id, prepared)) = id.and_then(|id| Some((id, client.statements.get(&id)?))) else {
            return Some(unknown(client, id, "mysqld_stmt_execute", length, rest, turn));
        };
        let (parameters, doubt) = (prepared.parameters, prepared.statement.doubt);
        let head = (11 + usize::from(parameters).div_ceil(8) + 2 * usize::from(parameters)).min(length);
        let head = payload.get(..head)?;
        let number = self.provide(client, server, id, turn)?;
        let types = client.statements.get_mut(&id).map(|prepared| &mut prepared.types)?;
        let before = types.len();
        let built = with_types(head, parameters, types)
            .filter(|built| length + built.len() - head.len() < FULL || length == FULL);
        let Some(mut built) = built.filter(|built| length < FULL || built.len() == head.len()) else {
            debug_assert!(before <= types.len(), "types are replaced, not lost");
            error(turn, 1, 1210, "HY000", "Incorrect arguments to mysqld_stmt_execute");
            return Some(client.drop_packet(length, rest));
        };
        with_statement_id(&mut built, number)?;
        let announced = (length + built.len() - head.len()) as u32;
        let cursor = execute_flags(&built).is_some_and(|flags| flags != 0);
        client.holds.remove(&id);
        client.ran = true;
        client.untouched = true;
        client.asked = false;
        turn.began += 1;
        server.serve(Awaits::Results, Effect { doubt, cursor: cursor.then_some(id), ..Effect::default() });
        turn.to_server.extend_from_slice(&announced.to_le_bytes()[..3]);
        turn.to_server.push(0);
        turn.to_server.extend_from_slice(&built);
        turn.to_server.extend_from_slice(&payload[head.len()..]);
        client.stream.left = length - payload.len();
        client.stream.continued = length == FULL;
        client.stream.dropped = false;
        Some(HEADER + payload.len())
    }

    /// Long data, fetch, reset: the number is changed, nothing else.
    pub(super) fn with_statement(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        kind: u8,
        length: usize,
        rest: &[u8],
        turn: &mut Turn,
    ) -> Option<usize> {
        if length < 5 {
            error(turn, 1, 1835, "HY000", "Malformed communication packet");
            return Some(client.drop_packet(length, rest));
        }
        let id = statement_id(rest.get(HEADER..HEADER + 5)?)?;
        let name = if kind == command::STMT_FETCH { "mysqld_stmt_fetch" } else { "mysqld_stmt_reset" };
        let lost = kind == command::STMT_FETCH && !client.holds.contains(&id);
        if lost || !client.statements.contains_key(&id) {
            if kind == command::STMT_SEND_LONG_DATA {
                return Some(client.drop_packet(length, rest));
            }
            return Some(unknown(client, Some(id), name, length, rest, turn));
        }
        let number = self.provide(client, server, id, turn)?;
        match kind {
            command::STMT_SEND_LONG_DATA => {
                client.holds.insert(id);
            }
            command::STMT_FETCH => {
                server.serve(Awaits::Rows, Effect { cursor: Some(id), ..Effect::default() });
            }
            _ => {
                client.holds.remove(&id);
                server.serve(Awaits::Simple, Effect::default());
            }
        }
        let start = turn.to_server.len();
        let used = client.forward(length, rest, turn);
        with_statement_id(&mut turn.to_server[start + HEADER..], number)?;
        Some(used)
    }

    /// Statements stay on their connections for whoever needs the same, unless they hold something.
    pub(super) fn close_statement(
        &mut self,
        client: &mut Client,
        server: Option<&mut Server>,
        payload: &[u8],
        turn: &mut Turn,
    ) {
        let Some(id) = statement_id(payload) else { return };
        let Some(prepared) = client.statements.remove(&id) else { return };
        if client.holds.remove(&id)
            && let Some(server) = server
        {
            if let Some(number) = server.forget(&prepared.statement) {
                put_command(&mut turn.to_server, command::STMT_CLOSE, &number.to_le_bytes());
            }
            self.release_if_free(client, server, turn);
        }
    }
}

fn unknown(
    client: &mut Client,
    id: Option<u32>,
    name: &str,
    length: usize,
    rest: &[u8],
    turn: &mut Turn,
) -> usize {
    let id = id.unwrap_or(0);
    error(turn, 1, 1243, "HY000", &format!("Unknown prepared statement handler ({id}) given to {name}"));
    client.drop_packet(length, rest)
}
