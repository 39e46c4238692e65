//! What is compared, one line each: Durations, connections, calls, waterfall.

use crate::style::Style;
use crate::table::{Align, Table, number, number_or_dash, percent};
use danki_explain::Part;
use danki_record::{Quantiles, Summary, VariantSummary};

/// `Duration` and what happened to connections.
pub fn durations(summary: &Summary, style: &Style) -> String {
    let numbers = [
        "MB",
        "n",
        "errors",
        "cold",
        "p50",
        "p90",
        "p95",
        "p99",
        "max",
        "conn/inv",
        "TLS/inv",
        "throttled",
        "CPU share",
    ];
    let mut table = Table::new(&[("variant", Align::Left)]);
    numbers.iter().for_each(|title| table.column(title, Align::Right));
    for v in &summary.variants {
        let d = &v.duration_ms;
        let mut cells = vec![v.name.clone(), v.memory_mb.to_string(), v.invocations.to_string()];
        cells.extend([v.errors.to_string(), v.cold_starts.to_string()]);
        cells.extend([d.p50, d.p90, d.p95, d.p99, d.max].map(number_or_dash));
        cells.extend([v.connections_per_invocation, v.handshakes_per_invocation].map(number));
        cells.extend([v.throttled_ratio, v.cpu_share].map(percent));
        table.row(cells);
    }
    table.render(style)
}

/// Requests to the region, and the function's own stopwatch; nothing if there are neither.
pub fn calls(summary: &Summary, style: &Style) -> Option<String> {
    let mut table = Table::new(&[("variant", Align::Left), ("what", Align::Left)]);
    ["n", "p50", "p90", "p95", "p99", "max", "mean"]
        .iter()
        .for_each(|title| table.column(title, Align::Right));
    let mut rows = 0;
    for v in &summary.variants {
        let calls = v.calls.iter().map(|(service, q)| (format!("{service} call ms"), q));
        let returned = v.returned.iter().map(|(field, q)| (format!("returned {field}"), q));
        for (what, q) in calls.chain(returned) {
            table.row(quantile_cells(v, what, q));
            rows += 1;
        }
    }
    (rows > 0).then(|| table.render(style))
}

/// Rate, failures and percentages; nothing for loads without a rate.
pub fn requests(summary: &Summary, style: &Style) -> Option<String> {
    let first = summary.variants.iter().find_map(|v| v.requests.as_ref())?;
    let mut percents: Vec<&String> = first.percent_ms.keys().collect();
    percents.sort_by_key(|percent| percent.parse().unwrap_or(u32::MAX));
    let mut table = Table::new(&[("variant", Align::Left)]);
    ["n", "req/s", "errors", "non-2xx"].iter().for_each(|title| table.column(title, Align::Right));
    percents.iter().for_each(|percent| table.column(&format!("{percent} %"), Align::Right));
    table.column("mean", Align::Right);
    for v in &summary.variants {
        let Some(requests) = &v.requests else { continue };
        let mut cells = vec![v.name.clone(), v.invocations.to_string(), number(requests.per_s)];
        cells.extend([v.errors.to_string(), requests.non_2xx.to_string()]);
        cells.extend(
            percents.iter().map(|percent| number_or_dash(requests.percent_ms.get(*percent).copied())),
        );
        cells.push(number_or_dash(v.client_ms.mean));
        table.row(cells);
    }
    Some(table.render(style))
}

/// Connections to the database and waiting for them; nothing where there is none.
pub fn databases(summary: &Summary, style: &Style) -> Option<String> {
    let mut table = Table::new(&[("variant", Align::Left), ("proxy", Align::Left)]);
    let titles =
        ["allowed", "opened", "peak", "sessions", "pins", "borrows", "wait p50", "wait p95", "wait max"];
    titles.iter().for_each(|title| table.column(title, Align::Right));
    ["in vain", "of p95", "statement p50"].iter().for_each(|title| table.column(title, Align::Right));
    let mut rows = 0;
    for v in &summary.variants {
        let Some(d) = &v.database else { continue };
        let mut cells = vec![v.name.clone(), d.proxy.clone().unwrap_or_else(|| "–".to_owned())];
        let counts = [u64::from(d.max_connections), d.opened, d.peak, d.clients, d.pins, d.borrow_wait_ms.n];
        cells.extend(counts.map(|n| n.to_string()));
        let wait = &d.borrow_wait_ms;
        cells.extend([wait.p50, wait.p95, wait.max].map(number_or_dash));
        cells.extend([d.borrow_timeouts.to_string(), percent(d.wait_share_of_p95)]);
        cells.push(number_or_dash(d.statement_ms.p50));
        table.row(cells);
        rows += 1;
    }
    (rows > 0).then(|| table.render(style))
}

fn quantile_cells(v: &VariantSummary, what: String, q: &Quantiles) -> Vec<String> {
    let mut cells = vec![v.name.clone(), what, q.n.to_string()];
    cells.extend([q.p50, q.p90, q.p95, q.p99, q.max, q.mean].map(number_or_dash));
    cells
}

/// Variants side by side in one table; more follow below.
const SIDE_BY_SIDE: usize = 6;

/// Medians of the waterfall's parts, a column per variant; parts that are nowhere above zero are left out.
pub fn waterfall(summary: &Summary, style: &Style) -> Option<String> {
    let tables = summary.variants.chunks(SIDE_BY_SIDE).filter_map(|variants| side_by_side(variants, style));
    let text = tables.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

fn side_by_side(variants: &[VariantSummary], style: &Style) -> Option<String> {
    let mut table = Table::new(&[("part, median ms", Align::Left)]);
    variants.iter().for_each(|v| table.column(&v.name, Align::Right));
    let mut rows = 0;
    for part in Part::ALL {
        let medians: Vec<Option<f64>> = variants.iter().map(|v| median(v, part)).collect();
        let nowhere = medians.iter().flatten().all(|ms| *ms < 0.000_5);
        if nowhere {
            continue;
        }
        let cells = std::iter::once(part.name().to_owned()).chain(medians.into_iter().map(number_or_dash));
        table.row(cells);
        rows += 1;
    }
    (rows > 0).then(|| table.render(style))
}

fn median(v: &VariantSummary, part: Part) -> Option<f64> {
    v.waterfall_ms.get(&danki_explain::part_key(part)).and_then(|q| q.p50)
}
