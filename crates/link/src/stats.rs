//! The instrument's own figures.

use hdrhistogram::Histogram;
use serde::Serialize;

/// What a link did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Packets delivered at the other side, both directions.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// Packets dropped because the path's loss asked for it.
    pub lost: u64,
    /// Packets from an env to anywhere but the region (also all IPv6, and false source addresses), and from the region to no env.
    pub dropped_no_route: u64,
    /// Packets dropped at the bound of a queue, or to an env that went.
    pub dropped_bound: u64,
    /// Packets to a held env dropped at the bound.
    pub held_overflow: u64,
    /// Bare acknowledgments that reached an env while it was held.
    pub passed_while_held: u64,
    /// Packets delivered late because their env was held.
    pub held: u64,
    /// Writes that the kernel could not take at once and that were tried again.
    pub write_retries: u64,
    /// Packets that the kernel did not take.
    pub write_failed: u64,
    /// TCP connections begun.
    pub connections: u64,
    /// Connections recorded before their end because the table was full.
    pub connections_evicted: u64,
    /// Packets missing in the capture because the disk was behind.
    pub pcap_dropped: u64,
    /// Holds and releases that the link did not confirm in time.
    pub unconfirmed: u64,
    /// The link's thread runs with real-time priority.
    pub realtime: bool,
    /// Idle CPUs are kept from sleeping deeply.
    pub awake: bool,
    /// Write minus due time, per packet, without those that were held: the instrument's error.
    pub lateness: Lateness,
}

/// A distribution of delays; quantiles of an HDR histogram with two significant digits (value at or above the rank).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// How many packets.
    pub count: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 90th percentile, ns.
    pub p90_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Largest, ns.
    pub max_ns: u64,
}

/// Longest lateness told apart: 60 s.
const HIGHEST_NS: u64 = 60_000_000_000;

pub(crate) fn lateness_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST_NS, 2).expect("constant bounds are valid")
}

impl Lateness {
    pub(crate) fn new(histogram: &Histogram<u64>) -> Lateness {
        Lateness {
            count: histogram.len(),
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        }
    }
}
