//! speedscope's own file format (evented profiles): per variant, what its invocations were spent on, one after the other.

use crate::read::Run;
use danki_explain::{Facts, Part, Variant, by_variant};
use serde_json::{Value, json};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// The whole file. Frame 0 is the invocation; the parts follow in their order.
pub fn speedscope(run: &Run) -> Value {
    let facts = Facts::gather(&run.events);
    let frames: Vec<Value> = std::iter::once(json!({"name": "invocation"}))
        .chain(Part::ALL.iter().map(|part| json!({"name": part.name()})))
        .collect();
    let profiles: Vec<Value> = by_variant(&facts).iter().map(profile).collect();
    json!({"$schema": SCHEMA, "name": run.manifest.name, "exporter": format!("danki {}", run.manifest.danki),
           "activeProfileIndex": 0, "shared": {"frames": frames}, "profiles": profiles})
}

/// Invocations of several envs overlap in time; laid end to end they add up to what the variant was spent on.
fn profile(variant: &Variant) -> Value {
    let mut now = 0_u64;
    let mut events = Vec::new();
    let mut event = |kind: &str, frame: usize, at: u64| {
        events.push(json!({"type": kind, "frame": frame, "at": at as f64 / 1e3}));
    };
    for w in variant.waterfalls() {
        event("O", 0, now);
        for s in &w.segments {
            let frame = 1 + s.part as usize;
            event("O", frame, now);
            now += s.span.len_ns();
            event("C", frame, now);
        }
        event("C", 0, now);
    }
    json!({"type": "evented", "name": variant.name, "unit": "microseconds", "startValue": 0, "endValue": now as f64 / 1e3,
           "events": events})
}
