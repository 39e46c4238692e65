//! Reads the CPU counters of busy envs, about once a millisecond.
//!
//! Totals per invocation are exact without this (they are read at both ends). What the samples add is *when* in an invocation
//! CPU was used and withheld, which is what lets the waterfall tell a slow network from a starved CPU. One thread serves all envs; with many
//! of them busy its interval grows, so that it never takes more than a tenth of a core.

use crate::thefts::Thefts;
use danki_model::EnvId;
use danki_record::{CpuSample, CpuSeries, CpuWaitCounted, CpuWaitSample, CpuWaitSeries, Event, Recorder};
use danki_sys::{EnvCgroup, RunQueue, Stolen, behind_shell, clock};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Samples kept per invocation; after that only its end is added. 64 Ki changes are a minute at 1 ms.
const SAMPLES_MAX: usize = 65_536;

/// Reading one env's counters takes about this long (three `pread`s of small files of the kernel).
const COST_PER_ENV: Duration = Duration::from_micros(12);

/// After the last busy env the thread goes on for so long before it sleeps: to wake it would delay each of many short invocations.
const LINGER: Duration = Duration::from_millis(100);

/// What the hypervisor takes is told in steps of 10 ms, by a file that takes some 50 us to read.
const STOLEN_EVERY: Duration = Duration::from_millis(20);

/// The sampling thread; ends when dropped.
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    recorder: Recorder,
}

#[derive(Default)]
struct State {
    watched: Vec<Watched>,
    /// The first thread of each env's runtime.
    runtimes: BTreeMap<EnvId, Arc<RunQueue>>,
    /// Runtimes that are shells: who works for them is asked anew each time.
    shells: BTreeMap<EnvId, i32>,
    /// The thread sleeps until it is woken.
    asleep: bool,
    stopping: bool,
    /// What the hypervisor took of this machine; the runtime waited then, too.
    thefts: Thefts,
}

struct Watched {
    env: EnvId,
    cgroup: EnvCgroup,
    samples: Vec<CpuSample>,
    runtime: Option<Arc<RunQueue>>,
    waits: Vec<CpuWaitSample>,
}

impl Sampler {
    /// Starts the thread. A zero interval means no samples but those at both ends.
    pub fn start(interval: Duration, recorder: Recorder) -> Sampler {
        let shared = Arc::new(Shared { state: Mutex::default(), recorder });
        let thread = (!interval.is_zero()).then(|| {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("danki-cpu".to_owned())
                .spawn(move || shared.run(interval))
                .expect("a thread can be started")
        });
        Sampler { shared, thread }
    }

    /// The runtime of an env has been started, as this process; its earlier one is no more.
    pub fn runtime(&self, env: EnvId, pid: i32) {
        let runtime = RunQueue::of_process(pid).map(Arc::new);
        let is_shell = behind_shell(pid).is_some();
        let mut state = self.shared.lock();
        match is_shell {
            true => state.shells.insert(env, pid),
            false => state.shells.remove(&env),
        };
        for watched in state.watched.iter_mut().filter(|watched| watched.env == env) {
            watched.runtime.clone_from(&runtime);
        }
        match runtime {
            Some(runtime) => state.runtimes.insert(env, runtime),
            None => state.runtimes.remove(&env),
        };
    }

    /// The env is no more.
    pub fn ended(&self, env: EnvId) {
        let mut state = self.shared.lock();
        state.runtimes.remove(&env);
        state.shells.remove(&env);
    }

    /// Begins to watch an env.
    pub fn watch(&self, env: EnvId, cgroup: &EnvCgroup) {
        let first = read(cgroup);
        let mut state = self.shared.lock();
        let runtime =
            match state.shells.get(&env).copied().and_then(behind_shell).and_then(RunQueue::of_process) {
                Some(program) => Some(Arc::new(program)),
                None => state.runtimes.get(&env).cloned(),
            };
        let cgroup = cgroup.clone();
        state.thefts.begin(env, first);
        let mut watched = Watched { env, cgroup, samples: vec![first], runtime, waits: Vec::new() };
        watched.sample_wait();
        state.watched.push(watched);
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if let Some(thread) = self.thread.as_ref().filter(|_| asleep) {
            thread.thread().unpark();
        }
    }

    /// Samples an env now: what is asked about its CPU up to here gets an exact answer. Nothing where nothing is sampled in between.
    pub fn mark(&self, env: EnvId) {
        if self.thread.is_none() {
            return;
        }
        let mut state = self.shared.lock();
        if let Some(watched) = state.watched.iter_mut().find(|watched| watched.env == env) {
            watched.sample();
            watched.sample_wait();
        }
    }

    /// Ends watching and records what was seen; the last samples are of now.
    pub fn unwatch(&self, env: EnvId) {
        let mut state = self.shared.lock();
        let at =
            state.watched.iter().position(|w| w.env == env).expect("an env is unwatched once, after watch");
        let mut watched = state.watched.swap_remove(at);
        let last = read(&watched.cgroup);
        state.thefts.end(env, last);
        drop(state);
        watched.samples.push(last);
        watched.sample_wait();
        let Watched { samples, waits, .. } = watched;
        self.shared.recorder.record(Event::Cpu(CpuSeries { env, samples }));
        if waits.len() > 1 {
            let series = CpuWaitSeries { env, counted: CpuWaitCounted::Ready, samples: waits };
            self.shared.recorder.record(Event::CpuWait(series));
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().ok();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, interval: Duration) {
        let mut idle = Duration::ZERO;
        let (mut stolen, mut stolen_due_ns) = (Stolen::watch(), 0);
        loop {
            let mut state = self.lock();
            if state.stopping {
                return;
            }
            // What began just now has its first sample.
            let begun_by_ns = clock::monotonic_ns().saturating_sub(nanos(interval / 2));
            for watched in state.watched.iter_mut().filter(|w| w.samples[0].at_ns < begun_by_ns) {
                watched.sample();
                watched.sample_wait();
            }
            if let Some(stolen) = stolen.as_mut().filter(|_| clock::monotonic_ns() >= stolen_due_ns) {
                let at_ns = clock::monotonic_ns();
                let State { thefts, watched, .. } = &mut *state;
                let latest =
                    |env| watched.iter().find(|w| w.env == env).and_then(|w| w.samples.last().copied());
                let lost = thefts.told((stolen.total_ns(), clock::process_cpu_ns(), at_ns), latest);
                lost.into_iter().for_each(|series| self.recorder.record(Event::CpuWait(series)));
                stolen_due_ns = at_ns + nanos(STOLEN_EVERY);
            }
            let busy = u32::try_from(state.watched.len()).unwrap_or(u32::MAX);
            idle = if busy == 0 { idle + interval } else { Duration::ZERO };
            state.asleep = idle > LINGER;
            let pause =
                if state.asleep { Duration::from_secs(1) } else { interval.max(COST_PER_ENV * busy * 10) };
            drop(state);
            thread::park_timeout(pause);
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Watched {
    /// Adds a sample if a counter moved. The last unchanged sample before a change is kept: it says until when nothing happened.
    fn sample(&mut self) {
        if self.samples.len() >= SAMPLES_MAX {
            return;
        }
        let now = read(&self.cgroup);
        let same = |a: &CpuSample| a.usage_ns == now.usage_ns && a.throttled_ns == now.throttled_ns;
        if let [.., before, last] = self.samples.as_mut_slice()
            && same(before)
            && same(last)
        {
            last.at_ns = now.at_ns;
            return;
        }
        self.samples.push(now);
    }
}

impl Watched {
    /// As [`Watched::sample`], for the runtime's wait. A runtime started anew starts a series within the series, from 0.
    fn sample_wait(&mut self) {
        let Some(waited_ns) = self.runtime.as_ref().and_then(|runtime| runtime.waited_ns()) else { return };
        let now = CpuWaitSample { at_ns: clock::monotonic_ns(), waited_ns };
        match self.waits.as_mut_slice() {
            [.., before, last] if before.waited_ns == now.waited_ns && last.waited_ns == now.waited_ns => {
                last.at_ns = now.at_ns;
            }
            so_far if so_far.len() < SAMPLES_MAX => self.waits.push(now),
            _ => {}
        }
    }
}

fn read(cgroup: &EnvCgroup) -> CpuSample {
    let counters = cgroup.cpu();
    CpuSample {
        at_ns: clock::monotonic_ns(),
        usage_ns: counters.usage_ns,
        throttled_ns: counters.throttled_ns,
    }
}
