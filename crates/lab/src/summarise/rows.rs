//! One row per invocation, and the story of the connections that its calls used.

use crate::results::{Opened, Predecessor, Row, RowCall};
use danki_explain::{Call, ConnFacts, EnvFacts, Facts, Variant as Explained};
use danki_model::EnvId;
use danki_record::Invocation;
use std::collections::HashMap;

/// All rows, by dispatch.
pub fn rows(explained: &[Explained], facts: &Facts) -> Vec<Row> {
    let all = explained.iter().flat_map(|e| &e.invocations);
    let mut of_env: HashMap<EnvId, Vec<&Invocation>> = HashMap::new();
    all.clone().for_each(|(i, _)| of_env.entry(i.env).or_default().push(i));
    let mut rows: Vec<Row> =
        all.map(|(i, w)| row(i, &w.calls, facts.of_env(i.env), &of_env[&i.env])).collect();
    rows.sort_by_key(|row| row.invocation.dispatched_ns);
    let mut last_end: HashMap<EnvId, u64> = HashMap::new();
    for row in &mut rows {
        let i = &row.invocation;
        let end = last_end.insert(i.env, i.responded_ns);
        row.idle_ns = end.map(|end| i.dispatched_ns.saturating_sub(end));
    }
    rows
}

fn row(invocation: &Invocation, calls: &[Call], env: Option<&EnvFacts>, siblings: &[&Invocation]) -> Row {
    let connections = env.map_or(&[][..], |env| &env.connections);
    let one = |call: &Call| {
        let nth = connections.iter().position(|c| c.connection.conn == call.conn);
        let before = nth.filter(|_| call.is_new()).and_then(|nth| before(connections, nth));
        RowCall {
            service: call.service.clone(),
            ms: call.ms(),
            port: call.client.port(),
            new_connection: call.is_new(),
            opened: nth.map(|nth| opened(&connections[nth], siblings)),
            predecessor: before.map(|before| predecessor(before, siblings)),
        }
    };
    Row { invocation: invocation.clone(), calls: calls.iter().map(one).collect(), idle_ns: None }
}

/// The env's last connection to the same endpoint that was there before this one.
fn before(connections: &[ConnFacts], nth: usize) -> Option<&ConnFacts> {
    let server = connections[nth].connection.server;
    connections[..nth].iter().rev().find(|c| c.connection.server == server)
}

fn opened(c: &ConnFacts, siblings: &[&Invocation]) -> Opened {
    let at_ns = c.connection.syn_ns;
    let began = |i: &&&Invocation| i.delivered_ns.unwrap_or(i.dispatched_ns) <= at_ns;
    siblings
        .iter()
        .filter(began)
        .max_by_key(|i| i.dispatched_ns)
        .map_or(Opened::Init, |i| Opened::Invocation(i.index))
}

fn predecessor(c: &ConnFacts, siblings: &[&Invocation]) -> Predecessor {
    let connection = &c.connection;
    // A goodbye in TLS is payload too: idleness counts from the last response.
    let used_ns = c.requests.iter().map(|r| r.service_time.to_ns).max();
    let used_ns = used_ns.or(connection.established_ns).unwrap_or(connection.syn_ns);
    Predecessor {
        port: connection.client.port(),
        opened: opened(c, siblings),
        closed_by: connection.closed_by,
        idle_ns: connection.closed_ns.map(|at| at.saturating_sub(used_ns)),
    }
}
