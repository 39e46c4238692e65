//! One invocation's span [dispatched, responded], cut so that every instant belongs to exactly one part.
//!
//! # Precedence
//! Claims are served in this order; each takes what is left of its span:
//! 1. **Init, thaw**: the invocation's own spans. **Env wait**: what else passes before the runtime has the event.
//! 2. **CPU throttled**: a runnable process was denied CPU, so nothing else could have helped (see `cpu` for where a
//!    throttle is laid).
//! 3. **CPU on**: the CPU time of each bucket between two samples, placed first into instants of the bucket that no
//!    network part claims, then into such instants right before it (CPU time is booked late, see `cpu`), then over
//!    network parts of the bucket, at most its length in all. A bucket that reaches over the span's edge counts with
//!    the share that lies inside.
//! 4. **Service time** (of endpoints; of a proxy before a database: waiting for a connection, and statements),
//!    **TLS** (established → handshake done), **TCP connect** (SYN → SYN-ACK), **DNS**, **request on the wire** (packets in
//!    the link, and request sent → response delivered): in this order, so that what an endpoint did is not charged to
//!    the wire.
//! 5. **CPU wait**: what is left where the runtime was ready to run and did not (see `wait`), at most as long as it waited
//!    beyond being throttled; and what is left where the hypervisor took a CPU, at most as much as it took.
//! 6. **Unattributed**: the rest.
//!
//! The sum is exact by construction: instants are taken out of a set that starts as the whole span.
//!
//! # What it over- and understates
//! - CPU outranks the network: work done *while* a response is on its way hides wire time. [`Waterfall::inclusive`] has
//!   each part's time regardless of the others.
//! - CPU without an exact position goes to non-network instants first: overlap of work and waiting is understated by up
//!   to one bucket (about 1 ms) per edge.
//! - Throttled time includes throttles during which the process would have waited for the network anyway.
//! - Two CPUs busy at once count once.
//! - Where an endpoint does not tell (a database that is reached directly), service time is what passes before bytes come from it while
//!   nothing is under way; where TCP's window was full, it waited for acknowledgements.
//! - Service time is the endpoint's clock; hand-over between endpoint and link (some 10 µs) is on the wire or
//!   unattributed.

use crate::calls::{self, Call};
use crate::cpu::{self, Bucket};
use crate::database;
use crate::facts::{EnvFacts, Facts};
use crate::part::{Part, PartTimes};
use crate::spans::{Instants, span};
use crate::wait::{self, Wait};
use danki_model::RequestId;
use danki_record::{Invocation, Span};
use serde::Serialize;

/// A stretch of an invocation that belongs to one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// What it was spent on.
    pub part: Part,
    /// When.
    #[serde(flatten)]
    pub span: Span,
}

/// Where one invocation's time went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waterfall {
    /// The invocation.
    pub request_id: RequestId,
    /// Dispatch to response.
    pub span: Span,
    /// Parts that sum exactly to the span.
    pub parts: PartTimes,
    /// Time per part regardless of the others: spans united and clipped; CPU on is CPU time over all CPUs, CPU
    /// throttled is what the kernel booked. Unattributed as in `parts`.
    pub inclusive: PartTimes,
    /// For drawing: in order, without gap or overlap.
    pub segments: Vec<Segment>,
    /// Requests made by the invocation, by begin.
    pub calls: Vec<Call>,
}

impl Waterfall {
    /// Length of the span in ns: the sum of all parts.
    pub fn total(&self) -> u64 {
        self.parts.total()
    }

    /// Parts in order, with their ns.
    pub fn iter(&self) -> impl Iterator<Item = (Part, u64)> {
        self.parts.iter()
    }

    /// Share of the span spent on a part; 0 for an empty span.
    pub fn share(&self, part: Part) -> f64 {
        match self.total() {
            0 => 0.0,
            total => self.parts[part] as f64 / total as f64,
        }
    }
}

/// Explains one invocation from a run's facts.
pub fn waterfall(invocation: &Invocation, facts: &Facts) -> Waterfall {
    let nothing = EnvFacts::default();
    let env = facts.of_env(invocation.env).unwrap_or(&nothing);
    let whole = span(invocation.dispatched_ns, invocation.responded_ns.max(invocation.dispatched_ns));
    let calls = calls::of_invocation(invocation, env);
    let own = own_claims(invocation);
    let network = network_claims(whole, env, &calls);
    let buckets: Vec<Vec<Bucket>> = series_during(env, whole);

    let mut cutter = Cutter::new(whole);
    cutter.claim_all(&own);
    cutter.claim_cpu(&buckets, &network);
    cutter.claim_all(&network);
    cutter.claim_waits(&waits_during(env, whole));
    let (segments, mut inclusive) = (cutter.segments(), cutter.inclusive);
    let mut parts = PartTimes::default();
    for s in &segments {
        parts[s.part] += s.span.len_ns();
    }
    inclusive[Part::Unattributed] = parts[Part::Unattributed];
    Waterfall { request_id: invocation.request_id.clone(), span: whole, parts, inclusive, segments, calls }
}

type Claim = (Part, Vec<Span>);

/// What comes before the runtime has the event. Init and thaw are spans of their own; the rest of it is the platform's.
fn own_claims(i: &Invocation) -> Vec<Claim> {
    let until_delivered = i.delivered_ns.map(|delivered_ns| span(i.dispatched_ns, delivered_ns));
    vec![
        (Part::Init, i.init.into_iter().collect()),
        (Part::Thaw, i.thaw.into_iter().collect()),
        (Part::EnvWait, i.env_wait.into_iter().chain(until_delivered).collect()),
    ]
}

fn network_claims(whole: Span, env: &EnvFacts, calls: &[Call]) -> Vec<Claim> {
    let overlaps = |s: &Span| s.from_ns < whole.to_ns && s.to_ns > whole.from_ns;
    let connections: Vec<_> = env.connections_during(whole).collect();
    let at_proxies = database::spans(env, whole);
    // An endpoint that does not tell about its requests and speaks no TLS, as a database: what passes until it answers, and goes on answering.
    let silent =
        connections.iter().filter(|c| c.requests.is_empty() && c.connection.client_hello_ns.is_none());
    let turns = silent.flat_map(|c| during(&c.turns, whole));
    let service = calls.iter().map(|c| c.service_time).chain(at_proxies).chain(turns).collect();
    let tls = connections.iter().filter_map(|c| calls::tls_span(c)).collect();
    let connect = connections
        .iter()
        .map(|c| span(c.connection.syn_ns, c.connection.established_ns.unwrap_or(c.end_ns())))
        .collect();
    let dns = env.dns.iter().map(|q| q.span).filter(overlaps).collect();
    let flights = connections.iter().flat_map(|c| during(&c.flights, whole));
    let wire = calls.iter().map(|c| span(c.sent_ns, c.span.to_ns)).chain(flights).collect();
    vec![
        (Part::ServiceTime, service),
        (Part::Tls, tls),
        (Part::TcpConnect, connect),
        (Part::Dns, dns),
        (Part::RequestOnWire, wire),
    ]
}

/// Those of a connection that overlap a span. They follow one another: both ends are in order.
fn during(spans: &[Span], whole: Span) -> impl Iterator<Item = Span> {
    let since = spans.partition_point(|s| s.to_ns < whole.from_ns);
    spans[since..].iter().copied().take_while(move |s| s.from_ns < whole.to_ns)
}

fn series_during(env: &EnvFacts, whole: Span) -> Vec<Vec<Bucket>> {
    let overlaps = |b: &Bucket| b.span.from_ns < whole.to_ns && b.span.to_ns > whole.from_ns;
    let series = env.cpu.iter().filter(|series| match (series.samples.first(), series.samples.last()) {
        (Some(first), Some(last)) => first.at_ns < whole.to_ns && last.at_ns > whole.from_ns,
        _ => false,
    });
    series.map(cpu::buckets).filter(|buckets| buckets.iter().any(overlaps)).collect()
}

fn waits_during(env: &EnvFacts, whole: Span) -> Vec<Wait> {
    let during = env.cpu_wait.iter().filter(|series| match (series.samples.first(), series.samples.last()) {
        (Some(first), Some(last)) => first.at_ns < whole.to_ns && last.at_ns > whole.from_ns,
        _ => false,
    });
    during.flat_map(wait::waits).collect()
}

/// Hands out the instants of a span.
struct Cutter {
    whole: Span,
    free: Instants,
    segments: Vec<Segment>,
    inclusive: PartTimes,
}

impl Cutter {
    fn new(whole: Span) -> Cutter {
        Cutter { whole, free: Instants::of(whole), segments: Vec::new(), inclusive: PartTimes::default() }
    }

    fn claim_all(&mut self, claims: &[Claim]) {
        for (part, spans) in claims {
            let mut united = Instants::default();
            for s in spans {
                united.insert(*s);
            }
            let inside = united.within(self.whole);
            self.include(*part, length(&inside));
            for s in inside {
                self.claim(*part, s);
            }
        }
    }

    fn claim(&mut self, part: Part, s: Span) {
        let taken = self.free.take(s);
        self.segments.extend(taken.into_iter().map(|span| Segment { part, span }));
    }

    fn claim_cpu(&mut self, series: &[Vec<Bucket>], network: &[Claim]) {
        // What of each bucket is still to be had, before the CPU parts take from it.
        let available: Vec<Vec<u64>> = series
            .iter()
            .map(|buckets| buckets.iter().map(|b| length(&self.free.within(b.span))).collect())
            .collect();
        for s in series.iter().flat_map(|buckets| cpu::throttled(buckets)) {
            self.claim(Part::CpuThrottled, s);
        }
        let mut quiet = self.free.clone();
        for s in network.iter().flat_map(|(_, spans)| spans) {
            quiet.take(*s);
        }
        for (b, available) in series.iter().flatten().zip(available.iter().flatten()) {
            if *available == 0 {
                continue;
            }
            self.include(Part::CpuOn, share(b.used_ns, *available, b.span.len_ns()));
            self.include(Part::CpuThrottled, share(b.booked_ns, *available, b.span.len_ns()));
            self.place_cpu(b, *available, &mut quiet);
        }
    }

    /// CPU time goes to instants of its bucket that nothing else claims, then to such instants right before it (it was booked late), and
    /// only then over network parts. More than one CPU's worth has no place.
    fn place_cpu(&mut self, b: &Bucket, available: u64, quiet: &mut Instants) {
        let used = share(b.used_ns, available, b.span.len_ns());
        let inside = first_of(&quiet.within(b.span), used);
        let before = span(b.span.from_ns.saturating_sub(cpu::TICK_NS), b.span.from_ns);
        let before = last_of(&quiet.within(before), used - length(&inside));
        for s in inside.iter().chain(&before) {
            quiet.take(*s);
            self.claim(Part::CpuOn, *s);
        }
        let budget = share(b.on_ns(), available, b.span.len_ns());
        let over = budget.saturating_sub(length(&inside) + length(&before));
        for s in first_of(&self.free.within(b.span), over) {
            self.claim(Part::CpuOn, s);
        }
    }

    /// The latest free instants of each window: a wait is booked when it ends.
    fn claim_waits(&mut self, waits: &[Wait]) {
        for Wait { window, waited_ns, with_throttled } in waits {
            let throttled = if *with_throttled { self.throttled_within(*window) } else { 0 };
            let waited = last_of(&self.free.within(*window), waited_ns.saturating_sub(throttled));
            self.include(Part::CpuWait, length(&waited));
            for s in waited {
                self.claim(Part::CpuWait, s);
            }
        }
    }

    fn throttled_within(&self, window: Span) -> u64 {
        let throttled = self.segments.iter().filter(|s| s.part == Part::CpuThrottled);
        throttled
            .map(|s| span(s.span.from_ns.max(window.from_ns), s.span.to_ns.min(window.to_ns)).len_ns())
            .sum()
    }

    /// Saturates: counters that jump are garbage, and garbage must not end the report.
    fn include(&mut self, part: Part, ns: u64) {
        self.inclusive[part] = self.inclusive[part].saturating_add(ns);
    }

    /// All segments in order, neighbours of one part joined, the rest unattributed.
    fn segments(&self) -> Vec<Segment> {
        let rest = self.free.iter().map(|span| Segment { part: Part::Unattributed, span });
        let mut all: Vec<Segment> = self.segments.iter().copied().chain(rest).collect();
        all.sort_by_key(|s| s.span.from_ns);
        let mut joined: Vec<Segment> = Vec::with_capacity(all.len());
        for s in all {
            match joined.last_mut() {
                Some(last) if last.part == s.part => last.span.to_ns = s.span.to_ns,
                _ => joined.push(s),
            }
        }
        joined
    }
}

fn length(spans: &[Span]) -> u64 {
    spans.iter().map(|s| s.len_ns()).sum()
}

/// The earliest instants of `spans`, `budget` ns of them.
fn first_of(spans: &[Span], mut budget: u64) -> Vec<Span> {
    let mut first = Vec::new();
    for s in spans {
        let len = s.len_ns().min(budget);
        if len > 0 {
            first.push(span(s.from_ns, s.from_ns + len));
        }
        budget -= len;
    }
    first
}

/// The latest instants of `spans`, `budget` ns of them.
fn last_of(spans: &[Span], mut budget: u64) -> Vec<Span> {
    let mut last = Vec::new();
    for s in spans.iter().rev() {
        let len = s.len_ns().min(budget);
        if len > 0 {
            last.push(span(s.to_ns - len, s.to_ns));
        }
        budget -= len;
    }
    last
}

/// `amount · inside / length`, without overflow.
fn share(amount: u64, inside: u64, length: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(inside) / u128::from(length.max(1));
    u64::try_from(scaled).expect("inside is at most length")
}
