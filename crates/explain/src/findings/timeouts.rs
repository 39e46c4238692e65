//! Calls that the client gave up before their answer, and made again.

use super::{Cause, Finding, Look, count};
use crate::variant::median;
use crate::{Call, ConnFacts, EnvFacts, Waterfall};
use danki_model::{ConnId, RequestId};
use danki_record::{ClosedBy, Confidence, Invocation};

/// Given up at about the same age: the spread of ages, relative to their median.
const SAME: f64 = 0.35;

/// A request, or a connection made for one, that its client ended.
struct GivenUp<'a> {
    request_id: &'a RequestId,
    conn: ConnId,
    /// Since it was sent, or since its connection was begun, ms.
    age_ms: f64,
    again: bool,
    /// The service had the request and was not done with it.
    served: bool,
}

pub(super) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut given_up = Vec::new();
    for (invocation, w) in &look.variant.invocations {
        let Some(env) = look.facts.of_env(invocation.env) else { continue };
        let id = &invocation.request_id;
        for call in &w.calls {
            let Some(c) = env.connections.iter().find(|c| c.connection.conn == call.conn) else { continue };
            let Some(closed_ns) = ended_by_client(c) else { continue };
            let mut later =
                w.calls.iter().filter(|o| o.span.from_ns >= closed_ns && o.operation == call.operation);
            let served = (call.sent_ns..call.service_time.to_ns).contains(&closed_ns);
            // Its answer came, but too late for the client: the next attempt says so.
            let fine = call.fault.is_none() && call.status < 500;
            let retried = fine && follows(call, later.clone().next());
            if served || retried {
                let (again, age_ms) = (later.next().is_some(), ms(closed_ns, call.sent_ns));
                given_up.push(GivenUp { request_id: id, conn: call.conn, age_ms, again, served });
            }
        }
        given_up.extend(while_connecting(invocation, w, env));
    }
    let Some(age) = median(given_up.iter().map(|g| g.age_ms)) else { return Vec::new() };
    let again = given_up.iter().filter(|g| g.again).count();
    let close = |a: f64| (a - age).abs() <= SAME * age;
    let alike = given_up.iter().all(|g| close(g.age_ms));
    let lost: f64 = given_up.iter().map(|g| g.age_ms).sum();
    let unserved = given_up.iter().filter(|g| !g.served).count();
    let while_served = match unserved {
        0 => " although the service was still working on them".to_owned(),
        _ => format!(" ({unserved} of them while connecting, or with the answer on its way)"),
    };
    let text = format!(
        "{} given up by the client {age:.0} ms after they were begun (median){while_served}; \
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
        .with("not_in_service", unserved as f64, "1")
        .with("made_again", again as f64, "1")
        .with("age_median", age, "ms")
        .confidence(if alike { Confidence::High } else { Confidence::Medium })
        .connections(given_up.iter().map(|g| g.conn))
        .examples(given_up.iter().map(|g| g.request_id))
        .remedy(look.saving(
            "Set the client's timeout well above the slowest good answer: a call made again costs a connection and asks the service twice.",
            Some(lost / look.n().max(1) as f64),
        ));
    vec![finding]
}

fn ms(to_ns: u64, from_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e6
}

fn ended_by_client(c: &ConnFacts) -> Option<u64> {
    let by_client = matches!(c.connection.closed_by, Some(ClosedBy::Client | ClosedBy::ClientReset));
    c.connection.closed_ns.filter(|_| by_client)
}

/// The next call is this one's next attempt, as its client says.
fn follows(call: &Call, next: Option<&Call>) -> bool {
    let number = |call: &Call| call.attempt.unwrap_or(1);
    next.is_some_and(|next| number(next) == number(call) + 1)
}

/// Connections that their client ended before a request had come over them, followed by a call that is not its client's first attempt.
fn while_connecting<'a>(
    invocation: &'a Invocation,
    w: &'a Waterfall,
    env: &'a EnvFacts,
) -> impl Iterator<Item = GivenUp<'a>> {
    env.connections.iter().filter(|c| c.requests.is_empty()).filter_map(move |c| {
        let (begun_ns, ended_ns) = (c.connection.syn_ns, ended_by_client(c)?);
        let during = begun_ns >= invocation.dispatched_ns && ended_ns <= invocation.finished_ns;
        let next = w.calls.iter().find(|call| call.span.from_ns >= ended_ns);
        let retried = next.is_some_and(|call| call.attempt.is_some_and(|n| n > 1));
        (during && retried).then(|| GivenUp {
            request_id: &invocation.request_id,
            conn: c.connection.conn,
            age_ms: ms(ended_ns, begun_ns),
            again: true,
            served: false,
        })
    })
}
