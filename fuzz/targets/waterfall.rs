//! Whatever was recorded, in whatever order and with whatever times: the parts of a waterfall sum exactly to its span.
//! Input: lines of events.jsonl; lines that are not events are left out.
#![no_main]

use danki_explain::{Context, Facts, by_variant, findings, waterfall};
use danki_record::Event;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let events: Vec<Event> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let facts = Facts::gather(&events);
    for event in &events {
        if let Event::Invocation(invocation) = event {
            let span = invocation.responded_ns.saturating_sub(invocation.dispatched_ns);
            assert_eq!(waterfall(invocation, &facts).total(), span);
        }
    }
    for finding in findings(&facts, &by_variant(&facts), &Context::default()) {
        assert!(!finding.text.is_empty());
    }
});
