//! Reads the counters of an env from files that stay open, without allocation: it is done every millisecond.

use super::words::{Controller, Version};
use rustix::io::pread;
use std::fs::File;
use std::path::Path;

/// CPU time of all processes of an env so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CpuCounters {
    /// CPU time used, in ns.
    pub usage_ns: u64,
    /// Time for which runnable processes were kept off the CPU by the quota, in ns, summed over CPUs.
    pub throttled_ns: u64,
    /// Periods in which a process was runnable.
    pub nr_periods: u64,
    /// Periods in which the quota was used up.
    pub nr_throttled: u64,
}

/// Large enough for every file read here: `cpu.stat` of version 2 has about 200 bytes.
pub(super) const BUFFER: usize = 1_024;

/// The open files. What the machine does not have reads as 0.
#[derive(Debug)]
pub(super) struct CpuFiles {
    /// `cpuacct.usage`; version 2 has it in `stat`.
    usage: Option<File>,
    stat: Option<(Version, File)>,
}

impl CpuFiles {
    pub(super) fn open(dir_of: impl Fn(Controller) -> Option<(Version, std::path::PathBuf)>) -> CpuFiles {
        let open = |dir: &Path, name: &str| File::open(dir.join(name)).ok();
        let usage = match dir_of(Controller::Cpuacct) {
            Some((Version::V1, dir)) => open(&dir, "cpuacct.usage"),
            _ => None,
        };
        let stat =
            dir_of(Controller::Cpu).and_then(|(version, dir)| Some((version, open(&dir, "cpu.stat")?)));
        CpuFiles { usage, stat }
    }

    /// [`CpuCounters::nr_periods`] alone.
    pub(super) fn periods(&self) -> u64 {
        let mut buffer = [0; BUFFER];
        let stat = self.stat.as_ref();
        stat.map_or(0, |(version, file)| parse_stat(*version, text(file, &mut buffer)).nr_periods)
    }

    pub(super) fn read(&self) -> CpuCounters {
        let mut buffer = [0; BUFFER];
        let mut counters = CpuCounters::default();
        if let Some((version, file)) = &self.stat {
            counters = parse_stat(*version, text(file, &mut buffer));
        }
        if let Some(file) = &self.usage {
            counters.usage_ns = text(file, &mut buffer).trim_ascii_end().parse().unwrap_or(0);
        }
        counters
    }
}

pub(super) fn text<'a>(file: &File, buffer: &'a mut [u8; BUFFER]) -> &'a str {
    let length = pread(file, &mut buffer[..], 0).unwrap_or(0);
    std::str::from_utf8(&buffer[..length]).unwrap_or("")
}

fn parse_stat(version: Version, text: &str) -> CpuCounters {
    let mut counters = CpuCounters::default();
    for line in text.lines() {
        let Some((key, number)) = line.split_once(' ') else { continue };
        let number: u64 = number.parse().unwrap_or(0);
        match (version, key) {
            (_, "nr_periods") => counters.nr_periods = number,
            (_, "nr_throttled") => counters.nr_throttled = number,
            (Version::V1, "throttled_time") => counters.throttled_ns = number,
            (Version::V2, "throttled_usec") => counters.throttled_ns = number.saturating_mul(1_000),
            (Version::V2, "usage_usec") => counters.usage_ns = number.saturating_mul(1_000),
            _ => {}
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_parsed() {
        let v1 = "nr_periods 12\nnr_throttled 3\nthrottled_time 42000000\nnr_bursts 0\nburst_time 0\n";
        let expect = CpuCounters { usage_ns: 0, throttled_ns: 42_000_000, nr_periods: 12, nr_throttled: 3 };
        assert_eq!(parse_stat(Version::V1, v1), expect);
        let v2 = "usage_usec 7000\nuser_usec 6000\nsystem_usec 1000\nnice_usec 0\nnr_periods 12\nnr_throttled 3\n\
                  throttled_usec 42000\nnr_bursts 0\nburst_usec 0\n";
        assert_eq!(parse_stat(Version::V2, v2), CpuCounters { usage_ns: 7_000_000, ..expect });
        assert_eq!(parse_stat(Version::V2, "garbage\n"), CpuCounters::default());
    }
}
