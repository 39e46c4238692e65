//! The traces of a run: Lambda's own segments, what SDKs sent, and what danki saw on the wire inside them.

use crate::document::Entity;
use crate::header::TraceHeader;
use crate::lambda::{self, derived_id};
use danki_model::{EnvId, RequestId};
use danki_record::{Connection, DnsQuery, Event, Invocation, Request, Span};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// Entities of one trace; a function that sends more loses the last ones.
const MAX_ENTITIES: usize = 10_000;

/// The facts of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// All of them.
    pub events: &'a [Event],
    /// Add it to a time of the run to get ns since 1970.
    pub epoch_offset_ns: u64,
}

/// One trace: usually one invocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// `1-…-…`
    pub id: String,
    /// Its invocations, in order of time.
    pub requests: Vec<RequestId>,
    /// X-Ray would keep it.
    pub sampled: bool,
    /// Everything in it; a parent is not always there.
    pub entities: Vec<Entity>,
}

/// All traces of a run in order of time.
pub fn traces(run: &Run<'_>) -> Vec<Trace> {
    let seen = Seen::of(run.events);
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut traces: Vec<Trace> = Vec::new();
    let mut invocations: Vec<&Invocation> = seen.invocations.clone();
    invocations.sort_by_key(|invocation| invocation.dispatched_ns);
    for invocation in invocations {
        let Some(header) = seen.headers.get(&invocation.request_id) else { continue };
        let at = *by_id.entry(header.root.clone()).or_insert_with(|| {
            let (id, requests, entities) = (header.root.clone(), Vec::new(), Vec::new());
            traces.push(Trace { id, requests, sampled: header.sampled == Some(true), entities });
            traces.len() - 1
        });
        let trace = &mut traces[at];
        trace.requests.push(invocation.request_id.clone());
        let own = lambda::segments(invocation, header, run.epoch_offset_ns);
        let parent = own[own.len() - 2].id.clone();
        trace.extend(own);
        let documents = seen.documents.get(&header.root).into_iter().flatten();
        let sent = documents.filter(|(env, at_ns, _)| {
            // One trace of several invocations: each takes what its env sent while it ran.
            *env == invocation.env && (invocation.dispatched_ns..).contains(at_ns)
        });
        trace.extend(sent.flat_map(|(_, _, document)| Entity::from_document(document)).collect());
        let wire = seen.wire(invocation, run.epoch_offset_ns);
        trace.add_inside(wire, &parent);
    }
    traces
}

impl Trace {
    /// From its first begin to its last end, ns since 1970.
    pub fn span(&self) -> Span {
        let from_ns = self.entities.iter().map(|e| e.start_ns).min().unwrap_or(0);
        let to_ns = self.entities.iter().filter_map(|e| e.end_ns).max().unwrap_or(from_ns);
        Span { from_ns, to_ns }
    }

    /// Adds entities; a finished one takes the place of its own beginning, a second copy is dropped.
    fn extend(&mut self, new: Vec<Entity>) {
        for entity in new {
            match self.entities.iter().position(|known| known.id == entity.id) {
                Some(at) if self.entities[at].end_ns.is_none() => self.entities[at] = entity,
                None if self.entities.len() < MAX_ENTITIES => self.entities.push(entity),
                _ => {}
            }
        }
    }

    /// Adds what was seen on the wire, each below the innermost call of the SDK that it lies in.
    fn add_inside(&mut self, wire: Vec<Entity>, otherwise: &str) {
        let calls: Vec<(u64, u64, String)> = self
            .entities
            .iter()
            .filter(|e| matches!(e.namespace.as_deref(), Some("aws" | "remote")))
            .filter_map(|e| Some((e.start_ns, e.end_ns?, e.id.clone())))
            .collect();
        for mut entity in wire {
            let end_ns = entity.end_ns.unwrap_or(entity.start_ns);
            let around = calls.iter().filter(|(from, to, _)| *from <= entity.start_ns && end_ns <= *to);
            let innermost = around.min_by_key(|(from, to, _)| to - from);
            entity.parent = Some(innermost.map_or(otherwise, |(_, _, id)| id).to_owned());
            self.extend(vec![entity]);
        }
    }

    /// As X-Ray's `BatchGetTraces` gives it: whole segments, their documents as text. What danki saw on the wire is not X-Ray's.
    pub fn to_json(&self) -> Value {
        let span = self.span();
        let xray: Vec<&Entity> =
            self.entities.iter().filter(|e| e.namespace.as_deref() != Some("danki")).collect();
        let is_top =
            |e: &&&Entity| e.origin.is_some() || !xray.iter().any(|p| Some(&p.id) == e.parent.as_ref());
        let segments: Vec<Value> = xray
            .iter()
            .filter(is_top)
            .map(|top| {
                let mut document = with_inside(top, &xray, 0);
                document.insert("trace_id".to_owned(), json!(self.id));
                json!({ "Id": top.id, "Document": Value::Object(document).to_string() })
            })
            .collect();
        json!({
            "Id": self.id,
            "Duration": span.len_ns() as f64 / 1e9,
            "LimitExceeded": self.entities.len() >= MAX_ENTITIES,
            "Segments": segments,
        })
    }
}

fn with_inside(entity: &Entity, all: &[&Entity], depth: usize) -> serde_json::Map<String, Value> {
    let mut document = entity.to_document();
    let inside =
        all.iter().filter(|e| e.origin.is_none() && e.parent.as_ref() == Some(&entity.id) && depth < 32);
    let inside: Vec<Value> = inside.map(|e| with_inside(e, all, depth + 1).into()).collect();
    if !inside.is_empty() {
        document.insert("subsegments".to_owned(), inside.into());
    }
    document
}

/// The facts, sorted by what they are asked for.
struct Seen<'a> {
    invocations: Vec<&'a Invocation>,
    headers: HashMap<&'a RequestId, TraceHeader>,
    documents: HashMap<String, Vec<(EnvId, u64, &'a Value)>>,
    connections: BTreeMap<(EnvId, u64), &'a Connection>,
    requests: HashMap<SocketAddr, Vec<&'a Request>>,
    dns: Vec<&'a DnsQuery>,
}

impl<'a> Seen<'a> {
    fn of(events: &'a [Event]) -> Seen<'a> {
        let mut seen = Seen {
            invocations: Vec::new(),
            headers: HashMap::new(),
            documents: HashMap::new(),
            connections: BTreeMap::new(),
            requests: HashMap::new(),
            dns: Vec::new(),
        };
        for event in events {
            match event {
                Event::Invocation(invocation) => seen.invocations.push(invocation),
                Event::Trace(trace) => {
                    let header = TraceHeader::parse(&trace.header);
                    seen.headers.extend(header.map(|header| (&trace.request_id, header)));
                }
                Event::Segment(segment) => {
                    let id = segment.document["trace_id"].as_str().unwrap_or_default().to_owned();
                    let of_trace = seen.documents.entry(id).or_default();
                    of_trace.push((segment.env, segment.at_ns, &segment.document));
                }
                Event::Connection(c) => drop(seen.connections.insert((c.env, c.conn.0), c)),
                Event::Request(request) => seen.requests.entry(request.client).or_default().push(request),
                Event::Dns(query) => seen.dns.push(query),
                _ => {}
            }
        }
        seen
    }

    /// Names asked for, connections made, handshakes and requests of one invocation.
    fn wire(&self, invocation: &Invocation, epoch_offset_ns: u64) -> Vec<Entity> {
        let from_ns = invocation.delivered_ns.unwrap_or(invocation.dispatched_ns);
        let during = |ns: u64| (from_ns..=invocation.finished_ns).contains(&ns);
        let mut all = Vec::new();
        let mut add = |name: String, span: Span, details: Value| {
            let id = derived_id(&invocation.request_id.0, &format!("{name}{}", span.from_ns));
            let (from, to) = (span.from_ns + epoch_offset_ns, span.to_ns + epoch_offset_ns);
            let mut entity = Entity::new(id, &name, from, Some(to));
            entity.namespace = Some("danki".to_owned());
            entity.details = details.as_object().cloned().unwrap_or_default();
            all.push(entity);
        };
        for query in self.dns.iter().filter(|q| q.env == invocation.env && during(q.span.from_ns)) {
            add(format!("dns {}", query.qtype), query.span, json!({ "dns": { "name": query.name } }));
        }
        let of_env = self.connections.range((invocation.env, 0)..=(invocation.env, u64::MAX));
        for (_, connection) in of_env {
            if let Some(established_ns) = connection.established_ns.filter(|_| during(connection.syn_ns)) {
                let span = Span { from_ns: connection.syn_ns, to_ns: established_ns };
                add(
                    "tcp connect".to_owned(),
                    span,
                    json!({ "net": { "peer": connection.server.to_string() } }),
                );
            }
            let requests = self.requests.get(&connection.client).into_iter().flatten();
            for request in requests.filter(|r| during(r.received.from_ns)) {
                if let Some(tls) = request.tls.as_ref().filter(|tls| during(tls.span.from_ns)) {
                    let details = json!({ "tls": { "version": tls.version, "resumed": tls.resumed } });
                    add("tls handshake".to_owned(), tls.span, details);
                }
                let span = Span { from_ns: request.received.from_ns, to_ns: request.service_time.to_ns };
                let details = json!({ "http": { "status": request.status }, "connection": { "ordinal": request.ordinal } });
                add(format!("{} {}", request.service, request.operation), span, details);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
