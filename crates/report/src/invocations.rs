//! One line per invocation, as the field reports print them: start, case, call, Duration, port new or kept.

use crate::style::Style;
use crate::table::{Align, Table, number, number_or_dash};
use danki_lab::{Opened, Results, Row};
use danki_model::InitializationType;
use danki_record::{ClosedBy, Start, Status};
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
    let stories = shown.iter().any(|row| story(row).is_some());
    if stories {
        table.column("connection", Align::Left);
    }
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
        cells.extend(stories.then(|| story(row).unwrap_or_default()));
        table.row(cells);
    }
    let mut text = table.render(style);
    text.push_str(&profiles(results, style));
    if left_out > 0 {
        text.push_str(&style.faint(&format!("{left_out} more in invocations.csv\n")));
    }
    text
}

/// What the profile of each invocation says.
fn profiles(results: &Results, style: &Style) -> String {
    if results.profiles.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new(&[("#", Align::Right), ("variant", Align::Left), ("profile: socket", Align::Left)]);
    for title in ["TLS ms", "modules ms", "GC ms", "busy ms"] {
        table.column(title, Align::Right);
    }
    let of = |row: &&Row| {
        let id = &row.invocation.request_id.0;
        results.profiles.iter().find(|p| p.request_id == *id).map(|profile| (row.invocation.clone(), profile))
    };
    for (invocation, profile) in shown(&results.rows).iter().filter_map(of) {
        let socket = if profile.created_socket { "created" } else { "–" };
        let mut cells = vec![invocation.index.to_string(), invocation.variant, socket.to_owned()];
        let times = [Some(profile.tls_ms), Some(profile.modules_ms), profile.gc_ms, Some(profile.busy_ms)];
        cells.extend(times.map(number_or_dash));
        table.row(cells);
    }
    format!("\n{}", table.render(style))
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
        (Start::Warm, None) if provisioned(row) => "first on PC".to_owned(),
        (Start::Warm, None) => "warm".to_owned(),
    };
    match &row.invocation.status {
        Status::Ok => {}
        Status::Error { error_type } => case.push_str(&format!(", {error_type}")),
        Status::Timeout => case.push_str(", timeout"),
    }
    case
}

fn provisioned(row: &Row) -> bool {
    row.invocation.initialization == InitializationType::ProvisionedConcurrency
}

/// `opened in call 1`, `42692 of init: closed by server after 62.5 s`: what became of the connection that there was.
fn story(row: &Row) -> Option<String> {
    let call = row.calls.iter().find(|call| call.predecessor.is_some()).or(row.calls.first())?;
    let place = |opened| match opened {
        Opened::Init => "init".to_owned(),
        Opened::Invocation(index) => format!("call {index}"),
    };
    let Some(before) = call.predecessor else {
        return (!call.new_connection)
            .then_some(call.opened)
            .flatten()
            .map(|at| format!("opened in {}", place(at)));
    };
    let end = match (before.closed_by, before.idle_ns) {
        (Some(by), Some(idle_ns)) => format!("{} after {}", ended(by), seconds(idle_ns)),
        _ => "still open".to_owned(),
    };
    Some(format!("{} of {}: {end}", before.port, place(before.opened)))
}

fn ended(by: ClosedBy) -> &'static str {
    match by {
        ClosedBy::Client => "closed by client",
        ClosedBy::Server => "closed by server",
        ClosedBy::ClientReset => "reset by client",
        ClosedBy::ServerReset => "reset by server",
    }
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
