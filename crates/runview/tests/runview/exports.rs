//! What other viewers get obeys their formats.

use danki_runview::{draw, perfetto, speedscope};
use serde_json::Value;
use std::collections::BTreeMap;

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Trace Event Format: every event has ph, pid, tid, name; complete events have ts and dur, and those of one thread nest.
#[test]
fn a_perfetto_trace_nests() {
    let trace = perfetto(&crate::support::run(60));
    let events = list(&trace, "traceEvents");
    let mut open: BTreeMap<(u64, u64), Vec<f64>> = BTreeMap::new();
    let mut count = BTreeMap::new();
    for e in events {
        let id = (e["pid"].as_u64().expect("pid"), e["tid"].as_u64().expect("tid"));
        assert!(e["name"].is_string(), "{e}");
        *count.entry(e["ph"].as_str().expect("ph").to_owned()).or_insert(0) += 1;
        if e["ph"] != "X" {
            continue;
        }
        let (ts, dur) = (e["ts"].as_f64().expect("ts"), e["dur"].as_f64().expect("dur"));
        assert!(ts >= 0.0 && dur >= 0.0, "{e}");
        let ends = open.entry(id).or_default();
        while ends.last().is_some_and(|end| *end <= ts + 1e-3) {
            ends.pop();
        }
        assert!(ends.last().is_none_or(|end| ts + dur <= end + 1e-3), "{e} does not nest in {ends:?}");
        ends.push(ts + dur);
    }
    let invocations = events.iter().filter(|e| e["cat"] == "invocation").count();
    let calls = events.iter().filter(|e| e["cat"] == "call").count();
    assert_eq!((invocations, calls), (60, 60));
    // Two processes; two envs and 30 + 1 connections as threads.
    assert_eq!(count["M"], 2 + 2 + 31);
}

/// speedscope's file-format-schema: frames exist, events are in order, and what was opened last is closed first.
#[test]
fn a_speedscope_file_is_balanced_and_adds_up() {
    let run = crate::support::run(60);
    let file = speedscope(&run);
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = list(&file["shared"], "frames").len();
    let profiles = list(&file, "profiles");
    assert_eq!(profiles.len(), 2);
    for profile in profiles {
        assert_eq!(
            (&profile["type"], &profile["unit"]),
            (&Value::from("evented"), &Value::from("microseconds"))
        );
        let (mut stack, mut now) = (Vec::new(), profile["startValue"].as_f64().expect("start"));
        for e in list(profile, "events") {
            let (frame, at) = (e["frame"].as_u64().expect("frame"), e["at"].as_f64().expect("at"));
            assert!((frame as usize) < frames && at >= now, "{e}");
            now = at;
            match e["type"].as_str() {
                Some("O") => stack.push(frame),
                Some("C") => assert_eq!(stack.pop(), Some(frame), "{e}"),
                other => panic!("{other:?}"),
            }
        }
        assert!(stack.is_empty());
        assert!((profile["endValue"].as_f64().expect("end") - now).abs() < 1e-6);
    }
}

#[test]
fn an_invocation_is_drawn_for_the_terminal() {
    let run = crate::support::run(20);
    let page = danki_runview::build(&run);
    let text = draw(&run, &page.invocations.id[4][..13], 100).expect("one begins so");
    assert!(text.lines().all(|line| line.chars().count() <= 140), "{text}");
    for expect in ["GetItem", "service time", "sum", "new,", "throttled"] {
        assert!(text.contains(expect), "{expect}\n{text}");
    }
    assert_eq!(draw(&run, "zzz", 100), None);
    assert_eq!(draw(&run, "", 100), None, "several");
}
