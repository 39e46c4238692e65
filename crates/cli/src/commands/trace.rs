//! `danki trace`: the traces of a run, as X-Ray would have them and with what danki saw on the wire.

use super::push::push;
use crate::args::Trace as Arguments;
use crate::exit::{Exit, Failure};
use crate::terminal;
use danki_explain::{Facts, by_variant, edges};
use danki_model::RequestId;
use danki_record::{Event, Manifest};
use danki_xray::{Filter, Run, Trace, distribution, render, summary_table, traces};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Facts that are read; a longer run's later ones are left out, in words.
const MAX_EVENTS: usize = 2_000_000;

/// Prints one trace as a tree, or of all, or of those that a filter takes, tables and how long they took, or who calls whom; or the same
/// as JSON.
pub fn trace(args: &Arguments) -> Result<Exit, Failure> {
    if let Some(url) = &args.otlp {
        return push(&args.run, url, &args.header).map(|()| Exit::Fine);
    }
    let manifest: Manifest = read_json(&args.run.join("manifest.json"))?;
    let events = read_events(&args.run.join("events.jsonl"))?;
    let all = traces(&Run { events: &events, epoch_offset_ns: manifest.epoch_offset_ns });
    if all.is_empty() {
        let what = format!("{}: no invocation has a tracing header", args.run.display());
        return Err(Failure::usage(what).hint("run it again with this version of danki"));
    }
    let filter = args.filter.as_deref().map(read_filter).transpose()?;
    let chosen: Vec<&Trace> = match &args.id {
        None => all.iter().filter(|trace| filter.as_ref().is_none_or(|f| f.takes(trace))).collect(),
        Some(id) => vec![find(&all, id)?],
    };
    if args.map {
        return map(&events, &chosen, args.json);
    }
    if args.json {
        let list: Vec<serde_json::Value> = chosen.iter().map(|trace| trace.to_json()).collect();
        terminal::print(&format!("{:#}\n", serde_json::json!({ "Traces": list })));
    } else if args.id.is_some() {
        chosen.iter().for_each(|trace| terminal::print(&render(trace)));
    } else {
        let took: Vec<u64> = chosen.iter().map(|trace| trace.response_ns()).collect();
        if args.filter.is_some() {
            terminal::print(&format!("{} of {} traces\n\n", chosen.len(), all.len()));
        }
        terminal::print(&summary_table(&chosen));
        terminal::print(&format!("\nresponse time\n{}", distribution(&took)));
    }
    Ok(Exit::Fine)
}

/// An expression, or where it is wrong.
fn read_filter(text: &str) -> Result<Filter, Failure> {
    Filter::parse(text).map_err(|bad| {
        let before = text.get(..bad.at).unwrap_or(text);
        Failure::usage(format!("--filter: after {before:?} expected {}", bad.what))
            .hint("'responsetime <= 0.1 AND !fault', as in X-Ray's console; docs/xray.md")
    })
}

/// Who calls whom in the invocations of these traces.
fn map(events: &[Event], chosen: &[&Trace], json: bool) -> Result<Exit, Failure> {
    let wanted: BTreeSet<&RequestId> = chosen.iter().flat_map(|trace| &trace.requests).collect();
    let mut variants = by_variant(&Facts::gather(events));
    for variant in &mut variants {
        variant.invocations.retain(|(i, _)| wanted.contains(&i.request_id));
    }
    let edges = edges(&variants);
    let text = match json {
        true => format!("{:#}\n", serde_json::json!({ "Edges": edges })),
        false => danki_report::service_map(&edges, &terminal::style()),
    };
    terminal::print(&text);
    Ok(Exit::Fine)
}

/// By the beginning of a trace's id or of a request's.
fn find<'a>(all: &'a [Trace], id: &str) -> Result<&'a Trace, Failure> {
    let is = |trace: &&Trace| trace.id.starts_with(id) || trace.requests.iter().any(|r| r.0.starts_with(id));
    let mut fitting = all.iter().filter(is);
    match (fitting.next(), fitting.next()) {
        (Some(trace), None) => Ok(trace),
        (None, _) => Err(Failure::usage(format!("no trace and no request begins with {id:?}"))
            .hint("`danki trace RUN` lists them")),
        (Some(_), Some(_)) => {
            Err(Failure::usage(format!("more than one trace begins with {id:?}")).hint("give more of it"))
        }
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let bad = |error: String| {
        Failure::usage(format!("{}: {error}", path.display()))
            .hint("give a run directory, such as runs/TIME-NAME")
    };
    let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| bad(e.to_string()))
}

/// Lines that do not read are an interrupted run's last one, or of another version: they are counted and told.
fn read_events(path: &Path) -> Result<Vec<Event>, Failure> {
    let file = File::open(path).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    let (mut events, mut unread) = (Vec::new(), 0_u64);
    for line in BufReader::new(file).lines() {
        let line = line.map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        match serde_json::from_str(&line) {
            Ok(event) if events.len() < MAX_EVENTS => events.push(event),
            _ => unread += 1,
        }
    }
    if unread > 0 {
        terminal::note(&format!("{unread} lines of {} were left out", path.display()));
    }
    Ok(events)
}
