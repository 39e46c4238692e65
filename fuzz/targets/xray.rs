//! A function sends what it likes to the X-Ray daemon. What is taken becomes a trace, and that is written in every form.
#![no_main]

use danki_model::EnvId;
use danki_record::{Event, SegmentDocument};
use danki_xray::{Entity, Run, TraceHeader, parse_datagram, sampling_answer, traces};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Some(header) = TraceHeader::parse(&text) {
        assert_eq!(TraceHeader::parse(&header.to_string()), Some(header));
    }
    sampling_answer("/SamplingTargets", data, 1.0);
    let Ok(document) = parse_datagram(data) else { return };
    for entity in Entity::from_document(&document) {
        assert!(entity.end_ns.is_none_or(|end_ns| end_ns >= entity.start_ns));
        entity.to_document();
    }
    let events = [Event::Segment(SegmentDocument { at_ns: 1, env: EnvId(1), document })];
    assert!(traces(&Run { events: &events, epoch_offset_ns: 0 }).is_empty(), "no invocation, no trace");
});
