//! What Lambda itself sends: two segments per invocation, both named after the function, derived from danki's facts.
//!
//! `AWS::Lambda` is the service (times in whole milliseconds), `AWS::Lambda::Function` the environment (microseconds) with the
//! subsegments Initialization, Invocation and Overhead. As in real traces, Initialization lies *before* the Function segment that it
//! belongs to, and what an SDK sends hangs below Invocation, whose id is the header's `Parent`.

use crate::document::{Entity, Outcome};
use crate::header::TraceHeader;
use danki_record::{Invocation, Status};
use serde_json::json;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// The entities of one invocation, parents first. Times of the run become times since 1970 by adding `epoch_offset_ns`.
pub fn segments(invocation: &Invocation, header: &TraceHeader, epoch_offset_ns: u64) -> Vec<Entity> {
    let at = |ns: u64| ns.saturating_add(epoch_offset_ns);
    let us = |ns: u64| at(ns) / US * US;
    let id = |role: &str| derived_id(&invocation.request_id.0, role);
    let invocation_id = header.parent.clone().unwrap_or_else(|| id("invocation"));
    let outcome = match invocation.status {
        Status::Ok => Outcome::Ok,
        _ => Outcome::Fault,
    };
    let begun_ns = invocation.delivered_ns.unwrap_or(invocation.responded_ns);
    let ready_ns = invocation.init.or(invocation.thaw).map_or(begun_ns, |span| span.to_ns.min(begun_ns));

    let end_ns = at(invocation.finished_ns).div_ceil(MS) * MS;
    let mut service =
        Entity::new(id("service"), &invocation.variant, at(invocation.dispatched_ns) / MS * MS, Some(end_ns));
    service.origin = Some("AWS::Lambda".to_owned());
    service.details.insert("aws".to_owned(), json!({ "request_id": invocation.request_id }));
    service.details.insert("http".to_owned(), json!({ "response": { "status": 200 } }));

    let mut function =
        Entity::new(id("function"), &invocation.variant, us(ready_ns), Some(us(invocation.finished_ns)));
    function.origin = Some("AWS::Lambda::Function".to_owned());
    function.parent = Some(service.id.clone());

    let parent = function.id.clone();
    let inside = |id: String, name, from_ns, to_ns| {
        let mut entity = Entity::new(id, name, us(from_ns), Some(us(to_ns)));
        entity.parent = Some(parent.clone());
        entity
    };
    let initialization =
        invocation.init.map(|init| inside(id("initialization"), "Initialization", init.from_ns, init.to_ns));
    let mut run = inside(invocation_id, "Invocation", begun_ns, invocation.responded_ns.max(begun_ns));
    let overhead_ns = invocation.responded_ns.max(begun_ns);
    let overhead = inside(id("overhead"), "Overhead", overhead_ns, invocation.finished_ns.max(overhead_ns));
    (service.outcome, run.outcome) = (outcome, outcome);
    function.outcome = outcome;
    let mut all = vec![service, function];
    all.extend(initialization);
    all.extend([run, overhead]);
    all
}

/// 16 hex digits that are the same each time the run is read: FNV-1a.
pub fn derived_id(request_id: &str, role: &str) -> String {
    let bytes = request_id.bytes().chain(role.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
