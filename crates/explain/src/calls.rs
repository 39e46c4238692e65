//! Requests that an invocation made, as its caller would time them: from the first thing done for the request to the
//! last byte of the response.

use crate::facts::{ConnFacts, EnvFacts};
use crate::spans::span;
use danki_model::ConnId;
use danki_record::{Invocation, Request, Span};
use serde::Serialize;
use std::net::SocketAddr;

/// A DNS answer older than this does not belong to the connection that follows it.
const DNS_BEFORE_SYN_NS: u64 = 1_000_000_000;

/// What a new connection cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Setup {
    /// Name resolution directly before, if there was one.
    pub dns: Option<Span>,
    /// SYN to SYN-ACK at the env's edge; absent if never established.
    pub tcp: Option<Span>,
    /// Established to handshake done at the endpoint; absent without TLS.
    pub tls: Option<Span>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    /// `dynamodb`…
    pub service: String,
    /// `GetItem`…
    pub operation: String,
    /// HTTP status.
    pub status: u16,
    /// The fault that was injected, if any.
    pub fault: Option<String>,
    /// Which attempt of the same call it is, from 1, if the client said so.
    pub attempt: Option<u32>,
    /// Its connection.
    pub conn: ConnId,
    /// The env's address and port.
    pub client: SocketAddr,
    /// From set-up (if it belongs to this call) or first packet, to the response's last byte in the env.
    pub span: Span,
    /// When the request's first packet left the env.
    pub sent_ns: u64,
    /// The endpoint's own time.
    pub service_time: Span,
    /// The connection was opened for this call; absent when it was there already.
    pub setup: Option<Setup>,
    /// How long a kept connection had been without payload.
    pub idle_before_ns: Option<u64>,
}

impl Call {
    /// The connection was opened for this call.
    pub fn is_new(&self) -> bool {
        self.setup.is_some()
    }

    /// Length of the call in ms.
    pub fn ms(&self) -> f64 {
        self.span.len_ns() as f64 / 1e6
    }

    /// From the begin of set-up to the request's first packet, ms; 0 on a kept connection.
    pub fn setup_ms(&self) -> f64 {
        self.sent_ns.saturating_sub(self.span.from_ns) as f64 / 1e6
    }
}

/// Calls whose request reached an endpoint between dispatch and finish, by begin.
pub(crate) fn of_invocation(i: &Invocation, env: &EnvFacts) -> Vec<Call> {
    let open = span(i.dispatched_ns, i.finished_ns.max(i.responded_ns));
    let mut calls = Vec::new();
    for c in env.connections_during(open) {
        let first = c.requests.partition_point(|r| r.received.from_ns < open.from_ns);
        for at in first..c.requests.len() {
            if c.requests[at].received.from_ns > open.to_ns {
                break;
            }
            calls.push(call(i, env, c, at));
        }
    }
    calls.sort_by_key(|c| (c.span.from_ns, c.conn));
    calls
}

/// Established to handshake done. A handshake that no request followed lasts until the last byte.
pub(crate) fn tls_span(c: &ConnFacts) -> Option<Span> {
    let established = c.connection.established_ns?;
    let done = match c.requests.first() {
        Some(first) => first.tls.as_ref()?.span.to_ns,
        None => c.connection.client_hello_ns.and(c.connection.last_byte_ns)?,
    };
    (done > established).then(|| span(established, done))
}

fn call(i: &Invocation, env: &EnvFacts, c: &ConnFacts, at: usize) -> Call {
    let r = &c.requests[at];
    let sent_ns = sent(c, at);
    let delivered_ns = delivered(c, at).max(sent_ns);
    let setup = opened_for(i, c, at, sent_ns).then(|| setup(i, env, c, r));
    let from_ns = match &setup {
        Some(Setup { dns: Some(dns), .. }) => dns.from_ns.min(sent_ns),
        Some(_) => c.connection.syn_ns.min(sent_ns),
        None => sent_ns,
    };
    Call {
        service: r.service.clone(),
        operation: r.operation.clone(),
        status: r.status,
        fault: r.fault.clone(),
        attempt: r.attempt,
        conn: c.connection.conn,
        client: r.client,
        span: span(from_ns, delivered_ns),
        sent_ns,
        service_time: r.service_time,
        idle_before_ns: setup.is_none().then(|| idle_before(c, at, sent_ns)),
        setup,
    }
}

/// Its first request, and opened on the same side of the event's delivery: a connection made during init is not part of
/// a call that the handler makes.
fn opened_for(i: &Invocation, c: &ConnFacts, at: usize, sent_ns: u64) -> bool {
    let syn_ns = c.connection.syn_ns;
    let before_event = i.delivered_ns.is_some_and(|event| syn_ns < event && event <= sent_ns);
    at == 0 && c.requests[0].ordinal == 1 && syn_ns >= i.dispatched_ns && !before_event
}

fn setup(i: &Invocation, env: &EnvFacts, c: &ConnFacts, r: &Request) -> Setup {
    let connection = &c.connection;
    let name = r.tls.as_ref().and_then(|tls| tls.server_name.as_deref());
    let previous_syn = env.connections.partition_point(|other| other.connection.syn_ns < connection.syn_ns);
    let previous_syn = previous_syn.checked_sub(1).map_or(0, |at| env.connections[at].connection.syn_ns);
    let after = previous_syn.max(i.dispatched_ns).max(connection.syn_ns.saturating_sub(DNS_BEFORE_SYN_NS));
    let first = env.dns.partition_point(|q| q.span.from_ns < after);
    // A resolver asks for A and AAAA side by side: all of them together are the resolution.
    let dns = env.dns[first..]
        .iter()
        .filter(|q| q.span.to_ns <= connection.syn_ns && name.is_none_or(|n| same_name(n, &q.name)))
        .map(|q| q.span)
        .reduce(|a, b| span(a.from_ns.min(b.from_ns), a.to_ns.max(b.to_ns)));
    let tcp = connection.established_ns.map(|established| span(connection.syn_ns, established));
    Setup { dns, tcp, tls: tls_span(c) }
}

fn same_name(a: &str, b: &str) -> bool {
    a.trim_end_matches('.').eq_ignore_ascii_case(b.trim_end_matches('.'))
}

/// Nine tenths of the one-way delay: a packet that is read at an endpoint entered the link at least this much earlier.
fn least_delay(c: &ConnFacts) -> u64 {
    c.one_way_ns() / 10 * 9
}

/// When the request's first packet entered the link: the begin of the last flight that is old enough to have carried
/// it (later ones are acknowledgements). Without flights, the end of a recorded pause, else when it was read.
fn sent(c: &ConnFacts, at: usize) -> u64 {
    let read_ns = c.requests[at].received.from_ns;
    let earliest = match at.checked_sub(1) {
        Some(previous) => c.requests[previous].service_time.to_ns,
        None => c.connection.established_ns.unwrap_or(c.connection.syn_ns),
    };
    let latest = read_ns.saturating_sub(least_delay(c));
    let until = c.flights.partition_point(|f| f.from_ns <= latest);
    let flight = c.flights[..until].last().map(|f| f.from_ns).filter(|from| *from >= earliest);
    let pause = || pause_before(c, earliest, read_ns).map(|p| p.to_ns);
    flight.or_else(pause).unwrap_or(read_ns)
}

/// The endpoint stamps an answer and hands it to the kernel; which of the two comes first differs by microseconds, and the
/// link's thread takes the packet soon after.
const HAND_OVER_NS: u64 = 2_000_000;

/// When the response was in the env: the end of the first flight that can have carried it. Such a flight began about when
/// the answer was given, so one of the connection's next request is never taken for it.
fn delivered(c: &ConnFacts, at: usize) -> u64 {
    let answered_ns = c.requests[at].service_time.to_ns;
    let next_ns = c.requests.get(at + 1).map_or(u64::MAX, |next| next.received.from_ns);
    let next_ns = next_ns.min(answered_ns.saturating_add(HAND_OVER_NS));
    let earliest = answered_ns.saturating_add(c.one_way_ns() / 2);
    let first = c.flights.partition_point(|f| f.to_ns < earliest);
    let flight = c.flights[first..].first().filter(|f| f.from_ns < next_ns);
    flight.map_or(answered_ns, |f| f.to_ns.max(answered_ns))
}

fn pause_before(c: &ConnFacts, earliest: u64, read_ns: u64) -> Option<Span> {
    c.connection
        .idle
        .iter()
        .filter(|p| p.to_ns >= earliest && p.to_ns <= read_ns)
        .max_by_key(|p| p.to_ns)
        .copied()
}

fn idle_before(c: &ConnFacts, at: usize, sent_ns: u64) -> u64 {
    let before = match at.checked_sub(1) {
        Some(previous) => delivered(c, previous),
        None => tls_span(c).map_or(c.connection.syn_ns, |tls| tls.to_ns),
    };
    let read_ns = c.requests[at].received.from_ns;
    let recorded = pause_before(c, before.min(sent_ns), read_ns).map(Span::len_ns);
    recorded.unwrap_or(sent_ns.saturating_sub(before))
}
