//! One line per invocation, as the field reports print them: start, case, call, Duration, port new or kept.

use crate::style::Style;
use crate::table::{Align, Table, number};
use danki_lab::{Results, Row};
use danki_record::{Start, Status};
use std::collections::HashMap;

/// A longer run shows the first and last of each variant; all are in `invocations.csv`.
const ROWS_MAX: usize = 40;
/// Of each variant, at either end.
const ENDS: usize = 3;

/// The table, and what was left out.
pub fn table(results: &Results, style: &Style) -> String {
    let several = results.summary.variants.len() > 1;
    let mut table = Table::new(&[("#", Align::Right)]);
    if several {
        table.column("variant", Align::Left);
    }
    for (title, align) in [
        ("start", Align::Left),
        ("case", Align::Left),
        ("call ms", Align::Right),
        ("Duration ms", Align::Right),
        ("port", Align::Left),
    ] {
        table.column(title, align);
    }
    let shown = shown(&results.rows);
    let left_out = results.rows.len() - shown.len();
    for row in shown {
        let mut cells = vec![row.invocation.index.to_string()];
        if several {
            cells.push(row.invocation.variant.clone());
        }
        cells.extend([
            wall_clock(row.invocation.dispatched_ns, results.manifest.epoch_offset_ns),
            case(row),
            calls(row),
            number(row.invocation.duration_ms),
            ports(row),
        ]);
        table.row(cells);
    }
    let mut text = table.render(style);
    if left_out > 0 {
        text.push_str(&style.faint(&format!("{left_out} more in invocations.csv\n")));
    }
    text
}

fn shown(rows: &[Row]) -> Vec<&Row> {
    if rows.len() <= ROWS_MAX {
        return rows.iter().collect();
    }
    let mut of_variant: HashMap<&str, usize> = HashMap::new();
    for row in rows {
        *of_variant.entry(&row.invocation.variant).or_default() += 1;
    }
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let at_an_end = rows.iter().filter(|row| {
        let nth = seen.entry(&row.invocation.variant).or_default();
        *nth += 1;
        *nth <= ENDS || *nth + ENDS > of_variant[row.invocation.variant.as_str()]
    });
    at_an_end.collect()
}

fn case(row: &Row) -> String {
    let mut case = match (row.invocation.start, row.idle_ns) {
        (Start::Cold, _) => "cold".to_owned(),
        (Start::Suppressed, _) => "init again".to_owned(),
        (Start::Warm, Some(idle_ns)) => format!("+{}", seconds(idle_ns)),
        (Start::Warm, None) => "warm".to_owned(),
    };
    match &row.invocation.status {
        Status::Ok => {}
        Status::Error { error_type } => case.push_str(&format!(", {error_type}")),
        Status::Timeout => case.push_str(", timeout"),
    }
    case
}

fn seconds(ns: u64) -> String {
    if ns < 1_000_000_000 { format!("{} ms", ns / 1_000_000) } else { format!("{:.1} s", ns as f64 / 1e9) }
}

fn calls(row: &Row) -> String {
    match row.calls.as_slice() {
        [] => "–".to_owned(),
        [one] => number(one.ms),
        several => {
            let sum: f64 = several.iter().map(|call| call.ms).sum();
            format!("{} ({})", number(sum), several.len())
        }
    }
}

/// `59236 new`, `59236 kept`; with many calls how many of them opened a connection.
fn ports(row: &Row) -> String {
    match row.calls.as_slice() {
        [] => "–".to_owned(),
        [first, rest @ ..] if rest.iter().all(|call| call.port == first.port && !call.new_connection) => {
            format!("{} {}", first.port, if first.new_connection { "new" } else { "kept" })
        }
        calls => {
            format!("{} new of {}", calls.iter().filter(|call| call.new_connection).count(), calls.len())
        }
    }
}

/// Time of day, UTC.
fn wall_clock(at_ns: u64, epoch_offset_ns: u64) -> String {
    let ms = at_ns.saturating_add(epoch_offset_ns) / 1_000_000;
    let (s, ms) = (ms / 1_000 % 86_400, ms % 1_000);
    format!("{:02}:{:02}:{:02}.{ms:03}", s / 3_600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_like_a_log() {
        assert_eq!(wall_clock(1_000_000, 1_700_000_000_000_000_000), "22:13:20.001");
        assert_eq!((seconds(20_000_000), seconds(66_740_000_000)), ("20 ms".to_owned(), "66.7 s".to_owned()));
    }
}
