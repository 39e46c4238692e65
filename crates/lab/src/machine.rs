//! The machine under a run, and how busy it was.

use danki_record::Machine;
use std::fs;

/// What the machine is.
pub fn machine() -> Machine {
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = line("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or_default();
    Machine {
        kernel: line("/proc/sys/kernel/osrelease").trim().to_owned(),
        cpus: cpus(),
        cpu_model: model.trim_start_matches([' ', '\t', ':']).to_owned(),
    }
}

/// CPUs that danki may use.
pub fn cpus() -> u32 {
    std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok()).unwrap_or(1)
}

/// The kernel's account of all CPUs since boot, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    idle: u64,
    stolen: u64,
    all: u64,
}

/// A share above which others were starved: a run needs air for the link's thread and for interrupts.
const BUSY: f64 = 0.95;
/// A share of time taken by the hypervisor that shows in 20 ms periods.
const STOLEN: f64 = 0.02;

impl CpuTimes {
    /// Now.
    pub fn now() -> CpuTimes {
        CpuTimes::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// The first line of `/proc/stat`: user nice system idle iowait irq softirq steal; guest times are in user already.
    fn parse(stat: &str) -> CpuTimes {
        let line = stat.lines().next().and_then(|l| l.strip_prefix("cpu ")).unwrap_or_default();
        let fields: Vec<u64> = line.split_whitespace().take(8).filter_map(|f| f.parse().ok()).collect();
        let at = |n: usize| fields.get(n).copied().unwrap_or(0);
        CpuTimes { idle: at(3) + at(4), stolen: at(7), all: fields.iter().sum() }
    }

    /// What to say about the time since, if anything.
    pub fn caveat_since(self, since: CpuTimes) -> Option<String> {
        let all = self.all.saturating_sub(since.all);
        if all == 0 {
            return None;
        }
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / all as f64;
        let (busy, stolen) = (1.0 - share(self.idle, since.idle), share(self.stolen, since.stolen));
        if busy > BUSY {
            return Some(format!(
                "saturated: this machine's CPUs were {:.0} % busy during the run, so envs may have got less CPU than their quota",
                busy * 100.0
            ));
        }
        (stolen > STOLEN).then(|| {
            format!(
                "saturated: the hypervisor took {:.1} % of this machine's CPU time during the run",
                stolen * 100.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_named() {
        let before = CpuTimes::parse("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3\n");
        let check = |stat: &str, expect: Option<&str>| {
            let said = CpuTimes::parse(stat).caveat_since(before);
            assert_eq!(said.is_some(), expect.is_some(), "{said:?}");
            assert!(said.unwrap_or_default().contains(expect.unwrap_or_default()));
        };
        check("cpu  500 0 200 1300 0 0 0 0 0 0", None);
        check("cpu  1000 0 190 810 0 0 0 0 0 0", Some("99 % busy"));
        check("cpu  400 0 200 1300 0 0 0 100 0 0", Some("hypervisor"));
        check("", None);
        assert!(cpus() >= 1);
    }
}
