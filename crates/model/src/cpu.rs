//! How much CPU time an env gets when the host's cores are not as fast as Lambda's.
//!
//! `host`: Lambda's quota as it is; CPU-bound parts are then off by the measured factor, which is reported.
//! `scaled`: the quota is divided by the factor, where that is sound. It is not sound where the kernel refuses the
//! quota, nor where Lambda gives a whole vCPU: a quota below the period makes 20 ms steps that Lambda does not have
//! there. Such a combination is refused with words, never faked.

use crate::{MemoryMb, PERIOD_US};
use serde::{Deserialize, Serialize};

/// Smallest CPU bandwidth quota that Linux takes, in µs (`min_cfs_quota_period`, kernel/sched/core.c).
pub const MIN_QUOTA_US: u64 = 1_000;

/// The user's word for a [`CpuModel`], before the host's speed is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuChoice {
    /// Lambda's quota as it is.
    #[default]
    Host,
    /// Lambda's quota, divided by the speed of the host's core.
    Scaled,
}

impl CpuChoice {
    /// With the speed of the host, if that was measured.
    pub fn with(self, factor: Option<f64>) -> Result<CpuModel, ScaleError> {
        match self {
            CpuChoice::Host => Ok(CpuModel::Host),
            CpuChoice::Scaled => Ok(CpuModel::Scaled { factor: factor.ok_or(ScaleError::Unknown)? }),
        }
    }
}

/// Whether quotas follow Lambda's numbers or the host's speed.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum CpuModel {
    /// Lambda's quota as it is.
    #[default]
    Host,
    /// Divided by how many times faster than a Lambda vCPU one core of the host is.
    Scaled {
        /// From `danki calibrate`; above 1 when the host is faster.
        factor: f64,
    },
}

/// A memory size whose CPU share cannot be scaled soundly on this host.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ScaleError {
    /// The host's speed was never measured.
    #[error(
        "--cpu-model scaled needs the speed of this machine's core\nhint: measure it with `danki calibrate`"
    )]
    Unknown,
    /// The factor is no positive number.
    #[error("cpu factor {0} is not a positive number\nhint: measure it with `danki calibrate`")]
    Factor(f64),
    /// The kernel would refuse the quota.
    #[error(
        "{memory} scaled by {factor:.2} needs a CPU quota of {quota_us} µs, below the kernel's minimum of 1000 µs\n\
         hint: use a larger memory size, or --cpu-model host"
    )]
    TooSmall {
        /// Memory size asked for.
        memory: MemoryMb,
        /// Speed of the host.
        factor: f64,
        /// The quota that would be needed.
        quota_us: u64,
    },
    /// Lambda gives a full vCPU here, or the scaled share would be one.
    #[error(
        "{memory} scaled by {factor:.2}: throttling cannot stand in for core speed at a full vCPU \
         (quota {quota_us} µs of 20000 µs)\nhint: use --cpu-model host for sizes of a full vCPU"
    )]
    FullCpu {
        /// Memory size asked for.
        memory: MemoryMb,
        /// Speed of the host.
        factor: f64,
        /// The quota that would result.
        quota_us: u64,
    },
}

impl CpuModel {
    /// CPU time in µs per [`PERIOD_US`] for an env of this size.
    pub fn quota_us(self, memory: MemoryMb) -> Result<u64, ScaleError> {
        match self {
            CpuModel::Host => Ok(memory.quota_us()),
            CpuModel::Scaled { factor } => scaled_quota_us(memory, factor),
        }
    }

    /// What a Lambda vCPU would take for work that took so much of the host's CPU, as far as this model says.
    pub fn lambda_ns(self, host_ns: u64) -> u64 {
        match self {
            CpuModel::Host => host_ns,
            CpuModel::Scaled { factor } => (host_ns as f64 * factor).round() as u64,
        }
    }
}

/// Lambda's quota divided by the host's speed, or why that would not be sound.
pub fn scaled_quota_us(memory: MemoryMb, factor: f64) -> Result<u64, ScaleError> {
    if !(factor.is_finite() && factor > 0.0) {
        return Err(ScaleError::Factor(factor));
    }
    let quota_us = (memory.quota_us() as f64 / factor).round() as u64;
    if memory.quota_us() >= PERIOD_US || quota_us >= PERIOD_US {
        return Err(ScaleError::FullCpu { memory, factor, quota_us });
    }
    if quota_us < MIN_QUOTA_US {
        return Err(ScaleError::TooSmall { memory, factor, quota_us });
    }
    Ok(quota_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_scale_where_that_is_sound() {
        let mb = |n| MemoryMb::try_from(n).expect("in range");
        let scaled = |n, factor| CpuModel::Scaled { factor }.quota_us(mb(n));
        assert_eq!(CpuModel::Host.quota_us(mb(1_769)), Ok(20_000));
        assert_eq!(scaled(512, 2.0), Ok(2_894));
        assert_eq!(scaled(128, 0.5), Ok(2_894));
        assert_eq!(scaled(128, 1.447), Ok(1_000));
        assert!(matches!(scaled(128, 1.6), Err(ScaleError::TooSmall { quota_us: 904, .. })));
        assert!(matches!(scaled(1_769, 1.5), Err(ScaleError::FullCpu { .. })));
        assert!(matches!(scaled(1_024, 0.5), Err(ScaleError::FullCpu { .. })));
        assert!(matches!(scaled(512, 0.0), Err(ScaleError::Factor(_))));
        assert!(scaled(512, f64::NAN).is_err());
    }

    #[test]
    fn a_choice_needs_the_hosts_speed_if_it_scales() {
        assert_eq!(CpuChoice::Host.with(None), Ok(CpuModel::Host));
        assert_eq!(CpuChoice::Scaled.with(Some(0.8)), Ok(CpuModel::Scaled { factor: 0.8 }));
        assert_eq!(CpuChoice::Scaled.with(None), Err(ScaleError::Unknown));
        assert_eq!(CpuModel::Scaled { factor: 0.8 }.lambda_ns(5_000), 4_000);
        assert_eq!(CpuModel::Host.lambda_ns(5_000), 5_000);
    }
}
