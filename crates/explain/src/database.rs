//! Connections to a database, over time, and waiting for them: of functions as the link saw them, of a proxy as it told.

use crate::summary::quantiles;
use crate::{ConnFacts, DatabaseSetting, EnvFacts, Facts, Variant};
use danki_record::{DatabaseCounts, DatabaseEvent, DatabaseWhat, Invocation, Span};
use danki_stats::{Method, Sample};
use std::collections::BTreeMap;

/// Ports of MySQL and PostgreSQL: nothing else in a region has them.
const PORTS: [u16; 2] = [3306, 5432];
/// Points of a curve over time.
const POINTS: usize = 200;

/// When, during `whole`, a proxy kept an env waiting: for a connection, and for the answer to a statement.
pub(crate) fn spans(env: &EnvFacts, whole: Span) -> impl Iterator<Item = Span> {
    let events = &env.at_proxies;
    let first = events.partition_point(|event| event.at_ns <= whole.from_ns);
    let began_before_end =
        move |event: &&DatabaseEvent| event.at_ns.saturating_sub(env.slowest_at_proxies_ns) < whole.to_ns;
    let spans = events[first..].iter().take_while(began_before_end).filter_map(|event| {
        Some(Span { from_ns: event.at_ns.saturating_sub(took_ns(event)?), to_ns: event.at_ns })
    });
    spans.filter(move |span| span.from_ns < whole.to_ns)
}

/// What a client waited, for a connection or an answer, up to this event.
pub(crate) fn took_ns(event: &DatabaseEvent) -> Option<u64> {
    match event.what {
        DatabaseWhat::Answered { took_ns } => Some(took_ns),
        _ => waited_ns(event),
    }
}

/// How long a client had waited for a connection, if that is what is told.
pub(crate) fn waited_ns(event: &DatabaseEvent) -> Option<u64> {
    match event.what {
        DatabaseWhat::Borrowed { waited_ns, .. } | DatabaseWhat::TimedOut { waited_ns } => Some(waited_ns),
        _ => None,
    }
}

/// What an invocation waited for connections in all, ns.
pub(crate) fn waited_in(i: &Invocation, facts: &Facts) -> u64 {
    let events = facts.of_env(i.env).map_or(&[][..], |env| &env.at_proxies);
    let first = events.partition_point(|e| e.at_ns < i.dispatched_ns);
    let inside = events[first..].iter().take_while(|e| e.at_ns <= i.finished_ns);
    inside.filter_map(waited_ns).sum()
}

/// It leads to a database or a proxy.
pub(crate) fn is_to_one(c: &ConnFacts) -> bool {
    PORTS.contains(&c.connection.server.port())
}

/// Every connection to a database or a proxy that an env opened: when, and until when.
pub(crate) fn connections(env: &EnvFacts) -> impl Iterator<Item = Span> {
    env.connections.iter().filter(|c| is_to_one(c)).filter_map(|c| {
        let from_ns = c.connection.established_ns?;
        Some(Span { from_ns, to_ns: c.end_ns() })
    })
}

/// A variant's connections and waits in numbers. Those of a proxy that several variants share are the same in each.
pub fn summarise(
    setting: &DatabaseSetting,
    facts: &Facts,
    variant: Option<&Variant>,
    envs: &[&EnvFacts],
) -> DatabaseCounts {
    let events = || envs.iter().flat_map(|env| &env.at_proxies);
    let of_functions: Vec<Span> = envs.iter().flat_map(|env| connections(env)).collect();
    let (opened, steps) = match &setting.proxy {
        Some(proxy) => of_proxy(&facts.proxies, proxy),
        None => (of_functions.len() as u64, steps(&of_functions)),
    };
    let zero_ns = facts.invocations.first().map_or(0, |i| i.dispatched_ns);
    let mut pinned_by: BTreeMap<String, u64> = BTreeMap::new();
    for event in events() {
        if let DatabaseWhat::Pinned { reason, digest } = &event.what {
            *pinned_by.entry(format!("{reason}: {digest}")).or_default() += 1;
        }
    }
    let ms = |ns: u64| ns as f64 / 1e6;
    let borrowed = |e: &DatabaseEvent| match e.what {
        DatabaseWhat::Borrowed { waited_ns, .. } => Some(ms(waited_ns)),
        _ => None,
    };
    let answered = |e: &DatabaseEvent| match e.what {
        DatabaseWhat::Answered { took_ns } => Some(ms(took_ns)),
        _ => None,
    };
    let timed_out = |e: &&DatabaseEvent| matches!(e.what, DatabaseWhat::TimedOut { .. });
    DatabaseCounts {
        proxy: setting.proxy.clone(),
        max_connections: setting.max_connections,
        opened,
        peak: steps.iter().map(|(_, n)| *n).max().unwrap_or(0),
        over_time: curve(&steps, zero_ns),
        clients: of_functions.len() as u64,
        borrow_wait_ms: quantiles(events().filter_map(borrowed)),
        borrow_timeouts: events().filter(timed_out).count() as u64,
        wait_share_of_p95: variant.map_or(0.0, |variant| wait_share_of_p95(variant, facts)),
        pins: pinned_by.values().sum(),
        pinned_by,
        statement_ms: quantiles(events().filter_map(answered)),
    }
}

/// p95 of Durations as they were, against p95 of the same less what each waited.
fn wait_share_of_p95(variant: &Variant, facts: &Facts) -> f64 {
    let p95 = |of: &dyn Fn(&Invocation) -> f64| {
        let all = Sample::new(variant.invocations.iter().map(|(i, _)| of(i))).ok()?;
        Some(all.summary(Method::NearestRank).p95)
    };
    let without = |i: &Invocation| (i.duration_ms - waited_in(i, facts) as f64 / 1e6).max(0.0);
    match (p95(&|i| i.duration_ms), p95(&without)) {
        (Some(with), Some(without)) if with > 0.0 => 1.0 - without / with,
        _ => 0.0,
    }
}

/// How many there are, from then on.
type Steps = Vec<(u64, u64)>;

fn steps(spans: &[Span]) -> Steps {
    let opened = spans.iter().map(|s| (s.from_ns, true));
    let closed = spans.iter().filter(|s| s.to_ns != u64::MAX).map(|s| (s.to_ns, false));
    count(opened.chain(closed))
}

fn of_proxy(events: &[DatabaseEvent], proxy: &str) -> (u64, Steps) {
    let changes = events.iter().filter(|e| e.proxy == proxy).filter_map(|e| match e.what {
        DatabaseWhat::Opened { .. } => Some((e.at_ns, true)),
        DatabaseWhat::Closed { .. } => Some((e.at_ns, false)),
        _ => None,
    });
    let changes: Vec<(u64, bool)> = changes.collect();
    (changes.iter().filter(|(_, opened)| *opened).count() as u64, count(changes))
}

/// At the same instant, what ends goes before what begins.
fn count(changes: impl IntoIterator<Item = (u64, bool)>) -> Steps {
    let mut changes: Vec<(u64, bool)> = changes.into_iter().collect();
    changes.sort_unstable();
    let mut n = 0_u64;
    let step = |(at_ns, opened): (u64, bool)| {
        n = if opened { n + 1 } else { n.saturating_sub(1) };
        (at_ns, n)
    };
    changes.into_iter().map(step).collect()
}

/// At most [`POINTS`] points; of those that are left out, the highest stays.
fn curve(steps: &Steps, zero_ns: u64) -> Vec<[f64; 2]> {
    let chunk = steps.len().div_ceil(POINTS).max(1);
    let highest = steps.chunks(chunk).filter_map(|some| some.iter().max_by_key(|(_, n)| *n));
    highest.map(|(at_ns, n)| [at_ns.saturating_sub(zero_ns) as f64 / 1e9, *n as f64]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn event(at_ns: u64, what: DatabaseWhat) -> DatabaseEvent {
        let server = SocketAddr::from(([198, 18, 5, 1], 3306));
        DatabaseEvent { at_ns, proxy: "small".to_owned(), server, client: None, what }
    }

    #[test]
    fn connections_are_counted_over_time() {
        let spans = [(0, 10), (5, 10), (10, 20), (15, u64::MAX)];
        let spans = spans.map(|(from_ns, to_ns)| Span { from_ns, to_ns });
        let steps = steps(&spans);
        let expect = [(0, 1), (5, 2), (10, 1), (10, 0), (10, 1), (15, 2), (20, 1)];
        assert_eq!(steps, expect);
        assert_eq!(curve(&steps, 0).len(), 7);
        let many: Steps = (0..1_000).map(|n| (n, n % 7)).collect();
        let curve = curve(&many, 0);
        assert!(curve.len() <= POINTS && curve.iter().all(|[_, n]| *n >= 4.0), "{curve:?}");
    }

    #[test]
    fn a_proxy_s_connections_are_its_own() {
        let mut other = event(1, DatabaseWhat::Opened { conn: 9 });
        other.proxy = "other".to_owned();
        let (open, close) = (|conn| DatabaseWhat::Opened { conn }, |conn| DatabaseWhat::Closed { conn });
        let events = [other, event(2, open(1)), event(3, open(2)), event(4, close(1)), event(5, open(3))];
        let (opened, steps) = of_proxy(&events, "small");
        assert_eq!((opened, steps), (3, vec![(2, 1), (3, 2), (4, 1), (5, 2)]));
    }

    #[test]
    fn waits_and_answers_are_spans_before_their_events() {
        let at_proxies = vec![
            event(100, DatabaseWhat::Borrowed { conn: 1, waited_ns: 30 }),
            event(150, DatabaseWhat::Answered { took_ns: 40 }),
            event(160, DatabaseWhat::Opened { conn: 1 }),
            event(190, DatabaseWhat::Answered { took_ns: 10 }),
        ];
        let env = EnvFacts { at_proxies, slowest_at_proxies_ns: 40, ..EnvFacts::default() };
        let check = |from_ns, to_ns, expect: &[(u64, u64)]| {
            let found: Vec<_> = spans(&env, Span { from_ns, to_ns }).map(|s| (s.from_ns, s.to_ns)).collect();
            assert_eq!(found, expect, "{from_ns} to {to_ns}");
        };
        check(0, 200, &[(70, 100), (110, 150), (180, 190)]);
        // What ends when it begins is not in it; what began before its end is.
        check(100, 111, &[(110, 150)]);
        check(100, 110, &[]);
        check(150, 170, &[]);
    }
}
