//! Sentences for what a machine could not do as planned.

use crate::cgroup::{Controller, EnvCgroup};
use crate::plan::CgroupPlan;

pub(crate) fn of_disk(size_mb: u32, why: &str) -> String {
    format!("/tmp of {size_mb} MB is memory of the function, not a disk: {why}")
}

pub(crate) fn of_refill(why: &str) -> String {
    format!(
        "when the CPU quota is refilled is as the kernel drew it, not on a tick as on Lambda, so bursts between two pauses \
         may have another length: {why}"
    )
}

pub(crate) fn of_cgroups(cgroup: &EnvCgroup, plan: &CgroupPlan) -> Vec<String> {
    let missing = |controller| cgroup.version(controller).is_none();
    let mut caveats = vec![];
    if plan.cpu_quota_us.is_some() && missing(Controller::Cpu) {
        caveats.push("the CPU share is not limited: no cpu cgroup".to_owned());
    }
    if plan.memory_bytes.is_some() && missing(Controller::Memory) {
        caveats.push("memory is not limited and Max Memory Used is unknown: no memory cgroup".to_owned());
    }
    if plan.pids_max.is_some() && missing(Controller::Pids) {
        caveats.push("the number of processes is not limited: no pids cgroup".to_owned());
    }
    if missing(Controller::Freezer) {
        caveats.push("idle envs are not frozen: no cgroup freezer".to_owned());
    }
    caveats
}
