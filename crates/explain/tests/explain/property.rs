//! Whatever was recorded, in whatever order, overlapping or out of bounds: the parts sum to the span.

use crate::support::{ENV, connection, dns, flight, invocation, request, us};
use danki_explain::{Facts, Part, Waterfall, by_variant, findings, waterfall};
use danki_model::EnvId;
use danki_record::{CpuSample, CpuSeries, Event, Invocation, Span};
use proptest::prelude::*;

const END_US: u64 = 400;

fn any_span() -> impl Strategy<Value = Span> {
    // Some backward, many outside of every invocation.
    (0..END_US, 0..END_US).prop_map(|(a, b)| us(a, b))
}

fn maybe_span() -> impl Strategy<Value = Option<Span>> {
    prop::option::of(any_span())
}

fn any_invocation() -> impl Strategy<Value = Event> {
    let times = (0..END_US, 0..END_US, prop::option::of(0..END_US));
    (times, maybe_span(), maybe_span(), maybe_span()).prop_map(|((a, b, event), env_wait, init, thaw)| {
        let mut i = invocation("v", 0, a, a + 1);
        i.responded_ns = b * 1_000;
        i.finished_ns = b * 1_000;
        (i.env_wait, i.init, i.thaw, i.delivered_ns) = (env_wait, init, thaw, event.map(|e| e * 1_000));
        Event::Invocation(i)
    })
}

fn any_cpu() -> impl Strategy<Value = Event> {
    let sample = (0..END_US * 1_000, 0..300_000_u64, prop_oneof![4 => 0..300_000_u64, 1 => Just(u64::MAX)]);
    prop::collection::vec(sample, 0..30).prop_map(|samples| {
        let sample = |(at_ns, usage_ns, throttled_ns)| CpuSample { at_ns, usage_ns, throttled_ns };
        Event::Cpu(CpuSeries { env: ENV, samples: samples.into_iter().map(sample).collect() })
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    let time = || 0..END_US;
    let port = || 1_u16..4;
    prop_oneof![
        any_invocation(),
        any_cpu(),
        (time(), time()).prop_map(|(a, b)| dns(a, b)),
        (1_u64..5, time(), time()).prop_map(|(conn, a, b)| flight(conn, a, b)),
        (port(), 1_u32..3, time(), time(), maybe_span())
            .prop_map(|(port, ordinal, a, b, tls)| request(port, ordinal, a, b, tls)),
        (1_u64..5, port(), time(), time(), prop::option::of(time()), prop::option::of(time())).prop_map(
            |(conn, port, syn, established, last, end)| {
                let mut c = connection(conn, port, syn, established);
                c.last_byte_ns = last.map(|t| t * 1_000);
                c.closed_ns = end.map(|t| t * 1_000);
                c.idle = last.map(|t| us(syn, t)).into_iter().collect();
                Event::Connection(c)
            }
        ),
    ]
}

fn check(w: &Waterfall, i: &Invocation) -> Result<(), TestCaseError> {
    let span_ns = i.responded_ns.saturating_sub(i.dispatched_ns);
    prop_assert_eq!(w.total(), span_ns);
    prop_assert_eq!(w.iter().map(|(_, ns)| ns).sum::<u64>(), span_ns);
    let mut at = w.span.from_ns;
    for s in &w.segments {
        prop_assert_eq!(s.span.from_ns, at, "a gap or an overlap");
        prop_assert!(s.span.to_ns > s.span.from_ns);
        at = s.span.to_ns;
    }
    prop_assert_eq!(at, w.span.to_ns);
    for part in Part::ALL {
        let drawn: u64 = w.segments.iter().filter(|s| s.part == part).map(|s| s.span.len_ns()).sum();
        prop_assert_eq!(drawn, w.parts[part]);
        // No part is larger than what was recorded for it; the CPU parts are bounded below.
        if !matches!(part, Part::CpuOn | Part::CpuThrottled) {
            prop_assert!(w.parts[part] <= w.inclusive[part], "{}", part);
        }
    }
    let before = i.delivered_ns.map_or(0, |at_ns| at_ns.saturating_sub(i.dispatched_ns));
    let len = |s: Option<Span>| s.map_or(0, Span::len_ns);
    for (part, most) in
        [(Part::EnvWait, len(i.env_wait) + before), (Part::Init, len(i.init)), (Part::Thaw, len(i.thaw))]
    {
        prop_assert!(w.parts[part] <= most);
    }
    prop_assert!(w.calls.iter().all(|c| c.span.from_ns <= c.sent_ns && c.sent_ns <= c.span.to_ns));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn parts_sum_exactly(events in prop::collection::vec(any_event(), 0..40)) {
        let facts = Facts::gather(&events);
        for i in &facts.invocations {
            check(&waterfall(i, &facts), i)?;
        }
        let variants = by_variant(&facts);
        let shares: f64 = variants.iter().flat_map(|v| v.parts()).map(|p| p.share).sum();
        prop_assert!(shares < variants.len() as f64 + 1e-9);
        findings(&facts, &variants, &danki_explain::Context::default());
    }

    #[test]
    fn cpu_parts_never_exceed_what_was_used_and_booked(
        steps in prop::collection::vec((1_u64..2_000, 0..3_000_u64, prop_oneof![3 => Just(0_u64), 1 => 0..40_000_u64]), 1..60),
    ) {
        // A regular series over one invocation that is nothing but CPU.
        let mut sample = CpuSample { at_ns: 0, usage_ns: 0, throttled_ns: 0 };
        let mut samples = vec![sample];
        let (mut used, mut used_in_all, mut booked) = (0, 0, 0);
        for (length, usage, throttled) in steps {
            sample = CpuSample {
                at_ns: sample.at_ns + length,
                usage_ns: sample.usage_ns + usage,
                throttled_ns: sample.throttled_ns + throttled,
            };
            used += usage.min(length);
            used_in_all += usage;
            booked += throttled;
            samples.push(sample);
        }
        let mut i = invocation("v", 0, 0, 1);
        (i.thaw, i.delivered_ns, i.responded_ns) = (None, None, sample.at_ns);
        let facts = Facts::gather(&[Event::Cpu(CpuSeries { env: EnvId(1), samples }), Event::Invocation(i)]);
        let w = waterfall(&facts.invocations[0], &facts);
        prop_assert!(w.parts[Part::CpuThrottled] <= booked);
        // Room is left for the CPU time of every bucket: none of it is lost. What a bucket is too short for may be found before it.
        prop_assert!((used..=used_in_all).contains(&w.parts[Part::CpuOn]));
    }
}
