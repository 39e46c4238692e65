//! Many sessions on few connections, against real servers: what a session sees is what it would see alone.

use crate::support::{Database, Kind};
use danki_db_proxy::Running;
use std::sync::atomic::Ordering::Relaxed;

/// Sessions at a time; they share two connections.
const SESSIONS: usize = 6;

const MYSQL: &str = "SET time_zone = '+0#:00'; SELECT @@time_zone; SET SESSION sql_mode = 'ANSI'; SELECT @@sql_mode; \
    SELECT @@time_zone; START TRANSACTION; INSERT INTO acks (v) VALUES (-#), (-#); SELECT COUNT(*) FROM acks WHERE v = -#; ROLLBACK; \
    SELECT COUNT(*) FROM acks WHERE v = -#; SET NAMES latin1; SELECT @@character_set_client; USE mysql; SELECT DATABASE(); \
    USE shop; SELECT DATABASE(); SET @x = #; SELECT @x + 1; CREATE TEMPORARY TABLE tmp (a INT); INSERT INTO tmp VALUES (#); \
    SELECT a FROM tmp; SELECT * FROM missing; SELECT @x";

const POSTGRES: &str = "SET work_mem = '10#kB'; SHOW work_mem; SET TimeZone TO 'Etc/GMT-#'; SHOW TimeZone; BEGIN; \
    INSERT INTO acks (v) VALUES (-#); SELECT count(*) FROM acks WHERE v = -#; ROLLBACK; SELECT count(*) FROM acks WHERE v = -#; \
    SET search_path TO pg_catalog, public; SHOW search_path; SHOW work_mem; SELECT 1/0; SHOW TimeZone; \
    CREATE TEMP TABLE tmp (a int); INSERT INTO tmp VALUES (#); SELECT a FROM tmp";

fn check_sessions(kind: Kind, script: &str) {
    let Some(database) = Database::start(kind) else { return };
    let (proxy, _events) = database.proxy("", "max_connections = 2", "");
    std::thread::scope(|scope| {
        for number in 1..=SESSIONS {
            let (database, proxy) = (&database, &proxy);
            let script = script.replace('#', &number.to_string());
            scope.spawn(move || {
                let expected = database.session(database.port, &script);
                for _ in 0..3 {
                    assert_eq!(
                        database.session(proxy.address().port(), &script),
                        expected,
                        "session {number}"
                    );
                }
            });
        }
    });
    assert!(opened(&proxy) >= 2, "the sessions were shared out");
}

fn opened(proxy: &Running) -> u64 {
    proxy.metrics().database_connections_setup_succeeded.load(Relaxed)
}

#[test]
fn mysql_sessions_do_not_see_each_other() {
    check_sessions(Kind::MySql, MYSQL);
}

#[test]
fn postgres_sessions_do_not_see_each_other() {
    check_sessions(Kind::Postgres, POSTGRES);
}

/// One connection, and somebody holds it in a transaction for longer than others wait.
fn check_timeout(kind: Kind, hold: &str, words: &str) {
    let Some(database) = Database::start(kind) else { return };
    let (proxy, events) = database.proxy("", "max_connections = 1", "connection_borrow_timeout = 0.2");
    let port = proxy.address().port();
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| database.session(port, hold));
        // The connection has been opened for the holder.
        while !events.recv().expect("the proxy runs").contains("was borrowed") {}
        let (said, failed) = database.session(port, "SELECT 1");
        assert!(failed && said.contains(words), "{said}");
        let (said, failed) = holder.join().expect("the holder ends");
        assert!(!failed, "{said}");
    });
    let (said, failed) = database.session(port, "SELECT 41 + 1");
    assert!(!failed && said.trim() == "42", "{said}");
    assert_eq!(opened(&proxy), 1);
    assert_eq!(proxy.metrics().borrow_timeouts.load(Relaxed), 1);
    proxy.stop();
    proxy.join();
}

#[test]
fn mysql_waiters_get_rds_proxy_s_error() {
    check_timeout(
        Kind::MySql,
        "START TRANSACTION; INSERT INTO acks (v) VALUES (1); SELECT SLEEP(3); COMMIT",
        "ERROR 9501 (HY000) at line 1: Timed-out waiting to acquire database connection",
    );
}

#[test]
fn postgres_waiters_get_rds_proxy_s_error() {
    check_timeout(
        Kind::Postgres,
        "BEGIN; SELECT pg_sleep(3); COMMIT",
        "Timed-out waiting to acquire database connection.",
    );
}

/// Clients insert while their database connections are killed: what was acknowledged is there, and nothing more than what was under
/// way when a connection died.
fn check_chaos(kind: Kind, insert: &str, ack: &str, kill: &str) {
    const CLIENTS: usize = 6;
    const INSERTS: usize = 60;
    let Some(database) = Database::start(kind) else { return };
    let (proxy, _events) = database.proxy("", "max_connections = 3", "");
    let port = proxy.address().port();
    let script = [insert].repeat(INSERTS).join(";");
    let acknowledged: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| database.session(port, &script).0.matches(ack).count()))
            .collect();
        for _ in 0..10 {
            database.session(database.port, kill);
        }
        clients.into_iter().map(|client| client.join().expect("a client ends")).sum()
    });
    // Not through the proxy: it may not have noticed yet that the last connection was killed.
    let (counted, failed) = database.session(database.port, "SELECT COUNT(*) FROM acks");
    assert!(!failed, "{counted}");
    let rows: usize = counted.trim().parse().expect("a number");
    assert!(
        rows >= acknowledged && rows <= acknowledged + CLIENTS,
        "{rows} rows, {acknowledged} acknowledged"
    );
}

#[test]
fn mysql_acknowledged_inserts_survive_killed_connections() {
    let kill = "SELECT GROUP_CONCAT('KILL ', id SEPARATOR ';') FROM information_schema.processlist WHERE user = 'app' \
                AND id <> CONNECTION_ID() INTO @k; EXECUTE IMMEDIATE SUBSTRING_INDEX(@k, ';', 1)";
    check_chaos(Kind::MySql, "INSERT INTO acks (v) VALUES (1); SELECT 'ack', ROW_COUNT()", "ack\t1", kill);
}

#[test]
fn postgres_acknowledged_inserts_survive_killed_connections() {
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app' AND pid <> pg_backend_pid() LIMIT 1";
    check_chaos(Kind::Postgres, "INSERT INTO acks (v) VALUES (1)", "INSERT 0 1", kill);
}
