//! What a reader of the results must know.

use super::Setup;
use crate::experiment::Experiment;
use crate::rundir::Written;
use danki_link::Stats;
use danki_model::CpuChoice;

/// A release later than this shows in a call of a few ms.
const LATE_NS: u64 = 500_000;

/// Before the run: what was asked for and what the machine lacks.
pub fn of_set_up(experiment: &Experiment, setup: &Setup) -> Vec<String> {
    let mut caveats = Vec::new();
    if experiment.time_scale > 1.0 {
        caveats.push(format!(
            "gaps, idle cut-offs and idle lifetimes were divided by {}; round trips, CPU, service times and the clients' own timers \
             (Node's global agent 5 s, agent and SDK timeouts) were not",
            experiment.time_scale
        ));
    }
    if experiment.host.profile == Some(true) {
        caveats.push(
            "functions were profiled: that takes CPU; times of another run are to be quoted".to_owned(),
        );
    }
    if experiment.quick {
        caveats.push("--quick: fewer invocations than the experiment asks for".to_owned());
    }
    let scaled = experiment.host.cpu_model == Some(CpuChoice::Scaled);
    match setup.calibration.cpu_factor {
        Some(factor) if scaled => caveats.push(format!(
            "--cpu-model scaled: CPU quotas were divided by {factor:.2}, the Lambda vCPUs that one core here does the work of; a stretch \
             of CPU within one period, and init at a whole vCPU, still take 1/{factor:.2} of what they take there"
        )),
        None => caveats.push("this machine's CPU was never compared with Lambda's: run `danki calibrate`".to_owned()),
        Some(factor) if !(0.8..=1.25).contains(&factor) => caveats.push(format!(
            "one core here does the work of {factor:.2} Lambda vCPUs: CPU-bound parts took 1/{factor:.2} of what they take there"
        )),
        Some(_) => {}
    }
    caveats.extend(experiment.notes.iter().cloned());
    caveats.extend(setup.missing.iter().cloned());
    caveats
}

/// What the link could not do as asked; `dropped` packets were lost at a bound while the load was on.
pub fn of_link(stats: &Stats, dropped: u64) -> Vec<String> {
    let mut caveats = Vec::new();
    let lateness = &stats.lateness;
    if lateness.p99_ns > LATE_NS {
        caveats.push(format!(
            "the link released packets late: p50 {:.3} ms, p99 {:.3} ms, worst {:.1} ms",
            lateness.p50_ns as f64 / 1e6,
            lateness.p99_ns as f64 / 1e6,
            lateness.max_ns as f64 / 1e6
        ));
    }
    let counted = [
        (dropped + stats.held_overflow, "packets were dropped at the bound of a queue of the link"),
        (stats.pcap_dropped, "packets are missing in wire.pcap: the disk was behind"),
        (stats.connections_evicted, "connections were recorded before their end: too many at once"),
        (stats.unconfirmed, "freezes or thaws were not confirmed by the link in time"),
    ];
    caveats.extend(counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
    caveats
}

/// What is missing in the record.
pub fn of_writing(written: &Written) -> Vec<String> {
    let counted = [
        (written.dropped, "facts were dropped because the writer was behind: numbers are incomplete"),
        (written.only_in_file, "facts are in events.jsonl but not in the summary: too many for memory"),
    ];
    counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
}
