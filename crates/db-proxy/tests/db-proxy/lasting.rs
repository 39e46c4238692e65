//! What a client keeps: over a reload, over the end of the proxy, over the end of the server.

use crate::support::{Database, Kind};
use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;
use std::time::Duration;

/// More connections are allowed while somebody holds the only one: nobody is dropped, and the next need not wait.
fn check_reload(kind: Kind) {
    let Some(database) = Database::start(kind) else { return };
    let impatient = "connection_borrow_timeout = 0.2";
    let (proxy, _events) = database.proxy("", "max_connections = 1", impatient);
    let port = proxy.address().port();
    let mut holder = database.open(port);
    holder.tell("BEGIN");
    assert_eq!(holder.ask("SELECT 7").as_deref(), Some("7"));
    let (said, failed) = database.session(port, "SELECT 1");
    assert!(failed && said.contains("Timed-out waiting"), "{said}");

    proxy.reload(database.config("", "max_connections = 2", impatient));
    let (said, failed) = database.session(port, "SELECT 41 + 1");
    assert!(!failed && said.trim() == "42", "{said}");
    assert_eq!(holder.ask("SELECT 8").as_deref(), Some("8"));
    holder.tell("COMMIT");
    assert_eq!(holder.ask("SELECT 9").as_deref(), Some("9"));
    assert_eq!(proxy.metrics().client_connections_received.load(Relaxed), 3, "nobody had to come again");
}

#[test]
fn mysql_nobody_is_dropped_by_a_reload() {
    check_reload(Kind::MySql);
}

#[test]
fn postgres_nobody_is_dropped_by_a_reload() {
    check_reload(Kind::Postgres);
}

/// A transaction that is under way when the proxy is told to stop is committed; whoever comes then is not served.
fn check_drain(kind: Kind) {
    let Some(database) = Database::start(kind) else { return };
    let (proxy, _events) = database.proxy("drain_timeout_s = 20", "max_connections = 4", "");
    let port = proxy.address().port();
    let mut idle = database.open(port);
    assert_eq!(idle.ask("SELECT 1").as_deref(), Some("1"));
    let mut busy = database.open(port);
    busy.tell("BEGIN");
    busy.tell("INSERT INTO acks (v) VALUES (5)");
    assert_eq!(busy.ask("SELECT v FROM acks").as_deref(), Some("5"));

    proxy.stop();
    assert!((0..100).any(|_| database.session(port, "SELECT 1").1), "nobody new is served");
    assert_eq!(busy.ask("SELECT v + 1 FROM acks").as_deref(), Some("6"), "its transaction goes on");
    busy.tell("COMMIT");
    let (sender, ended) = channel();
    let ending = std::thread::spawn(move || {
        proxy.join();
        sender.send(()).expect("somebody waits");
    });
    ended.recv_timeout(Duration::from_secs(10)).expect("it ends with the last transaction");
    ending.join().expect("it has ended");
    let (said, failed) = database.session(database.port, "SELECT COUNT(*) FROM acks");
    assert!(!failed && said.trim() == "1", "{said}");
}

#[test]
fn mysql_a_transaction_ends_before_the_proxy_does() {
    check_drain(Kind::MySql);
}

#[test]
fn postgres_a_transaction_ends_before_the_proxy_does() {
    check_drain(Kind::Postgres);
}

/// The server dies and comes again: who was in no transaction keeps the connection and asks on.
fn check_restart(kind: Kind) {
    let Some(mut database) = Database::start(kind) else { return };
    let (proxy, _events) = database.proxy("", "max_connections = 4", "connection_borrow_timeout = 20");
    let mut session = database.open(proxy.address().port());
    assert_eq!(session.ask("SELECT 1").as_deref(), Some("1"));
    database.restart();
    assert_eq!(session.ask("SELECT 2").as_deref(), Some("2"));
    assert_eq!(proxy.metrics().client_connections_received.load(Relaxed), 1, "the same connection");
}

#[test]
fn mysql_an_idle_client_outlives_the_server() {
    check_restart(Kind::MySql);
}

#[test]
fn postgres_an_idle_client_outlives_the_server() {
    check_restart(Kind::Postgres);
}

/// Another server takes over under the same name: who was in no transaction goes on there.
fn check_takeover(kind: Kind, whose: &str) {
    let (Some(old), Some(new)) = (Database::start(kind), Database::start(kind)) else { return };
    let place = Arc::new(AtomicU16::new(old.port));
    let (proxy, events) = old.proxy_to(Arc::clone(&place));
    let mut session = old.open(proxy.address().port());
    assert_eq!(session.ask(whose), Some(old.port.to_string()));
    place.store(new.port, Relaxed);
    drop(old);
    assert_eq!(session.ask(whose), Some(new.port.to_string()));
    assert_eq!(proxy.metrics().client_connections_received.load(Relaxed), 1, "the same connection");
    assert!(events.try_iter().any(|event| event.contains("its name leads elsewhere")));
}

#[test]
fn mysql_an_idle_client_follows_a_failover() {
    check_takeover(Kind::MySql, "SELECT @@port");
}

#[test]
fn postgres_an_idle_client_follows_a_failover() {
    check_takeover(Kind::Postgres, "SELECT setting FROM pg_settings WHERE name = 'port'");
}

/// A primary that has become a replica refuses writes: its connections are given up, its clients are not.
#[test]
fn mysql_connections_to_a_server_that_takes_no_writes_are_given_up() {
    let Some(database) = Database::start(Kind::MySql) else { return };
    database.admin("REVOKE READ_ONLY ADMIN ON *.* FROM app");
    let (proxy, events) = database.proxy("", "max_connections = 4", "");
    let mut session = database.open(proxy.address().port());
    assert_eq!(session.ask("SELECT 1").as_deref(), Some("1"));
    let opened = || proxy.metrics().database_connections_setup_succeeded.load(Relaxed);
    let before = opened();
    database.admin("SET GLOBAL read_only = 1");
    session.tell("INSERT INTO acks (v) VALUES (1)");
    assert_eq!(session.ask("SELECT 2").as_deref(), Some("2"));
    assert_eq!(opened(), before + 1, "over another connection");
    assert!(events.try_iter().any(|event| event.contains("it takes no writes any more")));
    database.admin("SET GLOBAL read_only = 0");
    session.tell("INSERT INTO acks (v) VALUES (1)");
    assert_eq!(session.ask("SELECT COUNT(*) FROM acks").as_deref(), Some("1"));
}
