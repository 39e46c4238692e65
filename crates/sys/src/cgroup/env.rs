//! The cgroups of one env: limits, freezer, counters.

use super::counters::{self, CpuCounters, CpuFiles};
use super::refill::{self, Clockwork};
use super::remove;
use super::tree::{Branch, distinct};
use super::words::{self, Controller, QUOTA_MIN_US, Setting, Version};
use crate::error::Trying;
use crate::plan::{CgroupPlan, Refill};
use crate::priority::Brief;
use crate::{Error, caveat, clock, wait};
use rustix::event::{EventfdFlags, eventfd};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Freezing takes 0.1 to 0.5 ms (measured); a process in an uninterruptible wait can hold it up.
const FREEZE_DEADLINE: Duration = Duration::from_secs(1);

/// Limits, freezer and counters of one env. Cheap to clone, usable from any thread. What the machine has no controller for
/// counts as 0 and refuses to be set.
#[derive(Clone, Debug)]
pub struct EnvCgroup {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    branches: Vec<Branch>,
    cpu: CpuFiles,
    freezer: Option<Freezer>,
    memory: MemoryFiles,
    /// Version 1: counts the times that memory ran out.
    oom_alarm: Option<OwnedFd>,
    /// Writing the period again would restart it.
    period_us: AtomicU64,
}

#[derive(Debug)]
struct Freezer {
    version: Version,
    set: File,
    state: File,
}

/// What is read after every invocation stays open.
#[derive(Debug, Default)]
struct MemoryFiles {
    peak: Option<File>,
    oom: Option<File>,
}

impl MemoryFiles {
    fn open(version: Version, dir: &Path) -> MemoryFiles {
        let open = |file| File::open(dir.join(file)).ok();
        match version {
            Version::V1 => {
                MemoryFiles { peak: open("memory.max_usage_in_bytes"), oom: open("memory.oom_control") }
            }
            Version::V2 => MemoryFiles {
                peak: open("memory.peak").or_else(|| open("memory.current")),
                oom: open("memory.events"),
            },
        }
    }
}

/// Registers an eventfd with the kernel; it lives as long as the eventfd does.
fn oom_alarm(dir: &Path) -> io::Result<OwnedFd> {
    let alarm = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let control = File::open(dir.join("memory.oom_control"))?;
    fs::write(dir.join("cgroup.event_control"), format!("{} {}", alarm.as_raw_fd(), control.as_raw_fd()))?;
    Ok(alarm)
}

impl EnvCgroup {
    /// Makes the directories and sets every limit but that of CPU time.
    pub(super) fn create(branches: Vec<Branch>, plan: &CgroupPlan) -> Result<EnvCgroup, Error> {
        for dir in distinct(&branches) {
            make(&dir).map_err(|source| Error::System {
                action: format!("create cgroup {}", dir.display()),
                source,
            })?;
        }
        let find =
            |wanted| branches.iter().find(|b| b.controller == wanted).map(|b| (b.version, b.dir.clone()));
        let cpu = CpuFiles::open(find);
        let freezer = find(Controller::Freezer).and_then(|(version, dir)| Freezer::open(version, dir).ok());
        let memory =
            find(Controller::Memory).map_or_else(MemoryFiles::default, |(v, dir)| MemoryFiles::open(v, &dir));
        let oom_alarm = match find(Controller::Memory) {
            Some((Version::V1, dir)) => oom_alarm(&dir).ok(),
            _ => None,
        };
        let period_us = AtomicU64::new(0);
        let env =
            EnvCgroup { inner: Arc::new(Inner { branches, cpu, freezer, memory, oom_alarm, period_us }) };
        match env.limit(plan) {
            Ok(()) => Ok(env),
            Err(error) => {
                env.remove();
                Err(error)
            }
        }
    }

    /// Controllers that are missing do not fail here: the sandbox names them in its caveats. The CPU quota is set by [`Self::limit_cpu`].
    fn limit(&self, plan: &CgroupPlan) -> Result<(), Error> {
        let memory = plan.memory_bytes.map(|bytes| (Controller::Memory, Setting::Memory { bytes }));
        let pids = plan.pids_max.map(|max| (Controller::Pids, Setting::Pids { max }));
        for (controller, setting) in memory.into_iter().chain(pids) {
            if self.version(controller).is_some() {
                self.set(controller, setting)?;
            }
        }
        Ok(())
    }

    /// Sets the CPU quota of an env in which nothing runs yet. Returns a caveat if its refill is not where the plan wants it.
    pub(crate) fn limit_cpu(
        &self,
        plan: &CgroupPlan,
        clockwork: &Clockwork,
    ) -> Result<Option<String>, Error> {
        if plan.cpu_quota_us.is_none() || self.version(Controller::Cpu).is_none() {
            return Ok(None);
        }
        let why_not = match plan.cpu_refill {
            Refill::Drawn => None,
            Refill::AtTick => self.align_refill(plan.cpu_period_us, clockwork).err(),
        };
        self.set_cpu_quota(plan.cpu_quota_us, plan.cpu_period_us)?;
        Ok(why_not.map(|why| caveat::of_refill(&why)))
    }

    fn align_refill(&self, period_us: u64, clockwork: &Clockwork) -> Result<(), String> {
        let tick = clockwork.tick.clone()?;
        if !(period_us * 1_000).is_multiple_of(tick.length_ns) {
            return Err(format!(
                "a period of {period_us} µs is no multiple of a tick of {} ns",
                tick.length_ns
            ));
        }
        let set_period = |period_us| {
            self.set(Controller::Cpu, Setting::CpuPeriod { period_us })?;
            self.set(Controller::Cpu, Setting::CpuQuota { quota_us: Some(QUOTA_MIN_US), period_us })
        };
        let hands = refill::Hands {
            now: &clock::monotonic_ns,
            firings: &|| self.inner.cpu.periods(),
            set_period: &set_period,
            nap: &|ns| wait::nap(Duration::from_nanos(ns)),
        };
        // One after the other: each needs a CPU to itself for a ms.
        let _alone = clockwork.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let _brief = Brief::raise();
        match refill::align(&hands, tick, period_us) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the machine was too busy to see the quota's timer".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// CPU time per period for all processes together; `None` lifts the limit.
    ///
    /// # Errors
    /// [`Error::QuotaTooSmall`] below 1,000 µs; [`Error::Unavailable`] without the controller.
    pub fn set_cpu_quota(&self, quota_us: Option<u64>, period_us: u64) -> Result<(), Error> {
        if let Some(quota_us) = quota_us.filter(|us| *us < QUOTA_MIN_US) {
            return Err(Error::QuotaTooSmall { quota_us });
        }
        if self.inner.period_us.load(Ordering::Relaxed) != period_us {
            self.set(Controller::Cpu, Setting::CpuPeriod { period_us })?;
            self.inner.period_us.store(period_us, Ordering::Relaxed);
        }
        self.set(Controller::Cpu, Setting::CpuQuota { quota_us, period_us })
    }

    /// Pauses every process of the env; returns once all stand still, after 1 s at most.
    ///
    /// # Errors
    /// [`Error::NotFrozen`] at the deadline (they are thawed again); [`Error::Unavailable`] without a freezer.
    pub fn freeze(&self) -> Result<(), Error> {
        let freezer = self.freezer()?;
        freezer.write(true)?;
        if wait::until(FREEZE_DEADLINE, || freezer.is_frozen()) {
            return Ok(());
        }
        freezer.write(false)?;
        Err(Error::NotFrozen(FREEZE_DEADLINE))
    }

    /// Lets the processes go on. Nothing happens to an env that is not frozen.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a freezer; what the kernel says.
    pub fn thaw(&self) -> Result<(), Error> {
        self.freezer()?.write(false)
    }

    /// CPU time so far. Costs two `pread`s and no allocation.
    pub fn cpu(&self) -> CpuCounters {
        self.inner.cpu.read()
    }

    /// Largest memory use so far in bytes (page cache included). Version 2 before Linux 5.19 keeps no peak: what is in use now.
    pub fn memory_peak_bytes(&self) -> u64 {
        let mut buffer = [0; counters::BUFFER];
        let peak = self.inner.memory.peak.as_ref();
        peak.and_then(|file| counters::text(file, &mut buffer).trim_end().parse().ok()).unwrap_or(0)
    }

    /// Memory in use now that cannot be given back, in bytes: what processes have written to, and shared memory.
    pub fn memory_anonymous_bytes(&self) -> u64 {
        let text = self.read(Controller::Memory, "memory.stat", "memory.stat").unwrap_or_default();
        let keys = ["total_rss", "total_shmem", "anon", "shmem"];
        let keys =
            if self.version(Controller::Memory) == Some(Version::V1) { &keys[..2] } else { &keys[2..] };
        keys.iter().filter_map(|key| words::value(&text, key)).sum()
    }

    /// Processes of this env that the kernel has killed because its memory was used up.
    pub fn oom_kills(&self) -> u64 {
        let mut buffer = [0; counters::BUFFER];
        let oom = self.inner.memory.oom.as_ref();
        oom.and_then(|file| words::value(counters::text(file, &mut buffer), "oom_kill")).unwrap_or(0)
    }

    /// How often memory has run out since this was asked last, as the kernel announces it (version 1, by eventfd): some milliseconds
    /// before the process that is killed for it is gone, and before [`Self::oom_kills`] counts it. Always 0 with version 2.
    pub fn oom_alarms(&self) -> u64 {
        let mut count = [0; 8];
        let alarm = self.inner.oom_alarm.as_ref();
        let read = alarm.and_then(|alarm| rustix::io::read(alarm, &mut count).ok());
        if read == Some(count.len()) { u64::from_ne_bytes(count) } else { 0 }
    }

    /// Processes in the env (threads not counted).
    pub fn process_count(&self) -> usize {
        let dir = self.inner.branches.first().map(|b| b.dir.join("cgroup.procs"));
        dir.and_then(|file| fs::read_to_string(file).ok()).map_or(0, |text| text.lines().count())
    }

    /// Is there a controller for this, and of which version?
    pub fn version(&self, controller: Controller) -> Option<Version> {
        self.inner.branches.iter().find(|b| b.controller == controller).map(|b| b.version)
    }

    /// Version 1: files to write `0` to for a process of one thread that wants to be in the env. `tasks` moves the writing thread
    /// without the kernel's global lock, for which `cgroup.procs` waits 10 to 20 ms (an RCU grace period).
    pub(crate) fn doors(&self) -> Result<Vec<OwnedFd>, Error> {
        let v1: Vec<Branch> =
            self.inner.branches.iter().filter(|b| b.version == Version::V1).cloned().collect();
        let open = |dir: PathBuf| {
            let file = dir.join("tasks");
            let opened = OpenOptions::new().write(true).open(&file);
            opened.map(OwnedFd::from).trying(|| format!("open {}", file.display()))
        };
        distinct(&v1).into_iter().map(open).collect()
    }

    /// Version 2: the directory in which processes are born.
    pub(crate) fn unified(&self) -> Result<Option<OwnedFd>, Error> {
        let Some(branch) = self.inner.branches.iter().find(|b| b.version == Version::V2) else {
            return Ok(None);
        };
        let dir = File::open(&branch.dir).trying(|| format!("open {}", branch.dir.display()))?;
        Ok(Some(OwnedFd::from(dir)))
    }

    /// Removes the directories; what is still in them is killed.
    pub(crate) fn remove(&self) -> Vec<PathBuf> {
        remove::dirs(&distinct(&self.inner.branches))
    }

    fn freezer(&self) -> Result<&Freezer, Error> {
        self.inner.freezer.as_ref().ok_or(Error::Unavailable { what: "cgroup freezer" })
    }

    fn set(&self, controller: Controller, setting: Setting) -> Result<(), Error> {
        let what = match controller {
            Controller::Cpu | Controller::Cpuacct => "cpu cgroup",
            Controller::Memory => "memory cgroup",
            Controller::Freezer => "cgroup freezer",
            Controller::Pids => "pids cgroup",
        };
        let version = self.version(controller).ok_or(Error::Unavailable { what })?;
        for write in words::writes(version, setting) {
            let file = self.path(controller, write.file, write.file).expect("the controller was just found");
            match OpenOptions::new()
                .write(true)
                .open(&file)
                .and_then(|mut f| f.write_all(write.text.as_bytes()))
            {
                Err(source) if !write.optional => {
                    return Err(Error::Cgroup { file, text: write.text, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read(&self, controller: Controller, v1: &str, v2: &str) -> Option<String> {
        fs::read_to_string(self.path(controller, v1, v2)?).ok()
    }

    fn path(&self, controller: Controller, v1: &str, v2: &str) -> Option<PathBuf> {
        let branch = self.inner.branches.iter().find(|b| b.controller == controller)?;
        Some(branch.dir.join(if branch.version == Version::V1 { v1 } else { v2 }))
    }
}

fn make(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

impl Freezer {
    fn open(version: Version, dir: PathBuf) -> io::Result<Freezer> {
        let (set, state) = match version {
            Version::V1 => ("freezer.state", "freezer.state"),
            Version::V2 => ("cgroup.freeze", "cgroup.events"),
        };
        let set = OpenOptions::new().write(true).open(dir.join(set))?;
        Ok(Freezer { version, set, state: File::open(dir.join(state))? })
    }

    fn write(&self, frozen: bool) -> Result<(), Error> {
        for write in words::writes(self.version, Setting::Frozen(frozen)) {
            self.set.write_all_at(write.text.as_bytes(), 0).map_err(|source| Error::Cgroup {
                file: PathBuf::from(write.file),
                text: write.text,
                source,
            })?;
        }
        Ok(())
    }

    fn is_frozen(&self) -> bool {
        let mut buffer = [0; 256];
        let length = self.state.read_at(&mut buffer, 0).unwrap_or(0);
        words::is_frozen(self.version, std::str::from_utf8(&buffer[..length]).unwrap_or(""))
    }
}
