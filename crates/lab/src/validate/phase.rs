//! Where does Lambda's quota refill lie between two ticks? Estimated from T1's run at 128 MB alone, then held against the other sizes.
//!
//! The published CPU time of each iteration goes through [`Bandwidth`], for all phases and twenty starting points each; what comes out is
//! held against the published wall times, in bins of 1 ms. A test, because the answer is a constant of danki (`[host] quota_phase`); its
//! table is the snapshot beside it.

use danki_model::MemoryMb;
use danki_model::bandwidth::{Bandwidth, Settled, TICK_NS};
use danki_stats::{Histogram, LATTICE_MS};
use std::fmt::Write;

const SIZES: [u32; 4] = [128, 256, 512, 1_024];
/// The phase is estimated from this run alone.
const FITTED: u32 = 128;
const STEP_NS: u64 = 50_000;
/// Two phases whose distances differ by less are not told apart.
const ALIKE: f64 = 0.03;

/// Wall times of one memory size in ms, and CPU times in ns.
struct Run {
    memory: MemoryMb,
    walls_ms: Vec<f64>,
    cpu_ns: Vec<u64>,
}

fn published(mb: u32) -> Run {
    let memory = MemoryMb::try_from(mb).unwrap();
    let rows = include_str!("t1.csv").lines().filter(|line| line.as_bytes()[0].is_ascii_digit());
    let rows = rows.map(|line| line.split(',').map(|n| n.parse().unwrap()).collect::<Vec<u64>>());
    let rows: Vec<Vec<u64>> = rows.filter(|row| row[0] == u64::from(mb)).collect();
    let walls_ms = rows.iter().map(|row| row[1] as f64 / 1e3).collect();
    Run { memory, walls_ms, cpu_ns: rows.iter().map(|row| row[2] * 1_000).collect() }
}

/// Distances at one phase, mean of all starting points.
#[derive(Clone, Copy)]
struct Distance {
    first_tick_ns: u64,
    bins_1_ms: f64,
    bins_20_ms: f64,
}

fn distance(run: &Run, first_tick_ns: u64, settled: Settled) -> Distance {
    let bandwidth = Bandwidth::of(run.memory, first_tick_ns);
    let starts = (0..20).map(|ms| ms * 1_000_000);
    let apart = |width: f64, walls: &[f64]| {
        let of = |values: &[f64]| Histogram::of(width, values.iter().copied());
        of(walls).distance(&of(&run.walls_ms)).unwrap()
    };
    let (mut fine, mut coarse) = (0.0, 0.0);
    for start_ns in starts {
        let walls = bandwidth.walls_ns(&run.cpu_ns, start_ns, settled);
        let walls: Vec<f64> = walls.into_iter().map(|ns| ns as f64 / 1e6).collect();
        fine += apart(1.0, &walls) / 20.0;
        coarse += apart(LATTICE_MS, &walls) / 20.0;
    }
    Distance { first_tick_ns, bins_1_ms: fine, bins_20_ms: coarse }
}

fn all_phases(run: &Run, settled: Settled) -> Vec<Distance> {
    (1..=TICK_NS / STEP_NS).map(|step| distance(run, step * STEP_NS, settled)).collect()
}

fn best(distances: &[Distance]) -> Distance {
    *distances.iter().min_by(|a, b| a.bins_1_ms.total_cmp(&b.bins_1_ms)).unwrap()
}

/// How far a refill is from the nearest tick, if the first tick after it comes so much later.
fn from_a_tick_ns(first_tick_ns: u64) -> u64 {
    first_tick_ns.min(TICK_NS - first_tick_ns)
}

#[test]
fn one_phase_estimated_at_128_mb_explains_the_other_sizes() {
    let fitted = all_phases(&published(FITTED), Settled::AfterEachPiece);
    let phase = best(&fitted);
    assert!(from_a_tick_ns(phase.first_tick_ns) <= 100_000, "{} ns", phase.first_tick_ns);
    let elsewhere = best(&all_phases(&published(FITTED), Settled::AtTicks));
    assert!(elsewhere.bins_1_ms > phase.bins_1_ms + 0.1, "asking for CPU time settles the account");
    for mb in SIZES.into_iter().filter(|mb| *mb != FITTED) {
        let held_out = distance(&published(mb), phase.first_tick_ns, Settled::AfterEachPiece);
        assert!(held_out.bins_20_ms <= 0.15 && held_out.bins_1_ms <= 0.2, "{mb} MB");
    }
}

#[test]
fn estimates_by_size() {
    let mut table =
        "settled | MB | phase, ms | not told apart from it | 1 ms bins | 20 ms bins | 20 ms bins, any phase\n".to_owned();
    for (settled, word) in [(Settled::AfterEachPiece, "when asked"), (Settled::AtTicks, "at ticks only")] {
        for mb in SIZES {
            let all = all_phases(&published(mb), settled);
            let best = best(&all);
            let alike: Vec<String> = all
                .iter()
                .filter(|d| d.bins_1_ms < best.bins_1_ms + ALIKE)
                .map(|d| format!("{:.2}", d.first_tick_ns as f64 / 1e6))
                .collect();
            let any = all.iter().map(|d| d.bins_20_ms).sum::<f64>() / all.len() as f64;
            let most = all.iter().map(|d| d.bins_20_ms).fold(0.0, f64::max);
            writeln!(
                table,
                "{word} | {mb} | {:.2} | {} | {:.2} | {:.2} | mean {any:.2}, at most {most:.2}",
                best.first_tick_ns as f64 / 1e6,
                alike.join(" "),
                best.bins_1_ms,
                best.bins_20_ms,
            )
            .unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
