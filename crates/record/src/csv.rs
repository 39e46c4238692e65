//! `invocations.csv` and `connections.csv`: the facts that people sort and plot, one row each.
//!
//! RFC 4180 with `\n`; a field that was not reached is empty. Times are ms, relative to the start of the run, so that a
//! spreadsheet shows them well; the exact nanoseconds are in `events.jsonl`.

use crate::{Connection, Invocation, Start, Status};

/// Columns of `invocations.csv` before those of the waterfall.
pub const INVOCATION_COLUMNS: [&str; 23] = [
    "variant",
    "index",
    "request_id",
    "env",
    "initialization",
    "start",
    "status",
    "error_type",
    "intended_ms",
    "dispatched_ms",
    "delivered_ms",
    "responded_ms",
    "finished_ms",
    "duration_ms",
    "billed_ms",
    "init_ms",
    "max_memory_used_mb",
    "cpu_ms",
    "throttled_ms",
    "throttled_periods",
    "response_bytes",
    "client_ms",
    "late_ms",
];

/// Columns of `connections.csv`.
pub const CONNECTION_COLUMNS: [&str; 19] = [
    "conn",
    "env",
    "client",
    "server",
    "syn_ms",
    "established_ms",
    "connect_ms",
    "client_hello_ms",
    "first_byte_ms",
    "last_byte_ms",
    "bytes_up",
    "bytes_down",
    "retransmits",
    "reuses_after_pause",
    "longest_pause_ms",
    "closed_by",
    "closed_ms",
    "close_delivered_ms",
    "open_ms",
];

/// One line of CSV from its fields, quoted where needed, with its newline.
pub fn line<S: AsRef<str>>(fields: impl IntoIterator<Item = S>) -> String {
    let mut line = String::new();
    for (n, field) in fields.into_iter().enumerate() {
        if n > 0 {
            line.push(',');
        }
        let field = field.as_ref();
        if field.contains([',', '"', '\n', '\r']) {
            line.push('"');
            line.push_str(&field.replace('"', "\"\""));
            line.push('"');
        } else {
            line.push_str(field);
        }
    }
    line.push('\n');
    line
}

/// The fields of [`INVOCATION_COLUMNS`]; `run_start_ns` is the zero of all times.
pub fn invocation_fields(i: &Invocation, run_start_ns: u64) -> Vec<String> {
    let at = |ns: u64| ms(ns.saturating_sub(run_start_ns));
    let (status, error_type) = match &i.status {
        Status::Ok => ("ok", ""),
        Status::Error { error_type } => ("error", error_type.as_str()),
        Status::Timeout => ("timeout", ""),
    };
    let start = match i.start {
        Start::Cold => "cold",
        Start::Warm => "warm",
        Start::Suppressed => "suppressed",
    };
    vec![
        i.variant.clone(),
        i.index.to_string(),
        i.request_id.0.clone(),
        i.env.0.to_string(),
        i.initialization.as_str().to_owned(),
        start.to_owned(),
        status.to_owned(),
        error_type.to_owned(),
        at(i.intended_ns),
        at(i.dispatched_ns),
        i.delivered_ns.map(at).unwrap_or_default(),
        at(i.responded_ns),
        at(i.finished_ns),
        i.duration_ms.to_string(),
        i.billed_ms.to_string(),
        i.init_ms.map(|v| v.to_string()).unwrap_or_default(),
        i.max_memory_used_mb.to_string(),
        ms(i.cpu_us.saturating_mul(1_000)),
        ms(i.throttled_us.saturating_mul(1_000)),
        i.throttled_periods.to_string(),
        i.response_bytes.to_string(),
        ms(i.responded_ns.saturating_sub(i.dispatched_ns)),
        ms(i.dispatched_ns.saturating_sub(i.intended_ns)),
    ]
}

/// The fields of [`CONNECTION_COLUMNS`].
pub fn connection_fields(c: &Connection, run_start_ns: u64) -> Vec<String> {
    let at = |ns: u64| ms(ns.saturating_sub(run_start_ns));
    let or_empty = |ns: Option<u64>| ns.map(at).unwrap_or_default();
    let since_syn = |ns: Option<u64>| ns.map(|ns| ms(ns.saturating_sub(c.syn_ns))).unwrap_or_default();
    let closed_by = c.closed_by.and_then(|by| serde_json::to_value(by).ok());
    vec![
        c.conn.0.to_string(),
        c.env.0.to_string(),
        c.client.to_string(),
        c.server.to_string(),
        at(c.syn_ns),
        or_empty(c.established_ns),
        since_syn(c.established_ns),
        or_empty(c.client_hello_ns),
        or_empty(c.first_byte_ns),
        or_empty(c.last_byte_ns),
        c.bytes_up.to_string(),
        c.bytes_down.to_string(),
        c.retransmits.to_string(),
        c.idle.len().to_string(),
        c.idle.iter().map(|i| i.len_ns()).max().map(ms).unwrap_or_default(),
        closed_by.as_ref().and_then(|v| v.as_str()).unwrap_or_default().to_owned(),
        or_empty(c.closed_ns),
        or_empty(c.close_delivered_ns),
        since_syn(c.closed_ns),
    ]
}

/// Nanoseconds as milliseconds with three decimals.
pub fn ms(ns: u64) -> String {
    let us = ns / 1_000;
    format!("{}.{:03}", us / 1_000, us % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_quoted_where_needed() {
        assert_eq!(line(["a", "b,c", "say \"x\"", ""]), "a,\"b,c\",\"say \"\"x\"\"\",\n");
        assert_eq!(ms(1_234_567), "1.234");
    }

    #[test]
    fn every_column_has_a_field() {
        let invocation = crate::example::invocation();
        assert_eq!(invocation_fields(&invocation, 0).len(), INVOCATION_COLUMNS.len());
        let connection = crate::example::connection();
        let fields = connection_fields(&connection, 0);
        assert_eq!(fields.len(), CONNECTION_COLUMNS.len());
        assert_eq!(fields[15], "server");
    }

    proptest! {
        /// A reader that follows RFC 4180 gets back what was written.
        #[test]
        fn lines_read_back(fields in proptest::collection::vec("[a,\"\n\r ]{0,8}", 1..6)) {
            prop_assert_eq!(read_back(&line(&fields)), fields);
        }
    }

    fn read_back(line: &str) -> Vec<String> {
        let mut fields = vec![String::new()];
        let mut quoted = false;
        let mut chars = line.strip_suffix('\n').expect("a newline").chars().peekable();
        while let Some(c) = chars.next() {
            let field = fields.last_mut().expect("never empty");
            match (c, quoted) {
                ('"', true) if chars.peek() == Some(&'"') => field.push(chars.next().expect("peeked")),
                ('"', _) => quoted = !quoted,
                (',', false) => fields.push(String::new()),
                (other, _) => field.push(other),
            }
        }
        fields
    }
}
