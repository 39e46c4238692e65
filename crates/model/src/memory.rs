//! Memory size, and the CPU that it buys.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Length of a CPU bandwidth period in µs. AWS's pauses lie on a 20 ms lattice (pwrdrvr/lambda-throttling, 2025-03).
pub const PERIOD_US: u64 = 20_000;

/// Memory that buys exactly one vCPU (AWS Lambda Developer Guide, "Configure Lambda function memory").
pub const VCPU_MB: u32 = 1_769;

/// A function's memory size in MB (1 MB = 1,024 KB), 128 to 10,240.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct MemoryMb(u32);

/// The memory size asked for is not one that Lambda sells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("memory size {0} MB is outside 128 to 10240 MB")]
pub struct MemoryOutOfRange(pub u32);

impl TryFrom<u32> for MemoryMb {
    type Error = MemoryOutOfRange;
    fn try_from(mb: u32) -> Result<Self, MemoryOutOfRange> {
        if (128..=10_240).contains(&mb) { Ok(MemoryMb(mb)) } else { Err(MemoryOutOfRange(mb)) }
    }
}

impl From<MemoryMb> for u32 {
    fn from(m: MemoryMb) -> u32 {
        m.0
    }
}

impl fmt::Display for MemoryMb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MB", self.0)
    }
}

impl MemoryMb {
    /// The size in MB.
    pub fn mb(self) -> u32 {
        self.0
    }

    /// The size in bytes.
    pub fn bytes(self) -> u64 {
        u64::from(self.0) * 1024 * 1024
    }

    /// vCPUs bought: memory / 1,769.
    pub fn vcpus(self) -> f64 {
        f64::from(self.0) / f64::from(VCPU_MB)
    }

    /// CPU time in µs that all processes of the env together may use in each period of [`PERIOD_US`].
    pub fn quota_us(self) -> u64 {
        PERIOD_US * u64::from(self.0) / u64::from(VCPU_MB)
    }

    /// CPUs that the env sees (measured by others, `published-tables` T17): two up to 3,008 MB, then one more at
    /// 3,009, 5,308, 7,077 and 8,846 MB.
    pub fn visible_cpus(self) -> u32 {
        match self.0 {
            ..=3_008 => 2,
            3_009..=5_307 => 3,
            5_308..=7_076 => 4,
            7_077..=8_845 => 5,
            _ => 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_buys_cpu() {
        let check = |mb: u32, quota_us: u64, cpus: u32| {
            let m = MemoryMb::try_from(mb).expect("in range");
            assert_eq!((m.quota_us(), m.visible_cpus()), (quota_us, cpus), "{mb} MB");
        };
        check(128, 1_447, 2);
        check(256, 2_894, 2);
        check(512, 5_788, 2);
        check(1_024, 11_577, 2);
        check(1_769, 20_000, 2);
        check(3_009, 34_019, 3);
        check(10_240, 115_771, 6);
        assert_eq!(MemoryMb::try_from(127), Err(MemoryOutOfRange(127)));
        assert_eq!(MemoryMb::try_from(10_241), Err(MemoryOutOfRange(10_241)));
    }
}
