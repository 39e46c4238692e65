//! What danki wants of a cgroup → which file gets which text, for version 1 and 2. Pure: version 2 cannot be tried on every machine.

/// The two interfaces of the kernel. A machine may offer some controllers here and some there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// One hierarchy per controller.
    V1,
    /// One hierarchy.
    V2,
}

/// What danki uses cgroups for. `Cpuacct` is part of `Cpu` in version 2, `Freezer` of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Controller {
    /// Quota and throttling.
    Cpu,
    /// CPU time used.
    Cpuacct,
    /// Limit, peak and out-of-memory kills.
    Memory,
    /// Freeze and thaw.
    Freezer,
    /// Number of processes and threads.
    Pids,
}

impl Controller {
    pub(crate) const ALL: [Controller; 5] =
        [Controller::Cpu, Controller::Cpuacct, Controller::Memory, Controller::Freezer, Controller::Pids];

    /// Its name in the kernel's version 1 tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Controller::Cpu => "cpu",
            Controller::Cpuacct => "cpuacct",
            Controller::Memory => "memory",
            Controller::Freezer => "freezer",
            Controller::Pids => "pids",
        }
    }
}

/// Something to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    CpuPeriod { period_us: u64 },
    CpuQuota { quota_us: Option<u64>, period_us: u64 },
    Memory { bytes: u64 },
    Pids { max: u32 },
    Frozen(bool),
}

/// One file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub controller: Controller,
    pub file: &'static str,
    pub text: String,
    /// The file exists only on some machines, or its absence does no harm.
    pub optional: bool,
}

/// The smallest quota in µs that the kernel accepts (`min_cfs_quota_period`, kernel/sched).
pub(crate) const QUOTA_MIN_US: u64 = 1_000;

pub(crate) fn writes(version: Version, setting: Setting) -> Vec<Write> {
    use Controller::{Cpu, Freezer, Memory, Pids};
    let must = |controller, file, text: String| Write { controller, file, text, optional: false };
    let may = |controller, file, text: String| Write { controller, file, text, optional: true };
    match (version, setting) {
        (Version::V1, Setting::CpuPeriod { period_us }) => {
            vec![must(Cpu, "cpu.cfs_period_us", period_us.to_string())]
        }
        (Version::V1, Setting::CpuQuota { quota_us, .. }) => {
            vec![must(Cpu, "cpu.cfs_quota_us", quota_us.map_or("-1".to_owned(), |us| us.to_string()))]
        }
        // Version 2 sets both at once.
        (Version::V2, Setting::CpuPeriod { .. }) => vec![],
        (Version::V2, Setting::CpuQuota { quota_us, period_us }) => {
            let quota = quota_us.map_or("max".to_owned(), |us| us.to_string());
            vec![must(Cpu, "cpu.max", format!("{quota} {period_us}"))]
        }
        (Version::V1, Setting::Memory { bytes }) => vec![
            must(Memory, "memory.limit_in_bytes", bytes.to_string()),
            may(Memory, "memory.memsw.limit_in_bytes", bytes.to_string()),
            may(Memory, "memory.swappiness", "0".to_owned()),
        ],
        (Version::V2, Setting::Memory { bytes }) => vec![
            must(Memory, "memory.max", bytes.to_string()),
            may(Memory, "memory.swap.max", "0".to_owned()),
        ],
        (_, Setting::Pids { max }) => vec![must(Pids, "pids.max", max.to_string())],
        (Version::V1, Setting::Frozen(frozen)) => {
            vec![must(Freezer, "freezer.state", if frozen { "FROZEN" } else { "THAWED" }.to_owned())]
        }
        (Version::V2, Setting::Frozen(frozen)) => {
            vec![must(Freezer, "cgroup.freeze", if frozen { "1" } else { "0" }.to_owned())]
        }
    }
}

/// Does the text of `freezer.state` or `cgroup.events` say that everything stands still?
pub(crate) fn is_frozen(version: Version, text: &str) -> bool {
    match version {
        Version::V1 => text.trim_end() == "FROZEN",
        Version::V2 => value(text, "frozen") == Some(1),
    }
}

/// The number after `key` in a file of `key value` lines.
pub(crate) fn value(text: &str, key: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| if words.next() == Some(key) { words.next()?.parse().ok() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: Version, setting: Setting, expect: &[(&str, &str, bool)]) {
        let got = writes(version, setting);
        let got: Vec<_> = got.iter().map(|w| (w.file, w.text.as_str(), w.optional)).collect();
        assert_eq!(got, expect, "{version:?} {setting:?}");
    }

    #[test]
    fn files_and_texts() {
        use Setting::*;
        use Version::*;
        let quota = CpuQuota { quota_us: Some(1_447), period_us: 20_000 };
        let free = CpuQuota { quota_us: None, period_us: 20_000 };
        check(V1, CpuPeriod { period_us: 20_000 }, &[("cpu.cfs_period_us", "20000", false)]);
        check(V2, CpuPeriod { period_us: 20_000 }, &[]);
        check(V1, quota, &[("cpu.cfs_quota_us", "1447", false)]);
        check(V2, quota, &[("cpu.max", "1447 20000", false)]);
        check(V1, free, &[("cpu.cfs_quota_us", "-1", false)]);
        check(V2, free, &[("cpu.max", "max 20000", false)]);
        check(
            V1,
            Memory { bytes: 134_217_728 },
            &[
                ("memory.limit_in_bytes", "134217728", false),
                ("memory.memsw.limit_in_bytes", "134217728", true),
                ("memory.swappiness", "0", true),
            ],
        );
        check(
            V2,
            Memory { bytes: 134_217_728 },
            &[("memory.max", "134217728", false), ("memory.swap.max", "0", true)],
        );
        check(V1, Pids { max: 1024 }, &[("pids.max", "1024", false)]);
        check(V2, Pids { max: 1024 }, &[("pids.max", "1024", false)]);
        check(V1, Frozen(true), &[("freezer.state", "FROZEN", false)]);
        check(V1, Frozen(false), &[("freezer.state", "THAWED", false)]);
        check(V2, Frozen(true), &[("cgroup.freeze", "1", false)]);
        check(V2, Frozen(false), &[("cgroup.freeze", "0", false)]);
    }

    #[test]
    fn states_and_values() {
        assert!(is_frozen(Version::V1, "FROZEN\n"));
        assert!(!is_frozen(Version::V1, "FREEZING\n"));
        assert!(is_frozen(Version::V2, "populated 1\nfrozen 1\n"));
        assert!(!is_frozen(Version::V2, "populated 1\nfrozen 0\n"));
        assert_eq!(value("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill"), Some(3));
        assert_eq!(value("low 0\noom 1\noom_kill 2\noom_group_kill 0\n", "oom_kill"), Some(2));
        assert_eq!(value("nr_periods 5\n", "missing"), None);
        assert_eq!(value("usage_usec lots\n", "usage_usec"), None);
    }
}
