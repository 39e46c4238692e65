//! Plain sentences, each with the numbers it stands on.

mod connections;
mod start;

use crate::{Facts, Variant};
use danki_model::RequestId;
use serde::Serialize;

/// What kind of thing was found. Closed: a reader can act on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// About one new connection per invocation: no keep-alive, or a client made in the handler.
    ConnectionPerInvocation,
    /// About one new connection per call, several calls per invocation: the client is made anew for each call.
    ClientRecreated,
    /// Nearly all calls used a connection that was there.
    ConnectionsKept,
    /// Endpoints closed connections that had been idle.
    ClosedWhileIdle,
    /// A good part of the time the quota held the function back.
    Throttled,
    /// Invocations that waited for an env to initialise.
    ColdStarts,
}

/// A number behind a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What it is, e.g. `new_call_median`.
    pub name: &'static str,
    /// The number.
    pub value: f64,
    /// Its unit: `ms`, `s`, `ratio`, `1` for counts.
    pub unit: &'static str,
}

/// One sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What kind.
    pub kind: FindingKind,
    /// Which variant.
    pub variant: String,
    /// The sentence, complete with its numbers.
    pub text: String,
    /// The numbers.
    pub evidence: Vec<Evidence>,
    /// Invocations to look at, at most [`EXAMPLES`].
    pub examples: Vec<RequestId>,
}

/// Most examples that a finding names.
pub const EXAMPLES: usize = 3;

/// All findings, by variant.
pub fn findings(facts: &Facts, variants: &[Variant]) -> Vec<Finding> {
    variants
        .iter()
        .flat_map(|variant| {
            let mut found: Vec<Finding> = start::cold_starts(variant).into_iter().collect();
            found.extend(start::throttled(variant));
            found.extend(connections::use_of_connections(variant, variants));
            found.extend(connections::closed_while_idle(facts, variant));
            found
        })
        .collect()
}

fn evidence(name: &'static str, value: f64, unit: &'static str) -> Evidence {
    Evidence { name, value, unit }
}

fn examples<'a>(ids: impl Iterator<Item = &'a RequestId>) -> Vec<RequestId> {
    ids.take(EXAMPLES).cloned().collect()
}
