//! Reads the CPU counters of busy envs, about once a millisecond.
//!
//! Totals per invocation are exact without this (they are read at both ends). What the samples add is *when* in an invocation
//! CPU was used and withheld, which is what lets the waterfall tell a slow network from a starved CPU. One thread serves all envs; with many
//! of them busy its interval grows, so that it never takes more than a tenth of a core.

use danki_model::EnvId;
use danki_record::{CpuSample, CpuSeries};
use danki_sys::{EnvCgroup, clock};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Samples kept per invocation; after that only its end is added. 64 Ki changes are a minute at 1 ms.
const SAMPLES_MAX: usize = 65_536;

/// Reading one env's counters takes about this long (measured: two `pread`s of small cgroup files).
const COST_PER_ENV: Duration = Duration::from_micros(10);

/// The sampling thread; ends when dropped.
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    watched: Vec<Watched>,
    stopping: bool,
}

struct Watched {
    env: EnvId,
    cgroup: EnvCgroup,
    samples: Vec<CpuSample>,
}

impl Sampler {
    /// Starts the thread. A zero interval means no samples but those at both ends.
    pub fn start(interval: Duration) -> Sampler {
        let shared = Arc::new(Shared { state: Mutex::default() });
        let thread = (!interval.is_zero()).then(|| {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("danki-cpu".to_owned())
                .spawn(move || shared.run(interval))
                .expect("a thread can be started")
        });
        Sampler { shared, thread }
    }

    /// Begins to watch an env and returns its counters now.
    pub fn watch(&self, env: EnvId, cgroup: &EnvCgroup) -> CpuSample {
        let first = read(cgroup);
        let watched = Watched { env, cgroup: cgroup.clone(), samples: vec![first] };
        self.shared.lock().watched.push(watched);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
        first
    }

    /// Ends watching; the last sample is of now.
    pub fn unwatch(&self, env: EnvId) -> CpuSeries {
        let mut state = self.shared.lock();
        let at =
            state.watched.iter().position(|w| w.env == env).expect("an env is unwatched once, after watch");
        let mut watched = state.watched.swap_remove(at);
        drop(state);
        watched.samples.push(read(&watched.cgroup));
        CpuSeries { env, samples: watched.samples }
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
        loop {
            let mut state = self.lock();
            if state.stopping {
                return;
            }
            state.watched.iter_mut().for_each(Watched::sample);
            let watched = state.watched.len();
            drop(state);
            match u32::try_from(watched) {
                Ok(0) | Err(_) => thread::park_timeout(Duration::from_secs(1)),
                Ok(n) => thread::park_timeout(interval.max(COST_PER_ENV * n * 10)),
            }
        }
    }
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

fn read(cgroup: &EnvCgroup) -> CpuSample {
    let counters = cgroup.cpu();
    CpuSample {
        at_ns: clock::monotonic_ns(),
        usage_ns: counters.usage_ns,
        throttled_ns: counters.throttled_ns,
    }
}
