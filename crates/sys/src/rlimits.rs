//! Resource limits: from names to the kernel's numbers, within what this process may have itself.

use crate::message::{Failure, Step};
use crate::plan::RlimitPlan;
use crate::process::{self, Resource};
use rustix::io::Errno;

/// `getrlimit(2)`, without `RLIMIT_`.
const NAMES: [(&str, Resource); 16] = [
    ("AS", libc::RLIMIT_AS),
    ("CORE", libc::RLIMIT_CORE),
    ("CPU", libc::RLIMIT_CPU),
    ("DATA", libc::RLIMIT_DATA),
    ("FSIZE", libc::RLIMIT_FSIZE),
    ("LOCKS", libc::RLIMIT_LOCKS),
    ("MEMLOCK", libc::RLIMIT_MEMLOCK),
    ("MSGQUEUE", libc::RLIMIT_MSGQUEUE),
    ("NICE", libc::RLIMIT_NICE),
    ("NOFILE", libc::RLIMIT_NOFILE),
    ("NPROC", libc::RLIMIT_NPROC),
    ("RSS", libc::RLIMIT_RSS),
    ("RTPRIO", libc::RLIMIT_RTPRIO),
    ("RTTIME", libc::RLIMIT_RTTIME),
    ("SIGPENDING", libc::RLIMIT_SIGPENDING),
    ("STACK", libc::RLIMIT_STACK),
];

/// `(resource, soft, hard)` of each, and what had to be lowered.
pub(crate) type Limits = (Vec<(Resource, u64, u64)>, Vec<String>);

/// Limits that may be set from here. Root may raise hard limits only with CAP_SYS_RESOURCE, which a container may lack.
pub(crate) fn within_ours(plans: &[RlimitPlan]) -> Result<Limits, Failure> {
    clamp(plans, process::hard_rlimit)
}

fn clamp(plans: &[RlimitPlan], ours: impl Fn(Resource) -> u64) -> Result<Limits, Failure> {
    let (mut limits, mut caveats) = (vec![], vec![]);
    for plan in plans {
        let known = NAMES.iter().find(|(name, _)| plan.name.eq_ignore_ascii_case(name));
        let (_, resource) =
            *known.ok_or(Errno::INVAL).step(|| format!("find the resource limit {:?}", plan.name))?;
        let hard = plan.hard.min(ours(resource));
        if hard < plan.hard && plan.hard != u64::MAX {
            caveats.push(format!("resource limit {} is {hard} instead of {}", plan.name, plan.hard));
        }
        limits.push((resource, plan.soft.min(hard), hard));
    }
    Ok((limits, caveats))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_lowered_to_ours_with_a_caveat() {
        let plan = |name: &str, soft, hard| RlimitPlan { name: name.to_owned(), soft, hard };
        let plans = [plan("nofile", 1_024, 4_096), plan("AS", u64::MAX, u64::MAX), plan("NPROC", 742, 742)];
        let (limits, caveats) = clamp(&plans, |_| 1_000).map_err(|f| f.step).unwrap();
        let nofile = libc::RLIMIT_NOFILE;
        assert_eq!(limits[0], (nofile, 1_000, 1_000));
        assert_eq!(limits[1].2, 1_000);
        assert_eq!(limits[2], (libc::RLIMIT_NPROC, 742, 742));
        assert_eq!(caveats, ["resource limit nofile is 1000 instead of 4096"]);
        assert_eq!(clamp(&[plan("NONE", 0, 0)], |_| 0).unwrap_err().step, "find the resource limit \"NONE\"");
    }
}
