//! Every schedule is run in virtual time against invocations that take whatever proptest wants.

use super::*;
use crate::Arrivals;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
struct Sent {
    fire: Fire,
    at_ns: u64,
    ended_ns: u64,
}

/// Runs a schedule; the n-th invocation sent takes the n-th of `durations_ns`, in turn.
fn simulate(load: &Load, variants: usize, time_scale: f64, durations_ns: &[u64]) -> Vec<Sent> {
    let mut schedule = Schedule::new(load, variants, 7, time_scale, START_NS);
    let mut now_ns = START_NS;
    let mut sent: Vec<Sent> = Vec::new();
    let mut in_flight: Vec<Sent> = Vec::new();
    loop {
        let until_ns = match schedule.turn(now_ns) {
            Turn::Done => break,
            Turn::Fire(fire) => {
                let ended_ns = now_ns + durations_ns[sent.len() % durations_ns.len()];
                let invocation = Sent { fire, at_ns: now_ns, ended_ns };
                sent.push(invocation);
                in_flight.push(invocation);
                continue;
            }
            Turn::WaitUntil(at_ns) => {
                assert!(at_ns > now_ns, "waiting for the past");
                at_ns
            }
            Turn::WaitForEnd | Turn::WaitForReady => u64::MAX,
        };
        let next_end = in_flight.iter().enumerate().min_by_key(|(_, s)| s.ended_ns).map(|(n, s)| (n, *s));
        match next_end {
            Some((n, ended)) if ended.ended_ns <= until_ns => {
                in_flight.remove(n);
                now_ns = ended.ended_ns;
                schedule.ended(ended.fire.variant, now_ns);
            }
            _ => {
                assert!(until_ns < u64::MAX, "waiting for an end that never comes");
                now_ns = until_ns;
            }
        }
    }
    assert!(in_flight.is_empty(), "done with invocations under way");
    sent
}

const START_NS: u64 = 1_000;

fn of(sent: &[Sent], variant: usize) -> Vec<Sent> {
    sent.iter().filter(|s| s.fire.variant == variant).copied().collect()
}

fn loads() -> impl Strategy<Value = Load> {
    let stop = prop_oneof![(1u32..60).prop_map(Stop::Count), (0.1..3.0).prop_map(Stop::Seconds)];
    let arrivals = prop_oneof![Just(Arrivals::Uniform), Just(Arrivals::Poisson)];
    prop_oneof![
        (1u32..20, proptest::collection::vec(0.0..50.0, 1..4))
            .prop_map(|(count, gaps_ms)| Load::Sequence { count, gaps_ms }),
        (1u32..6, stop.clone()).prop_map(|(clients, stop)| Load::Closed { clients, stop }),
        (1.0..50.0, stop, arrivals, 1u32..6).prop_map(|(rate_per_s, stop, arrivals, max_in_flight)| {
            Load::Open { rate_per_s, stop, arrivals, max_in_flight }
        }),
    ]
}

fn durations() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(1_000_000u64..300_000_000, 1..10)
}

proptest! {
    #[test]
    fn every_load_is_sent_whole_in_order_and_within_its_bounds(load in loads(), variants in 1usize..4, durations in durations()) {
        let sent = simulate(&load, variants, 1.0, &durations);
        for variant in 0..variants {
            let mine = of(&sent, variant);
            let indices: Vec<u32> = mine.iter().map(|s| s.fire.index).collect();
            let count = u32::try_from(mine.len()).expect("few");
            prop_assert_eq!(indices, (0..count).collect::<Vec<_>>());
            if let Load::Sequence { count: asked, .. }
            | Load::Closed { stop: Stop::Count(asked), .. }
            | Load::Open { stop: Stop::Count(asked), .. } = &load
            {
                prop_assert_eq!(count, *asked);
            }
        }
        for s in &sent {
            prop_assert!(s.fire.intended_ns <= s.at_ns, "sent before its time");
            let overlapping = sent.iter().filter(|o| o.at_ns <= s.at_ns && s.at_ns < o.ended_ns);
            prop_assert!(overlapping.clone().count() <= load.concurrency() as usize);
            prop_assert!(overlapping.into_iter().all(|o| o.fire.variant == s.fire.variant), "variants overlap");
        }
    }

    #[test]
    fn gaps_count_from_the_end_and_scale(gap_ms in 1.0..1_000.0, scale in 1.0..10.0, durations in durations()) {
        let load = Load::Sequence { count: 4, gaps_ms: vec![gap_ms] };
        let sent = simulate(&load, 1, scale, &durations);
        for pair in sent.windows(2) {
            prop_assert_eq!(pair[1].at_ns - pair[0].ended_ns, ns(gap_ms / 1_000.0 / scale));
            prop_assert_eq!(pair[1].fire.intended_ns, pair[1].at_ns);
        }
    }

    /// However slow the function, arrivals of a block are intended where the rate puts them.
    #[test]
    fn an_open_load_does_not_wait_for_the_function(durations in durations(), max_in_flight in 1u32..4) {
        let load = Load::Open { rate_per_s: 100.0, stop: Stop::Count(15), arrivals: Arrivals::Uniform, max_in_flight };
        let sent = simulate(&load, 1, 1.0, &durations);
        for (n, s) in sent.iter().enumerate() {
            prop_assert_eq!(s.fire.intended_ns, START_NS + 10_000_000 * (n as u64 + 1));
        }
    }
}

#[test]
fn sequences_and_single_clients_alternate() {
    for load in [
        Load::Sequence { count: 3, gaps_ms: vec![0.0] },
        Load::Sequence { count: 3, gaps_ms: vec![500.0] },
        Load::Closed { clients: 1, stop: Stop::Count(3) },
    ] {
        let sent = simulate(&load, 2, 1.0, &[20_000_000]);
        let order: Vec<_> = sent.iter().map(|s| (s.fire.variant, s.fire.index)).collect();
        assert_eq!(order, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)], "{load:?}");
    }
}

#[test]
fn gaps_overlap_across_variants() {
    let load = Load::Sequence { count: 3, gaps_ms: vec![1_000.0] };
    let sent = simulate(&load, 2, 1.0, &[10_000_000]);
    let last = sent.iter().map(|s| s.ended_ns).max().expect("some");
    assert!(last < START_NS + 2_100_000_000, "both variants wait for their gaps at the same time");
}

#[test]
fn poisson_arrivals_have_the_rate_asked_for() {
    let gaps = crate::open::gaps(50.0, Stop::Seconds(200.0), Arrivals::Poisson, 3);
    let expect = 10_000.0_f64;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let off = (gaps.len() as f64 - expect).abs();
    assert!(off < 5.0 * expect.sqrt(), "{} arrivals", gaps.len());
    assert_eq!(
        gaps,
        crate::open::gaps(50.0, Stop::Seconds(200.0), Arrivals::Poisson, 3),
        "same seed, same arrivals"
    );
}
