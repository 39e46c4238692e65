//! Waits for a CPU take what nothing else explains, and no more than was waited.

use crate::support::{ENV, cpu, invocation};
use danki_explain::{Facts, Part, waterfall};
use danki_record::{CpuWaitCounted, CpuWaitSample, CpuWaitSeries, Event};
use proptest::prelude::*;

fn waits(samples: &[(u64, u64)]) -> Event {
    series(CpuWaitCounted::Ready, samples)
}

fn stolen(samples: &[(u64, u64)]) -> Event {
    series(CpuWaitCounted::Stolen, samples)
}

/// Samples as (at, waited), µs.
fn series(counted: CpuWaitCounted, samples: &[(u64, u64)]) -> Event {
    let sample = |&(at, waited): &(u64, u64)| CpuWaitSample { at_ns: at * 1_000, waited_ns: waited * 1_000 };
    Event::CpuWait(CpuWaitSeries { env: ENV, counted, samples: samples.iter().map(sample).collect() })
}

/// Of an invocation of 10 ms: µs of CPU, throttled, waited for a CPU, unexplained.
fn check(events: &[Event], expect: [u64; 4]) {
    let mut all = events.to_vec();
    let mut whole = invocation("v", 0, 0, 10_000);
    (whole.thaw, whole.delivered_ns) = (None, Some(0));
    all.push(Event::Invocation(whole));
    let facts = Facts::gather(&all);
    let w = waterfall(&facts.invocations[0], &facts);
    assert_eq!(w.total(), 10_000_000);
    let parts = [Part::CpuOn, Part::CpuThrottled, Part::CpuWait, Part::Unattributed];
    assert_eq!(parts.map(|part| w.parts[part] / 1_000), expect, "{:?}", w.segments);
}

#[test]
fn a_wait_takes_what_is_left() {
    let used = cpu(&[(0, 0, 0), (1_000, 900, 0), (10_000, 900, 0)]);
    check(std::slice::from_ref(&used), [900, 0, 0, 9_100]);
    // Found at 8.0: it ended there at the latest, and began 3 ms before or earlier.
    check(
        &[used.clone(), waits(&[(0, 50), (7_000, 50), (8_000, 3_050), (10_000, 3_050)])],
        [900, 0, 3_000, 6_100],
    );
    // Throttled time is waited for too, and counts once.
    let throttled = cpu(&[(0, 0, 0), (1_000, 900, 0), (8_000, 900, 5_000), (10_000, 900, 5_000)]);
    check(
        &[throttled.clone(), waits(&[(0, 0), (2_900, 0), (8_000, 5_100), (10_000, 5_100)])],
        [900, 5_000, 100, 4_000],
    );
    // What the hypervisor took is a series of its own, and takes of what is left then.
    let own = waits(&[(0, 50), (7_000, 50), (8_000, 3_050), (10_000, 3_050)]);
    check(&[used.clone(), own, stolen(&[(0, 0), (10_000, 2_000)])], [900, 0, 5_000, 4_100]);
    // It does not know of being throttled.
    check(&[throttled, stolen(&[(0, 0), (8_000, 1_500), (10_000, 1_500)])], [900, 5_000, 1_500, 2_600]);
    // Waiting longer than the invocation took explains no more than all of it.
    check(&[used, waits(&[(0, 0), (10_000, 99_000)])], [900, 0, 9_100, 0]);
}

proptest! {
    #[test]
    fn whatever_was_waited_the_parts_sum(samples in prop::collection::vec((0_u64..12_000, 0_u64..50_000), 0..12)) {
        let events = [waits(&samples), Event::Invocation(invocation("v", 0, 0, 10_000))];
        let facts = Facts::gather(&events);
        let w = waterfall(&facts.invocations[0], &facts);
        prop_assert_eq!(w.total(), 10_000_000);
        prop_assert_eq!(w.parts[Part::CpuWait], w.inclusive[Part::CpuWait]);
    }
}
