//! Whatever events.jsonl holds, the run's page and traces can be made, and columns have as many entries as there are rows.
//! Input: lines of events.jsonl; lines that are not events are left out.
#![no_main]

use danki_record::Event;
use danki_runview::{Run, build, perfetto, speedscope};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// Manifest and summary of a run without variants.
static EMPTY: LazyLock<Run> = LazyLock::new(|| {
    let manifest = r#"{"schema":1,"danki":"","name":"","experiment":{},"started_epoch_ms":0,"started_ns":5,"epoch_offset_ns":0,
        "seed":1,"time_scale":1,"quick":false,"machine":{"kernel":"","cpus":1,"cpu_model":""},"capabilities":{},
        "calibration":{"cpu_factor":null,"measurements":[]},"complete":true}"#;
    let summary = r#"{"schema":1,"name":"","complete":true,"seed":1,"time_scale":1,"repetitions":1,"variants":[],"expect":[],
        "findings":[],"calibration":{"cpu_factor":null,"measurements":[]},"link":{},"caveats":[]}"#;
    Run {
        dir: Default::default(),
        manifest: serde_json::from_str(manifest).expect("a manifest"),
        summary: serde_json::from_str(summary).expect("a summary"),
        events: Vec::new(),
    }
});

fuzz_target!(|text: &str| {
    let events: Vec<Event> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut run = Run { events, ..EMPTY.clone() };
    run.explain_again();
    let page = build(&run);
    let n = page.invocations.id.len();
    assert!(page.invocations.span.len() == n && page.invocations.segments.len() == n);
    assert_eq!(page.calls.from.len(), page.calls.invocation.len());
    assert!(perfetto(&run)["traceEvents"].is_array() && speedscope(&run)["profiles"].is_array());
});
