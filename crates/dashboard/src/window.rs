//! The facts that are kept: the newest, up to a bound.

use crate::view::LiveInvocation;
use danki_model::EnvId;
use danki_record::{EnvEvent, EnvWhat, Event, Invocation, Start, Status};
use std::collections::{BTreeMap, VecDeque};

/// Sum of weights of the facts that are kept; one is about 200 bytes.
const WEIGHT: usize = 60_000;
/// Invocations whose parts a page shows.
pub(crate) const SHOWN: usize = 300;
/// Rows of ended invocations that a new browser gets.
const ROWS: usize = 500;
/// Envs whose lives are kept, and the events of one life: its beginning, its inits and its end.
const ENVS: usize = 2_000;
const LIFE: usize = 50;

/// Functions that are counted; who deploys more under new names sees zeros.
const COUNTED: usize = 10_000;

/// What happened to a function so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub invocations: u64,
    pub errors: u64,
    pub throttles: u64,
}

/// The newest facts.
#[derive(Debug, Default)]
pub(crate) struct Window {
    facts: VecDeque<Event>,
    weight: usize,
    lives: BTreeMap<EnvId, Vec<EnvEvent>>,
    rows: VecDeque<LiveInvocation>,
    /// Invocations seen so far: the number of the newest row.
    seen: u64,
    counts: BTreeMap<String, Counts>,
}

impl Window {
    /// Takes a fact, and forgets the oldest beyond the bounds.
    pub fn push(&mut self, event: Event, epoch_offset_ns: u64) {
        match event {
            // Nobody is shown logs and traces here; that an env sleeps is asked of the host.
            Event::Log(_) | Event::Trace(_) | Event::Segment(_) => return,
            Event::Env(event) => return self.live(event),
            Event::Refused(ref refused) => self.count(&refused.variant, |counts| counts.throttles += 1),
            Event::Invocation(ref invocation) => {
                let failed = u64::from(invocation.status != Status::Ok);
                self.count(&invocation.variant, |counts| {
                    counts.invocations += 1;
                    counts.errors += failed;
                });
                self.rows.push_back(row(invocation, epoch_offset_ns));
                self.seen += 1;
                if self.rows.len() > ROWS {
                    self.rows.pop_front();
                }
            }
            _ => {}
        }
        self.weight += weight(&event);
        self.facts.push_back(event);
        while self.weight > WEIGHT {
            let Some(oldest) = self.facts.pop_front() else { break };
            self.weight -= weight(&oldest);
        }
    }

    fn count(&mut self, function: &str, add: impl FnOnce(&mut Counts)) {
        if !self.counts.contains_key(function) {
            if self.counts.len() >= COUNTED {
                return;
            }
            self.counts.insert(function.to_owned(), Counts::default());
        }
        if let Some(counts) = self.counts.get_mut(function) {
            add(counts);
        }
    }

    /// What happened to a function so far.
    pub fn counts(&self, function: &str) -> Counts {
        self.counts.get(function).copied().unwrap_or_default()
    }

    fn live(&mut self, event: EnvEvent) {
        if matches!(event.what, EnvWhat::Frozen | EnvWhat::Thawed | EnvWhat::Started) {
            return;
        }
        let life = self.lives.entry(event.env).or_default();
        if life.len() >= LIFE {
            life.remove(1);
        }
        life.push(event);
        if self.lives.len() > ENVS {
            self.lives.pop_first();
        }
    }

    /// Invocations seen so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Rows after the n-th invocation, oldest first, at most `most` and these the newest; and how many are left out.
    pub fn rows_after(&self, n: u64, most: usize) -> (Vec<LiveInvocation>, u64) {
        let new = self.seen.saturating_sub(n);
        let take = usize::try_from(new).unwrap_or(usize::MAX).min(most).min(self.rows.len());
        let rows = self.rows.range(self.rows.len() - take..).cloned().collect();
        (rows, new - take as u64)
    }

    /// The facts of the newest invocations, and of the envs that served them.
    pub fn newest(&self) -> Vec<Event> {
        let invocation = |event: &Event| match event {
            Event::Invocation(i) => Some((i.dispatched_ns, i.env)),
            _ => None,
        };
        let shown: Vec<(u64, EnvId)> = self.facts.iter().rev().filter_map(invocation).take(SHOWN).collect();
        let from_ns = shown.iter().map(|(ns, _)| *ns).min().unwrap_or(u64::MAX);
        let mut left = SHOWN;
        let mut events: Vec<Event> = Vec::new();
        for event in self.facts.iter().rev() {
            let keep = match event {
                Event::Invocation(_) => {
                    let keep = left > 0;
                    left = left.saturating_sub(1);
                    keep
                }
                Event::Connection(c) => c.closed_ns.is_none_or(|ns| ns >= from_ns),
                Event::Request(r) => r.service_time.to_ns >= from_ns,
                Event::Flight(f) => f.span.to_ns >= from_ns,
                Event::Dns(q) => q.span.to_ns >= from_ns,
                Event::Cpu(s) => s.samples.last().is_some_and(|s| s.at_ns >= from_ns),
                Event::CpuWait(s) => s.samples.last().is_some_and(|s| s.at_ns >= from_ns),
                Event::Refused(r) => r.at_ns >= from_ns,
                _ => true,
            };
            if keep {
                events.push(event.clone());
            }
        }
        let serving = |env: &EnvId| shown.iter().any(|(_, e)| e == env);
        let lives = self.lives.iter().filter(|(env, _)| serving(env)).flat_map(|(_, life)| life);
        events.extend(lives.cloned().map(Event::Env));
        events
    }
}

/// How much memory a fact takes, in pieces of about 200 bytes.
fn weight(event: &Event) -> usize {
    1 + match event {
        Event::Cpu(series) => series.samples.len() / 8,
        Event::CpuWait(series) => series.samples.len() / 12,
        Event::Connection(connection) => connection.idle.len() / 12,
        _ => 0,
    }
}

fn row(i: &Invocation, epoch_offset_ns: u64) -> LiveInvocation {
    LiveInvocation {
        id: i.request_id.0.clone(),
        function: i.variant.clone(),
        env: i.env.0,
        start: match i.start {
            Start::Cold => "cold",
            Start::Warm => "warm",
            Start::Suppressed => "suppressed",
        }
        .to_owned(),
        status: match &i.status {
            Status::Ok => "ok".to_owned(),
            Status::Timeout => "timeout".to_owned(),
            Status::Error { error_type } => error_type.clone(),
        },
        at_epoch_ms: (i.responded_ns + epoch_offset_ns) / 1_000_000,
        span_ms: i.responded_ns.saturating_sub(i.dispatched_ns) as f64 / 1e6,
        duration_ms: i.duration_ms,
        init_ms: i.init_ms,
        cpu_ms: i.cpu_us as f64 / 1e3,
        throttled_ms: i.throttled_us as f64 / 1e3,
        memory_used_mb: i.max_memory_used_mb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use danki_model::RequestId;
    use danki_record::{CpuSample, CpuSeries};

    fn invocation(n: u32) -> Event {
        let at = u64::from(n) * 1_000_000;
        Event::Invocation(Invocation {
            request_id: RequestId::from_bits(n.into()),
            variant: "f".to_owned(),
            index: n,
            ping: false,
            env: EnvId(1),
            initialization: Default::default(),
            start: Start::Warm,
            intended_ns: at,
            dispatched_ns: at,
            env_wait: None,
            init: None,
            thaw: None,
            delivered_ns: Some(at),
            responded_ns: at + 500_000,
            finished_ns: at + 600_000,
            status: Status::Ok,
            duration_ms: 0.5,
            billed_ms: 1,
            init_ms: None,
            max_memory_used_mb: 40,
            cpu_us: 100,
            throttled_us: 0,
            throttled_periods: 0,
            response_bytes: 2,
        })
    }

    #[test]
    fn a_reader_gets_what_is_new_and_is_told_what_it_missed() {
        let mut window = Window::default();
        (0..1_000).for_each(|n| window.push(invocation(n), 0));
        let ids = |(rows, missed): (Vec<LiveInvocation>, u64)| (rows.len(), missed, rows.last().cloned());
        assert_eq!(window.seen(), 1_000);
        assert_eq!(window.counts("f"), Counts { invocations: 1_000, errors: 0, throttles: 0 });
        assert_eq!(window.counts("g"), Counts::default());
        let (n, missed, newest) = ids(window.rows_after(990, 100));
        assert_eq!((n, missed), (10, 0));
        assert_eq!(newest.expect("ten").id, RequestId::from_bits(999).0);
        assert_eq!(ids(window.rows_after(1_000, 100)).0, 0);
        let (n, missed, _) = ids(window.rows_after(0, 100));
        assert_eq!((n, missed), (100, 900));
        let (n, missed, _) = ids(window.rows_after(0, 10_000));
        assert_eq!((n, missed), (ROWS, 500));
    }

    #[test]
    fn it_stays_within_its_bounds_whatever_comes() {
        let mut window = Window::default();
        let sample = CpuSample { at_ns: 1, usage_ns: 1, throttled_ns: 1 };
        for n in 0..2_000 {
            window.push(Event::Cpu(CpuSeries { env: EnvId(n), samples: vec![sample; 10_000] }), 0);
            let creating = EnvWhat::Creating { initialization: Default::default() };
            window.push(
                Event::Env(EnvEvent { at_ns: 1, env: EnvId(n * 2), variant: "f".to_owned(), what: creating }),
                0,
            );
            assert!(window.weight <= WEIGHT);
        }
        assert!(window.facts.len() < 60, "{}", window.facts.len());
        assert_eq!(window.lives.len(), ENVS);
        (0..1_000).for_each(|n| window.push(invocation(n), 0));
        let invocations = window.newest().iter().filter(|e| matches!(e, Event::Invocation(_))).count();
        assert_eq!(invocations, SHOWN);
    }
}
