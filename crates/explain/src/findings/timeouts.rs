//! Calls that the client gave up before their answer, and made again.

use super::{Cause, Finding, Look, count};
use crate::variant::median;
use danki_record::{ClosedBy, Confidence};

/// Given up at about the same age: the spread of ages, relative to their median.
const SAME: f64 = 0.35;

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut given_up = Vec::new();
    for (invocation, w) in &look.variant.invocations {
        let Some(env) = look.facts.of_env(invocation.env) else { continue };
        for call in &w.calls {
            let Some(c) = env.connections.iter().find(|c| c.connection.conn == call.conn) else { continue };
            let by_client = matches!(c.connection.closed_by, Some(ClosedBy::Client | ClosedBy::ClientReset));
            let Some(closed_ns) = c.connection.closed_ns.filter(|_| by_client) else { continue };
            if (call.sent_ns..call.service_time.to_ns).contains(&closed_ns) {
                let again =
                    w.calls.iter().any(|o| o.span.from_ns >= closed_ns && o.operation == call.operation);
                let age = closed_ns.saturating_sub(call.sent_ns) as f64 / 1e6;
                given_up.push((&invocation.request_id, call, age, again));
            }
        }
    }
    let Some(age) = median(given_up.iter().map(|(.., age, _)| *age)) else { return Vec::new() };
    let again = given_up.iter().filter(|(.., again)| *again).count();
    let close = |a: f64| (a - age).abs() <= SAME * age;
    let alike = given_up.iter().all(|(.., a, _)| close(*a));
    let lost: f64 = given_up.iter().map(|(.., age, _)| age).sum();
    let text = format!(
        "{} given up by the client {age:.0} ms after they were sent (median) although the service was still working on them; \
         {again} made again: the SDK's timeout is shorter than the call.",
        if given_up.len() == 1 {
            "1 call was".to_owned()
        } else {
            format!("{} were", count(given_up.len(), "call"))
        },
    );
    let finding = look
        .finding(Cause::SdkTimeout, text)
        .with("given_up", given_up.len() as f64, "1")
        .with("made_again", again as f64, "1")
        .with("age_median", age, "ms")
        .confidence(if alike { Confidence::High } else { Confidence::Medium })
        .connections(given_up.iter().map(|(_, call, ..)| call.conn))
        .examples(given_up.iter().map(|(id, ..)| *id))
        .remedy(look.saving(
            "Set the client's timeout well above the slowest good answer: a call made again costs a connection and asks the service twice.",
            Some(lost / look.n().max(1) as f64),
        ));
    vec![finding]
}
