//! The worked example of `docs/waterfall.md`, and calls and findings of a small run.

use crate::support::{answer, client, closed, connection, cpu, dns, flight, invocation, request, us};
use danki_explain::{Cause, Context, Facts, Part, Setting, by_variant, findings, waterfall};
use danki_model::MemoryMb;
use danki_record::{ClosedBy, Connection, Event, Start};

/// A warm call on a new connection with a round trip of 1 ms. The quota ends 2.4 ms in and the throttle hides most of
/// the TLS handshake's second flight.
fn new_connection() -> Vec<Event> {
    vec![
        Event::Invocation(invocation("off", 0, 0, 30_000)),
        dns(1_000, 1_400),
        Event::Connection(connection(1, 4_000, 1_500, 2_500)),
        flight(1, 1_500, 2_500),
        flight(1, 2_600, 3_700),   // ClientHello up, ServerHello down
        flight(1, 21_000, 21_500), // Finished and the request
        flight(1, 21_510, 22_010), // an acknowledgement
        flight(1, 25_610, 26_110), // the response
        request(4_000, 1, 21_600, 25_600, Some(us(2_010, 21_590))),
        cpu(&[
            (100, 0, 0),
            (1_000, 900, 0),
            (2_000, 950, 0),
            (3_000, 1_350, 0), // CPU in front of the throttle
            (10_000, 1_350, 0),
            (21_000, 2_350, 16_600), // the throttle ended at 20,000
            (26_000, 2_350, 16_600),
            (30_000, 3_350, 16_600),
        ]),
    ]
}

#[test]
fn the_worked_example() {
    let facts = Facts::gather(&new_connection());
    let w = waterfall(&facts.invocations[0], &facts);
    let us_of = |part| w.parts[part] / 1_000;
    let table = [
        (Part::Thaw, 100),
        (Part::CpuOn, 900 + 50 + 400 + 1_000 + 1_000),
        (Part::CpuThrottled, 16_600),
        (Part::Dns, 400),
        (Part::TcpConnect, 650),
        (Part::Tls, 1_490),
        (Part::RequestOnWire, 530),
        (Part::ServiceTime, 3_990),
    ];
    let told: Vec<_> = table.iter().map(|(part, _)| (*part, us_of(*part))).collect();
    assert_eq!(told, table, "{:#?}", w.segments);
    assert_eq!(w.total(), 30_000_000);
    assert_eq!(w.inclusive[Part::Tls] / 1_000, 21_590 - 2_500, "the handshake's wall time");
}

#[test]
fn an_endpoint_that_tells_nothing_has_the_time_before_its_answers() {
    let check = |connection, more: Vec<Event>, expect_us| {
        let mut events = vec![
            Event::Invocation(invocation("v", 0, 0, 30_000)),
            Event::Connection(connection),
            flight(1, 1_500, 2_500),
            answer(1, 2_700, 2_900), // a greeting
            flight(1, 3_000, 3_500),
            answer(1, 9_500, 10_000),
            answer(1, 10_300, 10_800), // it goes on
            flight(1, 29_000, 29_500), // never answered
        ];
        events.extend(more);
        let facts = Facts::gather(&events);
        let w = waterfall(&facts.invocations[0], &facts);
        assert_eq!(w.parts[Part::ServiceTime] / 1_000, expect_us, "{:?}", w.segments);
    };
    let silent = Connection { client_hello_ns: None, ..connection(1, 4_000, 1_500, 2_500) };
    check(silent.clone(), vec![], 200 + 6_000 + 300);
    // A region's service tells what it took (it reads for 10 µs); TLS has a part of its own.
    check(silent.clone(), vec![request(4_000, 1, 5_000, 5_700, None)], 690);
    check(Connection { client_hello_ns: Some(3_000_000), ..silent }, vec![], 0);
}

#[test]
fn a_call_on_a_new_connection_begins_with_its_dns_query() {
    let facts = Facts::gather(&new_connection());
    let w = waterfall(&facts.invocations[0], &facts);
    let [call] = w.calls.as_slice() else { panic!("one call, not {:?}", w.calls) };
    assert_eq!((call.span, call.sent_ns), (us(1_000, 26_110), 21_000_000));
    let setup = call.setup.expect("its own connection");
    assert_eq!(
        (setup.dns, setup.tcp, setup.tls),
        (Some(us(1_000, 1_400)), Some(us(1_500, 2_500)), Some(us(2_500, 21_590)))
    );
    assert_eq!((call.client, call.idle_before_ns), (client(4_000), None));
}

#[test]
fn a_kept_connection_and_a_port_that_comes_again() {
    let mut events = new_connection();
    let first = closed(connection(1, 4_000, 1_500, 2_500), 26_110, 200_000, ClosedBy::Server);
    events[2] = Event::Connection(first);
    // Later the same port belongs to another connection, opened in one invocation and used again in the next.
    events.extend([
        Event::Invocation(invocation("off", 1, 300_000, 310_000)),
        Event::Invocation(invocation("off", 2, 900_000, 905_000)),
        Event::Connection(connection(2, 4_000, 300_500, 301_500)),
        flight(2, 304_000, 304_500),
        flight(2, 306_000, 306_500),
        flight(2, 900_200, 900_700),
        flight(2, 902_700, 903_200),
        request(4_000, 1, 304_510, 306_000, Some(us(301_000, 304_505))),
        request(4_000, 2, 900_710, 902_690, None),
    ]);
    events.reverse();
    let facts = Facts::gather(&events);
    assert!(facts.orphans.is_empty());
    let calls: Vec<_> = facts.invocations.iter().flat_map(|i| waterfall(i, &facts).calls).collect();
    assert_eq!(calls.iter().map(|c| c.conn.0).collect::<Vec<_>>(), [1, 2, 2]);
    assert_eq!(calls.iter().map(|c| c.is_new()).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(calls[2].span, us(900_200, 903_200));
    assert_eq!(calls[2].idle_before_ns, Some((900_200 - 306_500) * 1_000));
}

#[test]
fn a_connection_made_during_init_is_kept_by_the_handlers_call() {
    let mut i = invocation("on", 0, 0, 50_000);
    (i.start, i.init, i.thaw) = (Start::Cold, Some(us(1_000, 40_000)), None);
    i.delivered_ns = Some(40_000_000);
    let facts = Facts::gather(&[
        Event::Invocation(i),
        Event::Connection(connection(1, 4_000, 20_000, 21_000)),
        flight(1, 41_000, 41_500),
        flight(1, 45_000, 45_500),
        request(4_000, 1, 41_510, 45_000, Some(us(20_500, 23_000))),
    ]);
    let w = waterfall(&facts.invocations[0], &facts);
    assert!(!w.calls[0].is_new());
    assert_eq!(w.calls[0].idle_before_ns, Some(18_000_000));
    assert_eq!(w.parts[Part::Init], 39_000_000);
}

/// `calls` per invocation; each on a connection of its own, or all on the first one.
fn run(variant: &str, port: u16, start: u64, invocations: u64, calls: u64, kept: bool) -> Vec<Event> {
    let mut events = Vec::new();
    for n in 0..invocations {
        let from = start + n * 100_000;
        events.push(Event::Invocation(invocation(variant, n as u32, from, from + calls * 10_000)));
        for k in 0..calls {
            let (at, nth) = (from + 200 + k * 10_000, n * calls + k);
            let conn = u64::from(port) + if kept { 0 } else { nth };
            let own = u16::try_from(conn).expect("small");
            let opens = !kept || nth == 0;
            if opens {
                events.push(Event::Connection(connection(conn, own, at, at + 1_000)));
            }
            let sent = at + if opens { 5_000 } else { 0 };
            let tls = opens.then(|| us(at + 500, at + 4_000));
            let ordinal = if kept { nth as u32 + 1 } else { 1 };
            events.extend([
                flight(conn, sent, sent + 500),
                request(own, ordinal, sent + 510, sent + 1_500, tls),
                flight(conn, sent + 1_510, sent + 2_010),
            ]);
        }
    }
    events
}

/// All variants at 128 MB.
fn context(variants: &[&str]) -> Context {
    let setting = |name: &&str| Setting {
        name: (*name).to_owned(),
        memory: MemoryMb::try_from(128).expect("in range"),
        environment: Default::default(),
        runtime: "nodejs20.x".to_owned(),
    };
    Context { settings: variants.iter().map(setting).collect(), ..Context::default() }
}

/// Causes by variant, without the reader's traps, which a small run always has.
fn causes(events: &[Event], variants: &[&str]) -> Vec<(String, Cause)> {
    let facts = Facts::gather(events);
    let found = findings(&facts, &by_variant(&facts), &context(variants));
    let traps = [Cause::FewSamples, Cause::NoiseOverEffect];
    let told = found.into_iter().filter(|f| !traps.contains(&f.cause));
    told.map(|f| (f.variant.unwrap_or_default(), f.cause)).collect()
}

/// The endpoint ends every connection a millisecond after its answer.
fn ended_at_once(events: Vec<Event>, by: ClosedBy) -> Vec<Event> {
    let end = |event| match event {
        Event::Connection(c) => {
            let last = c.syn_ns / 1_000 + 7_010;
            Event::Connection(closed(c, last, last + 1_000, by))
        }
        other => other,
    };
    events.into_iter().map(end).collect()
}

#[test]
fn connections_are_judged_by_what_became_of_the_one_before() {
    let mut events = ended_at_once(run("off", 1_000, 0, 20, 1, false), ClosedBy::Server);
    events.extend(run("on", 2_000, 10_000_000, 20, 1, true));
    events.extend(run("recreated", 3_000, 20_000_000, 2, 5, false));
    events.extend(run("in-handler", 4_000, 30_000_000, 5, 1, false));
    let variants = ["off", "on", "recreated", "in-handler"];
    let facts = Facts::gather(&events);
    let found = findings(&facts, &by_variant(&facts), &context(&variants));
    let of = |name: &str| {
        let ours = |f: &&danki_explain::Finding| {
            f.variant.as_deref() == Some(name) && f.cause != Cause::NoiseOverEffect
        };
        found.iter().filter(ours).collect::<Vec<_>>()
    };
    let expect = [
        ("off", Cause::KeepAliveOff),
        ("on", Cause::ConnectionsKept),
        ("recreated", Cause::ClientRecreated),
        ("in-handler", Cause::ClientPerInvocation),
    ];
    for (name, cause) in expect {
        let causes: Vec<Cause> =
            of(name).iter().map(|f| f.cause).filter(|c| *c != Cause::TlsNotResumed).collect();
        assert_eq!(causes, [cause], "{name}");
    }
    let off = of("off")[0];
    assert!(
        off.text.contains("7.0 ms (median of 20), 5.0 ms of it before the request leaves"),
        "{}",
        off.text
    );
    assert!(off.text.contains("on a kept one 2.0 ms (median of 19, variant on)"), "{}", off.text);
    assert_eq!(
        (off.examples.len(), off.connections.len()),
        (danki_explain::EXAMPLES, danki_explain::EXAMPLES)
    );
    let remedy = off.remedy.as_ref().expect("it has one");
    // 19 of 20 calls could have saved 5 ms; a ms of a million is 125 GB-seconds at 128 MB.
    assert!((remedy.saves_ms.expect("known") - 5.0 * 19.0 / 20.0).abs() < 1e-9, "{remedy:?}");
    let usd = remedy.saves_usd_per_million.expect("memory is known");
    assert!((usd - 4.75 * 125.0 * 0.000_016_666_7).abs() < 1e-9, "{usd}");
}

#[test]
fn one_invocation_says_nothing_about_the_next() {
    // A hundred calls on one connection, in the only invocation there is: it may be kept or not.
    assert_eq!(
        causes(&run("one", 1_000, 0, 1, 100, true), &["one"]),
        [("one".to_owned(), Cause::ConnectionsKept)]
    );
    assert_eq!(causes(&run("one", 1_000, 0, 1, 1, false), &["one"]), []);
}

#[test]
fn throttling_cold_starts_and_idle_closures_are_told() {
    let mut events = Vec::new();
    for n in 0..6_u64 {
        let from = n * 5_000_000;
        let mut i = invocation("small", n as u32, from, from + 40_000);
        if n == 0 {
            (i.start, i.init) = (Start::Cold, Some(us(from + 100, from + 10_100)));
        }
        i.duration_ms = 40.1;
        events.push(Event::Invocation(i));
        let at = from + 20_000;
        events.push(cpu(&[(at, 0, 0), (at + 1_000, 1_000, 0), (at + 19_000, 1_000, 18_000)]));
    }
    let c = connection(1, 4_000, 2_000, 3_000);
    events.push(Event::Connection(closed(c, 6_000, 4_006_000, ClosedBy::Server)));
    // Closed when the run ended: nobody met it.
    let c = connection(2, 4_001, 2_000, 3_000);
    events.push(Event::Connection(closed(c, 6_000, 90_000_000, ClosedBy::Server)));
    let facts = Facts::gather(&events);
    let found = findings(&facts, &by_variant(&facts), &context(&["small"]));
    let of =
        |cause| found.iter().find(|f| f.cause == cause).unwrap_or_else(|| panic!("{cause:?} in {found:#?}"));
    assert!(of(Cause::ColdStarts).text.starts_with("1 of 6 invocations waited"), "{found:#?}");
    let throttled = of(Cause::Throttled);
    assert!(throttled.text.contains("20 ms lattice") && throttled.text.contains("0.10 ms"), "{throttled:#?}");
    assert!(throttled.remedy.as_ref().is_some_and(|r| r.saves_ms > Some(10.0)), "{throttled:#?}");
    let idle = of(Cause::ClosedWhileIdle);
    assert!(idle.text.contains("closed 1 of 2 connections after 4.0 s"), "{}", idle.text);
    assert_eq!(idle.examples[0].0, "small-0");
}
