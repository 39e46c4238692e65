//! What the database says, on its way to the client.

use super::server::{Batch, Effect, Expect};
use super::session::Settings;
use super::{Client, Postgres, Server};
use crate::turn::Turn;
use danki_db_wire::Error as WireError;
use danki_db_wire::postgres::{ErrorFields, HEAD, Transaction, command_tag, head};
use danki_db_wire::sql::Cause;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Messages that are looked at as a whole: the longest is the description of 1,600 columns.
const LONGEST: usize = 16 << 20;

impl Postgres {
    pub(super) fn replies(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        bytes: &[u8],
        turn: &mut Turn,
    ) -> Result<usize, WireError> {
        let (mut at, mut shown) = (0, 0);
        while at < bytes.len() && turn.release.is_none() && !turn.close_client {
            let rest = &bytes[at..];
            if server.stream > 0 {
                let length = server.stream.min(rest.len());
                server.stream -= length;
                at += length;
                continue;
            }
            let Some((kind, length)) = head(rest) else { break };
            if length < HEAD {
                return Err(WireError::Malformed("a message of the database"));
            }
            let own = matches!(server.expect.front(), Some(Expect::Own(_)));
            if matches!(kind, b'D' | b'd') && !own {
                let there = length.min(rest.len());
                server.stream = length - there;
                at += there;
                continue;
            }
            let Some(body) = rest.get(HEAD..length) else {
                if length > LONGEST {
                    return Err(WireError::TooLong("a message of the database"));
                }
                break;
            };
            let refusal = if kind == b'E' { server.refusal(body) } else { None };
            if own || refusal.is_some() || is_hidden(server, kind) {
                turn.to_client.extend_from_slice(&bytes[shown..at]);
                turn.to_client.extend_from_slice(refusal.unwrap_or_default());
                shown = at + length;
            }
            at += length;
            if own {
                self.own(client, server, kind, body, turn);
                continue;
            }
            let last = self.message(client, server, kind, body, turn);
            if last || server.is_local_next() {
                turn.to_client.extend_from_slice(&bytes[shown..at]);
                shown = at;
                server.say_locals(turn);
                if last && server.expect.is_empty() {
                    turn.ended += 1;
                    self.release_if_free(client, server, turn);
                }
            }
        }
        turn.to_client.extend_from_slice(&bytes[shown..at]);
        Ok(at)
    }

    /// A reply to what the proxy has asked to make the client's settings.
    fn own(&mut self, client: &mut Client, server: &mut Server, kind: u8, body: &[u8], turn: &mut Turn) {
        match kind {
            b'S' => server.absorb(body),
            b'E' => server.settings_refused(body, turn),
            b'Z' => {
                if let Some(Expect::Own(settings)) = server.expect.pop_front() {
                    server.settings = settings;
                }
                server.show(client, turn);
                turn.resume = true;
            }
            _ => {}
        }
    }

    /// Keeps the books. True: it was ReadyForQuery.
    fn message(
        &mut self,
        client: &mut Client,
        server: &mut Server,
        kind: u8,
        body: &[u8],
        turn: &mut Turn,
    ) -> bool {
        match kind {
            b'S' => server.absorb(body),
            b'1' | b'2' | b'3' => {
                server.expect.pop_front();
            }
            b'n' => pop_if(server, |expect| matches!(expect, Expect::Describe)),
            b'T' => pop_if(server, |expect| matches!(expect, Expect::Describe)),
            b's' | b'I' => pop_if(server, |expect| matches!(expect, Expect::Execute(_))),
            b'C' => self.completed(client, server, body),
            b'E' => self.failed(client, server, body, turn),
            b'Z' => {
                self.ready(client, server, body, turn);
                return true;
            }
            _ => {}
        }
        false
    }

    fn completed(&mut self, client: &mut Client, server: &mut Server, body: &[u8]) {
        let tag = command_tag(body).unwrap_or_default();
        match tag {
            b"COMMIT" | b"PREPARE TRANSACTION" => server.committed = Some(true),
            b"ROLLBACK" => server.committed = Some(false),
            _ => {}
        }
        let effect = match server.expect.front_mut() {
            Some(Expect::Query(effect)) => std::mem::replace(effect, Effect::None),
            Some(Expect::Execute(_)) => match server.expect.pop_front() {
                Some(Expect::Execute(effect)) => effect,
                _ => Effect::None,
            },
            _ => Effect::None,
        };
        match effect {
            Effect::None => {}
            Effect::Settings(settings) => client.pending.extend(settings),
            Effect::DeallocateAll => {
                client.statements.clear();
                server.forget_all();
            }
            Effect::DiscardAll => {
                client.statements.clear();
                client.unnamed = None;
                server.unnamed = None;
                server.forget_all();
                server.settings = Rc::clone(&self.base);
                client.settings = Rc::clone(&client.startup);
                client.pending.clear();
                if !self.is_rds() {
                    client.pinned = None;
                }
            }
        }
    }

    /// An error ends a query, or all of a batch up to its Sync: what was owed is not owed any more, what was to be prepared is not.
    fn failed(&mut self, client: &mut Client, server: &mut Server, body: &[u8], turn: &mut Turn) {
        let error = ErrorFields::parse(body);
        if error.as_ref().is_some_and(is_outdated) {
            self.definitions += 1;
        }
        // A standby, as the old primary is after a failover. (A read-only transaction is its client's own wish.)
        let standby = || server.parameters.get(&b"in_hot_standby"[..]).is_some_and(|value| value == b"on");
        turn.write_refused |= error.is_some_and(|error| error.code == "25006") && standby();
        if let Some(Expect::Query(effect)) = server.expect.front_mut() {
            *effect = Effect::None;
            return;
        }
        while !matches!(server.expect.front(), None | Some(Expect::Sync)) {
            match server.expect.pop_front() {
                Some(Expect::Parse(Some((name, statement)))) => {
                    client.statements.remove(&name);
                    server.forget(&statement);
                }
                Some(Expect::Parse(None)) => server.unnamed = None,
                Some(Expect::HiddenParse(statement)) => server.forget(&statement),
                Some(Expect::Parsed(name)) => drop(client.statements.remove(&name)),
                Some(Expect::Closed(name, statement)) => drop(client.statements.insert(name, statement)),
                _ => {}
            }
        }
        if server.expect.is_empty() && server.batch == Batch::Open {
            server.batch = Batch::Failed;
        }
    }

    fn ready(&mut self, client: &mut Client, server: &mut Server, body: &[u8], turn: &mut Turn) {
        server.expect.pop_front();
        let state = body.first().and_then(|&byte| Transaction::read(byte)).unwrap_or(Transaction::Failed);
        let before = std::mem::replace(&mut server.transaction, state);
        client.transaction = state;
        if server.defined {
            self.definitions += 1;
            server.defined = state != Transaction::Idle;
        }
        if state != Transaction::Idle {
            return;
        }
        let ended = server.committed.take();
        let in_doubt = std::mem::take(&mut client.savepoints) && before != Transaction::Idle;
        if client.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut client.pending);
        if in_doubt {
            return self.pin(client, Cause::Setting, b"", turn);
        }
        match (before, ended) {
            // On its own, or committed.
            (Transaction::Idle, None | Some(true)) | (_, Some(true)) => self.settle(client, server, pending),
            (_, Some(false)) => {}
            (_, None) => self.pin(client, Cause::Setting, b"", turn),
        }
    }

    /// Settings hold from now on.
    fn settle(&mut self, client: &mut Client, server: &mut Server, settings: Vec<(String, Option<String>)>) {
        let mut of_server = server.settings.statements.clone();
        let mut of_client = client.settings.statements.clone();
        for (name, value) in settings {
            match value {
                Some(value) => {
                    let sql = format!("SET {name} TO {value}");
                    of_server.insert(name.clone(), sql.clone());
                    of_client.insert(name, sql);
                }
                None => {
                    of_server.remove(&name);
                    back_to_startup(&mut of_client, &client.startup, name);
                }
            }
        }
        server.settings = self.interner.settings(of_server);
        client.settings = self.interner.settings(of_client);
    }
}

fn back_to_startup(settings: &mut BTreeMap<String, String>, startup: &Settings, name: String) {
    match startup.statements.get(&name) {
        Some(sql) => settings.insert(name, sql.clone()),
        None => settings.remove(&name),
    };
}

fn is_hidden(server: &Server, kind: u8) -> bool {
    matches!(
        (kind, server.expect.front()),
        (b'1', Some(Expect::HiddenParse(_))) | (b'3', Some(Expect::HiddenClose))
    )
}

fn pop_if(server: &mut Server, wanted: impl FnOnce(&Expect) -> bool) {
    if server.expect.front().is_some_and(wanted) {
        server.expect.pop_front();
    }
}

/// A statement was prepared before somebody, elsewhere, defined anew what it means.
fn is_outdated(error: &ErrorFields) -> bool {
    match &*error.code {
        "0A000" => error.message.starts_with("cached plan"),
        "XX000" => error.message.starts_with("cache lookup failed"),
        _ => false,
    }
}
