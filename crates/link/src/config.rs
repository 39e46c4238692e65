//! How the link behaves.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// The network between envs and one destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Path {
    /// Round-trip time in µs: each direction holds a packet for half of it. At most 10 s.
    pub rtt_us: u64,
    /// An exchange takes `rtt_us` to `rtt_us + jitter_us`: each packet is held up to half of this longer, uniformly; packets of one
    /// direction never overtake each other. At most 10 s.
    pub jitter_us: u64,
    /// Probability that a packet is dropped, per direction, 0 to 1.
    pub loss: f64,
    /// Rate of each direction of each env in Mbit/s (IP bytes); absent: no limit. A queue of [`BANDWIDTH_QUEUE_NS`] stands before it.
    pub bandwidth_mbps: Option<f64>,
}

/// A packet that would wait longer than this for its turn on a path of limited bandwidth is dropped (tail drop). 100 ms is the rule of
/// thumb "one RTT of a wide-area path" for router buffers (Villamizar and Song, 1994).
pub const BANDWIDTH_QUEUE_NS: u64 = 100_000_000;

/// Longest round trip and jitter that make sense, µs.
const LONGEST_US: u64 = 10_000_000;

impl Default for Path {
    /// 1 ms, nothing else: what `reference/published-tables.md` T3 takes for a function and an endpoint of its region.
    fn default() -> Self {
        Path { rtt_us: 1000, jitter_us: 0, loss: 0.0, bandwidth_mbps: None }
    }
}

impl Path {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |setting, value: &dyn ToString, allowed| {
            Err(Error::Path { setting, value: value.to_string(), allowed })
        };
        if self.rtt_us > LONGEST_US {
            return refuse("rtt_us", &self.rtt_us, "0 to 10000000");
        }
        if self.jitter_us > LONGEST_US {
            return refuse("jitter_us", &self.jitter_us, "0 to 10000000");
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return refuse("loss", &self.loss, "0 to 1");
        }
        match self.bandwidth_mbps {
            Some(rate) if !(0.001..=1_000_000.0).contains(&rate) => {
                refuse("bandwidth_mbps", &rate, "0.001 to 1000000")
            }
            _ => Ok(()),
        }
    }
}

/// How a link behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The path to a destination not listed in `paths`. All such destinations share it: their packets keep one order.
    pub default_path: Path,
    /// Paths of particular addresses of the region.
    pub paths: Vec<(Ipv4Addr, Path)>,
    /// Seed of jitter and loss. Each direction of each path of each env draws from a sequence of its own.
    pub seed: u64,
    /// The TUNs pass a `virtio_net_hdr` before each packet (`IFF_VNET_HDR`), so that segmentation can be left to the receiver.
    pub offload: bool,
    /// Keep idle CPUs of the machine from sleeping deeply while the link runs, for exact times; costs power.
    pub keep_awake: bool,
    /// Capture all envs' traffic, as seen at their edge, into this file.
    pub pcap: Option<PathBuf>,
    /// Packets that may wait for a held env; more are dropped and counted. A paused virtual machine drops likewise when its
    /// network device's queue is full.
    pub hold_bound_packets: usize,
    /// Packets of one direction of one env inside the link; more are dropped and counted. Their bytes are bounded by
    /// [`BOUND_BYTES`].
    pub bound_packets: usize,
}

/// Bytes of one direction of one env inside the link; more are dropped and counted. 64 MiB: 5 Gbit/s for 100 ms.
pub const BOUND_BYTES: usize = 64 << 20;

impl Default for Config {
    fn default() -> Self {
        Config {
            default_path: Path::default(),
            paths: Vec::new(),
            seed: 1,
            offload: true,
            keep_awake: true,
            pcap: None,
            hold_bound_packets: 1024,
            bound_packets: 16_384,
        }
    }
}

impl Config {
    /// Loss or bandwidth is configured. With offload a "packet" is up to 64 KiB of segments that would be lost, or sent, as one:
    /// the TUNs must be created without it, and `offload` be false ([`crate::Link::start`] refuses otherwise).
    pub fn needs_offload_off(&self) -> bool {
        self.all_paths().any(|path| path.loss > 0.0 || path.bandwidth_mbps.is_some())
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.all_paths().try_for_each(Path::check)?;
        if self.offload && self.needs_offload_off() { Err(Error::Offload) } else { Ok(()) }
    }

    fn all_paths(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.default_path).chain(self.paths.iter().map(|(_, path)| path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_outside_their_range_are_refused_with_the_range() {
        let check = |path: Path, expect: &str| {
            let config = Config { default_path: path, ..Config::default() };
            let answer = config.check().map_or_else(|error| error.to_string(), |()| "fine".to_owned());
            assert_eq!(answer, expect);
        };
        check(Path::default(), "fine");
        check(Path { loss: 1.5, ..Path::default() }, "loss = 1.5 of a path; allowed: 0 to 1");
        check(Path { loss: f64::NAN, ..Path::default() }, "loss = NaN of a path; allowed: 0 to 1");
        check(
            Path { rtt_us: u64::MAX, ..Path::default() },
            "rtt_us = 18446744073709551615 of a path; allowed: 0 to 10000000",
        );
        check(
            Path { bandwidth_mbps: Some(0.0), ..Path::default() },
            "bandwidth_mbps = 0 of a path; allowed: 0.001 to 1000000",
        );
    }

    #[test]
    fn loss_and_bandwidth_need_offload_off() {
        let lossy = Path { loss: 0.01, ..Path::default() };
        let config = Config { paths: vec![(Ipv4Addr::new(198, 18, 1, 1), lossy)], ..Config::default() };
        assert!(config.needs_offload_off());
        assert!(matches!(config.check(), Err(Error::Offload)));
        assert!(Config { offload: false, ..config }.check().is_ok());
        assert!(!Config::default().needs_offload_off());
    }
}
