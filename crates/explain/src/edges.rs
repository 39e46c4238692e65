//! Who calls whom, and how long it takes: the edges of a service map.

use crate::{Call, Variant, quantiles};
use danki_record::Quantiles;
use serde::Serialize;
use std::collections::BTreeMap;

/// Calls of a variant's function to one operation of one service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// The variant.
    pub variant: String,
    /// `dynamodb`…
    pub service: String,
    /// `GetItem`…
    pub operation: String,
    /// Invocations that called it at least once.
    pub invocations: u64,
    /// Calls.
    pub calls: u64,
    /// Calls that were answered with 5xx, or not at all.
    pub faults: u64,
    /// Calls that were answered with 429.
    pub throttles: u64,
    /// Calls that were answered with another 4xx.
    pub errors: u64,
    /// Calls that opened a connection.
    pub opened: u64,
    /// As the caller sees it, connection set-up included, ms.
    pub took_ms: Quantiles,
    /// The service's own time, ms.
    pub service_ms: Quantiles,
}

/// Edges of all variants; those of a variant by service and operation.
pub fn edges(variants: &[Variant]) -> Vec<Edge> {
    variants.iter().flat_map(of_variant).collect()
}

fn of_variant(variant: &Variant) -> Vec<Edge> {
    let mut by_operation: BTreeMap<(&str, &str), (u64, Vec<&Call>)> = BTreeMap::new();
    for w in variant.waterfalls() {
        let mut seen = Vec::new();
        for call in &w.calls {
            let key = (call.service.as_str(), call.operation.as_str());
            let entry = by_operation.entry(key).or_default();
            if !seen.contains(&key) {
                seen.push(key);
                entry.0 += 1;
            }
            entry.1.push(call);
        }
    }
    let edge = |((service, operation), (invocations, calls)): ((&str, &str), (u64, Vec<&Call>))| {
        let count = |of: &dyn Fn(&Call) -> bool| calls.iter().filter(|call| of(call)).count() as u64;
        Edge {
            variant: variant.name.clone(),
            service: service.to_owned(),
            operation: operation.to_owned(),
            invocations,
            calls: calls.len() as u64,
            faults: count(&|c| c.status == 0 || c.status >= 500),
            throttles: count(&|c| c.status == 429),
            errors: count(&|c| (400..500).contains(&c.status) && c.status != 429),
            opened: count(&|c| c.is_new()),
            took_ms: quantiles(calls.iter().map(|c| c.ms())),
            service_ms: quantiles(calls.iter().map(|c| c.service_time.len_ns() as f64 / 1e6)),
        }
    };
    by_operation.into_iter().map(edge).collect()
}
