//! What the database says, on its way to the client, and what its trackers tell about the session.

use super::server::{Changes, Effect, Own, Server, Task};
use super::{Client, MySql, Phase, Prepared};
use crate::turn::Turn;
use danki_db_wire::Error as WireError;
use danki_db_wire::mysql::{
    ErrPacket, HEADER, OkPacket, Part, put_packet, statement_id, status, with_statement_id,
};
use danki_db_wire::sql::Cause;

impl MySql {
    pub(super) fn replies(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        match std::mem::replace(&mut server.task, Task::None) {
            // A last word before the connection ends.
            Task::None => Ok(bytes.len()),
            own @ Task::Own(..) => {
                server.task = own;
                self.own_reply(client, server, bytes, turn)
            }
            Task::Client(mut reply, effect) => {
                let mut at = 0;
                loop {
                    let part = reply.next(&bytes[at..])?;
                    if matches!(part, Part::More | Part::End) {
                        break;
                    }
                    let packet = &bytes[at..at + part.length()];
                    at += part.length();
                    self.part(client, server, &effect, part, packet, turn);
                }
                client.status = reply.status;
                if reply.ended() {
                    self.finish(client, server, &effect, turn);
                } else {
                    server.task = Task::Client(reply, effect);
                }
                Ok(at)
            }
        }
    }

    /// Shows a part of the reply to the client.
    fn part(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        effect: &Effect,
        part: Part<'_>,
        packet: &[u8],
        turn: &mut Turn,
    ) {
        let start = turn.to_client.len();
        match part {
            Part::Ok(payload) => {
                if let Some(ok) = OkPacket::parse(payload, server.capabilities) {
                    server.absorb(&ok);
                    client.told = true;
                    if ok.insert_id != 0 {
                        client.inserted = true;
                        server.inserted_by = Some(client.id);
                    }
                    return put_packet(&mut turn.to_client, packet[3], &ok.rebuild(client.capabilities));
                }
            }
            Part::Err(payload) => {
                turn.write_refused |= refuses_writes(payload);
                // A plain statement that fails changes nothing; but it may have begun a transaction.
                let plain = !effect.doubt && !effect.setting && server.status & status::AUTOCOMMIT != 0;
                client.wants_check |= !plain;
                client.told = true;
            }
            Part::File(_) => client.uploading = true,
            Part::Pass(_) | Part::Eof(_) | Part::Prepared(_) | Part::More | Part::End => {}
        }
        turn.to_client.extend_from_slice(packet);
        match part {
            // What the trackers have to say is not for the client; the flag neither.
            Part::Eof(payload) if payload.len() >= 5 => {
                server.status = u16::from_le_bytes([payload[3], payload[4]]);
                client.told = false;
                turn.to_client[start + HEADER + 4] &= !(status::SESSION_STATE_CHANGED >> 8) as u8;
            }
            Part::Prepared(payload) => {
                if let (Some(number), Some(statement)) = (statement_id(payload), &effect.prepared) {
                    server.remember(statement, number, turn);
                    let id = client.next_statement;
                    client.next_statement = client.next_statement.wrapping_add(1).max(1);
                    let parameters = u16::from_le_bytes([payload[7], payload[8]]);
                    let prepared = Prepared { statement: statement.clone(), parameters, types: Vec::new() };
                    client.statements.insert(id, prepared);
                    with_statement_id(&mut turn.to_client[start + HEADER..], id)
                        .expect("it was just read from there");
                }
            }
            _ => {}
        }
    }

    /// The reply has ended: what has changed, and may the connection go back?
    fn finish(&mut self, client: &mut Client, server: &mut Server, effect: &Effect, turn: &mut Turn) {
        turn.ended += 1;
        if let Some(id) = effect.cursor {
            let open =
                server.status & status::CURSOR_EXISTS != 0 && server.status & status::LAST_ROW_SENT == 0;
            if open {
                client.holds.insert(id);
            } else {
                client.holds.remove(&id);
            }
        }
        // Without DEPRECATE_EOF the trackers cannot speak at the end of rows.
        client.wants_check |= effect.doubt && !client.told && !self.is_rds();
        self.learn(client, server, effect.setting, turn);
        self.release_if_free(client, server, turn);
    }

    /// Takes over what the trackers have reported.
    fn learn(&mut self, client: &mut Client, server: &mut Server, setting: bool, turn: &mut Turn) {
        let Changes { variables, schema, state } = std::mem::take(&mut server.changes);
        if variables.is_empty() && schema.is_none() && !state {
            return;
        }
        let mut now = server.state.variables.clone();
        let mut unknown = false;
        for (name, value) in &variables {
            match server.base.get(name) {
                Some(base) if base == value => {
                    now.remove(name);
                }
                Some(_) => {
                    now.insert(name.clone(), value.clone());
                }
                // Follow from the database that was entered.
                None if schema.is_some() && is_of_database(name) => {}
                None => unknown = true,
            }
        }
        let explained = setting && (!variables.is_empty() || schema.is_some());
        let database = match &schema {
            Some(name) => Some(name.clone()).filter(|name| !name.is_empty()),
            None => server.state.database.clone(),
        };
        server.state = self.interner.state(database, now);
        client.state = server.state.clone();
        if self.is_rds() {
            return;
        }
        if unknown {
            self.pin(client, Cause::Setting, b"", turn);
        } else if state && !explained {
            self.pin(client, Cause::StateChanged, b"", turn);
        }
    }

    fn own_reply(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        let (used, ended) = server.own_part(bytes)?;
        let Some((number, error)) = ended else { return Ok(used) };
        let Task::Own(own, _) = std::mem::replace(&mut server.task, Task::None) else { return Ok(used) };
        if let Some(error) = error {
            self.own_failed(client, server, &own, error, turn);
            return Ok(used);
        }
        match own {
            Own::Check => self.learn(client, server, false, turn),
            Own::Learn(other) => {
                let id = server.changes.variables.iter().find(|(name, _)| name == "last_insert_id");
                if let Some((_, id)) = id.filter(|(_, id)| id.bytes().all(|byte| byte.is_ascii_digit())) {
                    self.learned.insert(other, id.clone());
                }
            }
            Own::Prepare(statement) => {
                if let Some(number) = number {
                    server.remember(&statement, number, turn);
                }
            }
            Own::Enter(_) | Own::Assign(_) | Own::Restore(_) => {}
        }
        // What the proxy itself has changed is known.
        server.changes = Changes::default();
        if !server.next_own(turn) {
            self.release_if_idle(client, server, turn);
            turn.resume = true;
        }
        Ok(used)
    }

    /// After a check nothing of the client's may be under way.
    fn release_if_idle(&mut self, client: &mut Client, server: &mut Server, turn: &mut Turn) {
        if client.checking {
            client.checking = false;
            self.release_if_free(client, server, turn);
        }
    }

    /// The client's state cannot be had here: its command gets the database's words for an answer.
    fn own_failed(
        &self,
        client: &mut Client,
        server: &mut Server,
        own: &Own,
        error: Vec<u8>,
        turn: &mut Turn,
    ) {
        server.give_up();
        if !matches!(own, Own::Prepare(_)) {
            turn.release = Some(false);
        }
        if matches!(client.phase, Phase::Ready) {
            if !matches!(own, Own::Check) {
                client.refused = Some(error);
            }
            turn.resume = true;
        } else {
            put_packet(&mut turn.to_client, client.sequence, &error);
            turn.close_client = true;
        }
    }
}

fn is_of_database(name: &str) -> bool {
    matches!(name, "character_set_database" | "collation_database")
}

/// The server is read-only, as one is after a failover. (1792 is a transaction's own wish.)
fn refuses_writes(payload: &[u8]) -> bool {
    ErrPacket::parse(payload).is_some_and(|error| match error.code {
        1290 => error.message.contains("read-only") || error.message.contains("read_only"),
        1836 => true,
        _ => false,
    })
}
