//! Connections to a database: who waited, who kept one, who opened too many.

use crate::support::{client, closed, connection, invocation};
use danki_explain::{Cause, Context, DatabaseSetting, Facts, Finding, Part, by_variant, findings};
use danki_record::{Change, ClosedBy, Connection, DatabaseEvent, DatabaseWhat, EnvEvent, EnvWhat, Event};
use std::net::SocketAddr;

const N: u32 = 20;
/// Each invocation takes 100 ms, one after the other, µs.
const LENGTH: u64 = 100_000;

fn server() -> SocketAddr {
    SocketAddr::from(([198, 18, 5, 1], 3306))
}

fn to_database(n: u32, from: u64) -> Connection {
    let port = 40_000 + u16::try_from(n).expect("few");
    let opened =
        Connection { server: server(), ..connection(u64::from(n), port, from + 1_000, from + 1_500) };
    closed(opened, from + 80_000, from + 81_000, ClosedBy::Client)
}

fn at_proxy(n: u32, at: u64, what: DatabaseWhat) -> Event {
    let port = 40_000 + u16::try_from(n).expect("few");
    let client = Some(client(port));
    Event::Database(DatabaseEvent {
        at_ns: at * 1_000,
        proxy: "pool".to_owned(),
        server: server(),
        client,
        what,
    })
}

/// Invocations that each open a connection, and what else happens in each.
fn facts(more: impl Fn(u32, u64) -> Vec<Event>) -> Facts {
    let mut events = vec![Event::Env(EnvEvent {
        at_ns: 0,
        env: crate::support::ENV,
        variant: "v".to_owned(),
        what: EnvWhat::Started,
    })];
    for n in 0..N {
        let from = u64::from(n) * LENGTH;
        events.push(Event::Invocation(invocation("v", n, from, from + 90_000)));
        events.push(Event::Connection(to_database(n, from)));
        events.extend(more(n, from));
    }
    Facts::gather(&events)
}

fn found(facts: &Facts, proxy: Option<&str>) -> Vec<Finding> {
    let class = "db.m5.large".to_owned();
    let setting = DatabaseSetting { proxy: proxy.map(str::to_owned), max_connections: 624, class };
    let context = Context { databases: [("v".to_owned(), setting)].into(), ..Context::default() };
    findings(facts, &by_variant(facts), &context)
        .into_iter()
        .filter(|f| f.cause.id().starts_with("db_"))
        .collect()
}

fn evidence(finding: &Finding, name: &str) -> f64 {
    finding.evidence.iter().find(|e| e.name == name).expect(name).value
}

#[test]
fn an_unshared_connection_for_each_invocation_is_a_storm() {
    let facts = facts(|_, _| Vec::new());
    let found = found(&facts, None);
    assert_eq!(found.iter().map(|f| f.cause.id()).collect::<Vec<_>>(), ["db_connection_storm"]);
    assert_eq!((evidence(&found[0], "opened"), evidence(&found[0], "peak")), (20.0, 1.0));
    assert!(
        found[0].text.contains("20 in 20 invocations, 1 at most at once of the 624"),
        "{}",
        found[0].text
    );
    assert!(found[0].text.contains("USD 21.90 a month"), "{}", found[0].text);
}

#[test]
fn a_database_s_goodbye_is_no_idle_cut_off() {
    // One invocation of 3 s whose connection ends after 2.5 s; the link saw no request on it.
    let long = |server: SocketAddr| {
        let opened = Connection { server, ..connection(1, 40_000, 1_000, 1_500) };
        let ended = closed(opened, 2_500_000, 2_500_000, ClosedBy::Server);
        let all = [Event::Invocation(invocation("v", 0, 0, 3_000_000)), Event::Connection(ended)];
        let facts = Facts::gather(&all);
        let found = findings(&facts, &by_variant(&facts), &Context::default());
        found.iter().filter(|f| f.cause == Cause::ClosedWhileIdle).count()
    };
    assert_eq!((long(server()), long(SocketAddr::from(([198, 18, 1, 1], 443)))), (0, 1));
}

#[test]
fn waiting_for_a_connection_is_told_by_its_share() {
    let wait =
        |n, from| vec![at_proxy(n, from + 50_000, DatabaseWhat::Borrowed { conn: 1, waited_ns: 36_000_000 })];
    let facts = facts(wait);
    let found = found(&facts, Some("pool"));
    assert_eq!(found.iter().map(|f| f.cause.id()).collect::<Vec<_>>(), ["db_pool_wait"]);
    assert!((evidence(&found[0], "wait_share_of_p95") - 0.4).abs() < 0.01, "{:?}", found[0].evidence);
    assert!(found[0].text.contains("40 % of p95"), "{}", found[0].text);
    let remedy = found[0].remedy.as_ref().expect("a remedy");
    assert_eq!((remedy.saves_ms, &remedy.change), (Some(36.0), &Some(Change::NoDbProxy)));
    // It is the endpoint's time, not unexplained.
    let waterfall = &by_variant(&facts)[0].invocations[0].1;
    assert_eq!(waterfall.parts[Part::ServiceTime], 36_000_000);
}

#[test]
fn a_pin_is_told_with_its_statement() {
    let pin = |n, from| {
        let (reason, digest) = ("a prepared statement".to_owned(), "select * from `users`".to_owned());
        let mut events = vec![at_proxy(n, from + 50_000, DatabaseWhat::Borrowed { conn: 1, waited_ns: 0 })];
        events.extend(
            (n % 2 == 0).then(|| at_proxy(n, from + 50_001, DatabaseWhat::Pinned { reason, digest })),
        );
        events
    };
    let found = found(&facts(pin), Some("pool"));
    assert_eq!(found.iter().map(|f| f.cause.id()).collect::<Vec<_>>(), ["db_pin"]);
    assert!(found[0].text.starts_with("10 of 20 sessions"), "{}", found[0].text);
    assert!(found[0].text.contains("a prepared statement: select * from `users`"), "{}", found[0].text);
}

#[test]
fn a_wait_in_vain_is_told_however_short() {
    let vain = |n, from| {
        let timed_out = DatabaseWhat::TimedOut { waited_ns: 1_000_000 };
        if n == 7 { vec![at_proxy(n, from + 50_000, timed_out)] } else { Vec::new() }
    };
    let found = found(&facts(vain), Some("pool"));
    assert!(found[0].text.contains("1 client waited in vain"), "{}", found[0].text);
}
