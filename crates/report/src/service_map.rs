//! Who calls whom, as a table.

use crate::style::Style;
use crate::table::{Align, Table, number_or_dash, percent};
use danki_explain::Edge;

/// A line per edge of the service map; times as the caller sees them.
pub fn service_map(edges: &[Edge], style: &Style) -> String {
    if edges.is_empty() {
        return "no invocation called anything\n".to_owned();
    }
    let mut table = Table::new(&[("function", Align::Left), ("calls", Align::Left)]);
    for title in ["n", "failed", "429", "new conn", "p50 ms", "p90 ms", "p99 ms", "max ms", "service p50 ms"]
    {
        table.column(title, Align::Right);
    }
    for edge in edges {
        let took = &edge.took_ms;
        let mut cells = vec![edge.variant.clone(), format!("{} {}", edge.service, edge.operation)];
        cells.extend([edge.calls, edge.faults + edge.errors, edge.throttles].map(|n| n.to_string()));
        cells.push(percent(edge.opened as f64 / edge.calls.max(1) as f64));
        cells.extend([took.p50, took.p90, took.p99, took.max, edge.service_ms.p50].map(number_or_dash));
        table.row(cells);
    }
    table.render(style)
}
