//! The threads that talk to one service: as many as there may be connections, started when there is something to do, ended when there
//! has been nothing for a while. Each owns its connection, so nothing about it is shared.

use crate::clock::{Now, now};
use crate::run::{Bell, Event};
use crate::shape::Body;
use crate::upstream::{Failure, Line, Upstream, fetch_batch};
use crate::wanted::{Service, Wanted};
use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The end of one fetch.
#[derive(Debug)]
pub struct Done {
    /// What was fetched.
    pub wanted: Wanted,
    /// What it brought.
    pub outcome: Result<Body, Failure>,
    /// When it began.
    pub began: Now,
}

/// As long as a kept connection is worth keeping.
const IDLE: Duration = Duration::from_secs(50);

/// The threads of one service.
pub struct Pool {
    shared: Arc<Shared>,
    most: usize,
}

struct Shared {
    service: Service,
    upstream: Arc<Upstream>,
    patience: Duration,
    queue: Mutex<Queue>,
    wake: Condvar,
    done: Sender<Event>,
    bell: Bell,
}

/// Bounded by the desk: one entry per thing that somebody waits for.
#[derive(Default)]
struct Queue {
    jobs: VecDeque<Vec<Wanted>>,
    idle: usize,
    threads: usize,
}

impl Pool {
    /// No threads yet.
    pub fn new(
        service: Service,
        upstream: Arc<Upstream>,
        patience: Duration,
        most: usize,
        done: Sender<Event>,
        bell: Bell,
    ) -> Pool {
        let (queue, wake) = (Mutex::default(), Condvar::new());
        Pool { shared: Arc::new(Shared { service, upstream, patience, queue, wake, done, bell }), most }
    }

    /// Has a batch fetched; each of its values is reported once.
    pub fn submit(&self, batch: Vec<Wanted>) {
        let mut queue = self.shared.lock();
        queue.jobs.push_back(batch);
        if queue.idle >= queue.jobs.len() || queue.threads >= self.most {
            drop(queue);
            self.shared.wake.notify_one();
            return;
        }
        let shared = Arc::clone(&self.shared);
        match thread::Builder::new().name("upstream".to_owned()).spawn(move || shared.work()) {
            Ok(_) => queue.threads += 1,
            // If the machine has no more threads, those that there are do it; without any, nobody will.
            Err(error) if queue.threads == 0 => {
                let jobs = std::mem::take(&mut queue.jobs);
                drop(queue);
                for wanted in jobs.into_iter().flatten() {
                    self.shared.report(wanted, Err(Failure::Connect(format!("no thread: {error}"))), now());
                }
            }
            Err(_) => {}
        }
    }
}

impl Shared {
    fn work(&self) {
        let endpoint = match self.service {
            Service::SecretsManager => &self.upstream.secrets,
            Service::ParameterStore => &self.upstream.parameters,
        };
        let mut line = Line::new(endpoint.clone());
        while let Some(batch) = self.next() {
            let began = now();
            fetch_batch(&self.upstream, &mut line, &batch, self.patience, |wanted, outcome| {
                self.report(wanted.clone(), outcome, began);
            });
        }
    }

    /// The next job, or none if there has been none for a while; then the thread is already counted out.
    fn next(&self) -> Option<Vec<Wanted>> {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            queue.idle += 1;
            let (again, waited) = self.wake.wait_timeout(queue, IDLE).unwrap_or_else(PoisonError::into_inner);
            queue = again;
            queue.idle -= 1;
            if waited.timed_out() && queue.jobs.is_empty() {
                queue.threads -= 1;
                return None;
            }
        }
    }

    fn report(&self, wanted: Wanted, outcome: Result<Body, Failure>, began: Now) {
        // Nobody listens only when the process is about to end.
        let _ = self.done.send(Event::Done(Done { wanted, outcome, began }));
        self.bell.ring();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
