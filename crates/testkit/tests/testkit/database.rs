//! A database of the region, and functions in PHP that use it.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]
#![allow(clippy::print_stdout, reason = "a test that skips says so")]

use danki_database::{Config, EngineFamily};

use danki_model::FunctionSpec;
use danki_record::{DatabaseWhat, Event};
use danki_testkit::{Lab, Recorded, Reply, Settings, eventually, function, skipped};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Two proxies, each with a pool of one.
fn config() -> Config {
    let one = json!({"max_connections_percent": 1, "connection_borrow_timeout": 0.3});
    let proxy = |name: &str, mode: &str| json!({"name": name, "mode": mode, "pool": one});
    let config = json!({"users": 100, "max_connections": 100, "proxy": [proxy("rds", "rds"), proxy("smart", "smart")]});
    serde_json::from_value(config).unwrap()
}

fn postgresql() -> Config {
    Config { engine: EngineFamily::Postgresql, ..config() }
}

fn skips(what: &str) -> bool {
    let missing = ["/usr/sbin/mariadbd", "/usr/lib/postgresql", "/usr/bin/php"]
        .into_iter()
        .find(|program| !Path::new(program).exists());
    if let Some(program) = missing {
        println!("skipped: {what}: there is no {program}");
    }
    missing.is_some() || skipped(what)
}

fn start(name: &str, config: Config) -> Lab {
    Lab::start(name, Settings { database: Some(config), ..Settings::default() }).unwrap()
}

/// A function at MariaDB or a proxy of it, with variables of its own.
fn at(spec: FunctionSpec, name: &str, proxy: Option<&str>, more: &[(&str, &str)]) -> FunctionSpec {
    at_that(&config(), spec, name, proxy, more)
}

fn at_that(
    config: &Config,
    mut spec: FunctionSpec,
    name: &str,
    proxy: Option<&str>,
    more: &[(&str, &str)],
) -> FunctionSpec {
    let of_database = config.variables(proxy, &spec.region);
    spec.environment.extend(of_database.map(|(name, value)| (name.to_owned(), value)));
    let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    spec.environment.extend(more);
    name.clone_into(&mut spec.name);
    spec.memory = 1_769.try_into().unwrap();
    spec.timeout_ms = 10_000;
    spec
}

fn check_page(reply: &Reply) {
    let page = reply.json();
    assert_eq!((&page["statusCode"], &page["users"]), (&json!(200), &json!(100)), "{}", reply.text());
    assert!(page["body"].as_str().unwrap().contains("user100@example.com"), "{}", reply.text());
}

fn told(recorded: &Recorded, of: impl Fn(&DatabaseWhat) -> bool) -> usize {
    let told = recorded.events.iter().filter(|event| matches!(event, Event::Database(e) if of(&e.what)));
    told.count()
}

const BUNDLE: (&str, &str) = ("MYSQL_ATTR_SSL_CA", "/etc/ssl/certs/ca-certificates.crt");
const NATIVE: (&str, &str) = ("DB_PREPARES", "native");

#[test]
fn php_reads_a_database_straight_and_through_proxies() {
    if skips("database") {
        return;
    }
    let lab = start("database", config());
    let check = |name: &str, proxy: Option<&str>, more: &[(&str, &str)]| {
        let function = lab.deploy(at(function("users-php").unwrap(), name, proxy, more)).unwrap();
        check_page(&function.invoke(&json!({})).unwrap());
        check_page(&function.invoke(&json!({})).unwrap());
    };
    check("straight", None, &[]);
    // The certificates name the hosts, and the functions' bundle holds their CA.
    check("straight-tls", None, &[BUNDLE]);
    check("rds", Some("rds"), &[]);
    check("rds-tls", Some("rds"), &[BUNDLE]);
    check("smart-native", Some("smart"), &[NATIVE]);
    let recorded = lab.stop().unwrap();
    assert_eq!(recorded.left, Vec::<String>::new());
    assert_eq!(told(&recorded, |what| matches!(what, DatabaseWhat::Pinned { .. })), 0);
    // Without and with TLS the proxy needs one each; the pool of one makes room.
    let opened = told(&recorded, |what| matches!(what, DatabaseWhat::Opened { .. }));
    assert!((3..=4).contains(&opened), "{opened}");
    let facts = recorded.facts();
    let of = |variant: &str| facts.envs.values().find(|env| env.variant.as_deref() == Some(variant)).unwrap();
    let answered = |e: &&danki_record::DatabaseEvent| matches!(e.what, DatabaseWhat::Answered { .. });
    assert_eq!(of("straight").at_proxies.len(), 0);
    assert!(of("rds").at_proxies.iter().filter(answered).count() >= 2, "joined by the client's address");
}

#[test]
fn php_reads_postgresql_straight_and_through_proxies() {
    if skips("postgresql") {
        return;
    }
    let lab = start("postgresql", postgresql());
    let check = |name: &str, proxy: Option<&str>, more: &[(&str, &str)]| {
        let spec = at_that(&postgresql(), function("users-php").unwrap(), name, proxy, more);
        let function = lab.deploy(spec).unwrap();
        check_page(&function.invoke(&json!({})).unwrap());
        check_page(&function.invoke(&json!({})).unwrap());
    };
    let tls = [("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", BUNDLE.1)];
    check("straight", None, &[("PGSSLMODE", "disable"), ("DB_SETS", "1")]);
    check("straight-tls", None, &tls);
    check("rds-tls", Some("rds"), &tls);
    check("smart-native", Some("smart"), &[NATIVE, ("PGSSLMODE", "disable")]);
    let recorded = lab.stop().unwrap();
    assert_eq!(recorded.left, Vec::<String>::new());
    assert_eq!(told(&recorded, |what| matches!(what, DatabaseWhat::Opened { .. })), 2, "one for each proxy");
    let facts = recorded.facts();
    let answered = |e: &danki_record::DatabaseEvent| matches!(e.what, DatabaseWhat::Answered { .. });
    let of_proxy = |env: &&danki_explain::EnvFacts| env.variant.as_deref() == Some("smart-native");
    let smart = facts.envs.values().find(of_proxy).unwrap();
    assert!(smart.at_proxies.iter().any(answered), "joined by the client's address");
}

#[test]
fn a_pinned_session_keeps_others_waiting_in_vain() {
    if skips("database pinned") {
        return;
    }
    let lab = start("pinned", config());
    // A persistent connection that has prepared a statement: its env holds the pool's only one.
    let keeps = [NATIVE, ("DB_PERSISTENT", "1"), ("BREF_LOOP_MAX", "10")];
    let holder = lab.deploy(at(function("users-php").unwrap(), "holder", Some("rds"), &keeps)).unwrap();
    check_page(&holder.invoke(&json!({})).unwrap());
    let other = lab.deploy(at(function("users-php").unwrap(), "other", Some("rds"), &[])).unwrap();
    let refused = other.invoke(&json!({})).unwrap().json();
    assert_eq!(refused["statusCode"], 500);
    let said = refused["error"].as_str().unwrap();
    assert!(
        said.contains("9501") && said.contains("Timed-out waiting to acquire database connection"),
        "{said}"
    );
    let recorded = lab.stop().unwrap();
    assert_eq!(recorded.left, Vec::<String>::new());
    let of_statement = |what: &DatabaseWhat| matches!(what, DatabaseWhat::Pinned { digest, .. } if digest.contains("select * from `users`"));
    assert_eq!(told(&recorded, of_statement), 1);
    assert_eq!(told(&recorded, |what| matches!(what, DatabaseWhat::TimedOut { .. })), 1);
}

#[test]
fn a_user_s_sql_is_run_once_and_its_mistakes_are_told() {
    if skips("database seed") {
        return;
    }
    let insert = "INSERT INTO users VALUES (1, 'one', 'user100@example.com', '2020-01-01');";
    for config in [config(), postgresql()] {
        let dir = tempfile::tempdir().unwrap();
        let sql = dir.path().join("seed.sql");
        let with = |text: &str| {
            std::fs::write(&sql, text).unwrap();
            let database = Config { sql: Some(sql.clone()), users: 0, proxy: Vec::new(), ..config.clone() };
            Lab::start("seed", Settings { database: Some(database), ..Settings::default() })
        };
        let table = "CREATE TABLE users (id INT, name TEXT, email TEXT, created_at TIMESTAMP);";
        let lab = with(&format!("{table}\n{insert}")).unwrap();
        let spec = at_that(&config, function("users-php").unwrap(), "seeded", None, &[]);
        let function = lab.deploy(spec).unwrap();
        assert_eq!(function.invoke(&json!({})).unwrap().json()["users"], 1);
        assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
        let error = with("CREATE TABEL users (id INT);").err().unwrap().to_string();
        assert!(error.contains("region.database.sql") && error.contains("TABEL"), "{error}");
    }
}

#[test]
fn a_php_process_may_end_with_each_invocation() {
    if skipped("php processes") {
        return;
    }
    let lab = Lab::start("php", Settings::default()).unwrap();
    let code = "<?php $n = 0; return function () use (&$n) { return ['n' => ++$n, 'pid' => getmypid()]; };";
    let invoke = |loops: Option<&str>| -> (Vec<Value>, Vec<Value>) {
        let mut spec = lab.write("index.php", code).unwrap();
        spec.environment.extend(loops.map(|n| ("BREF_LOOP_MAX".to_owned(), n.to_owned())));
        let function = lab.deploy(spec).unwrap();
        let answers: Vec<Value> = (0..3).map(|_| function.invoke(&json!({})).unwrap().json()).collect();
        answers.iter().map(|a| (a["n"].clone(), a["pid"].clone())).unzip()
    };
    assert_eq!(invoke(None).0, [1, 1, 1]);
    let (counts, pids) = invoke(Some("100"));
    assert_eq!(counts, [1, 2, 3]);
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
}

#[test]
fn what_waits_for_a_cpu_is_the_program_behind_the_shell() {
    if skipped("php cpu wait") {
        return;
    }
    let lab = Lab::start("php-wait", Settings::default()).unwrap();
    let code =
        "<?php return function () { for ($t = hrtime(true); hrtime(true) - $t < 1.5e8;) {} return []; };";
    let mut spec = lab.write("index.php", code).unwrap();
    spec.environment.insert("BREF_LOOP_MAX".to_owned(), "100".to_owned());
    let function = lab.deploy(spec).unwrap();
    // At 128 MB it is throttled most of the time, which is waiting too; the shell does not run at all.
    function.invoke(&json!({})).unwrap();
    function.invoke(&json!({})).unwrap();
    let waited = |events: &[Event]| {
        let series = events.iter().filter_map(|event| match event {
            Event::CpuWait(series) => {
                Some(series.samples.last()?.waited_ns - series.samples.first()?.waited_ns)
            }
            _ => None,
        });
        series.max().unwrap_or(0)
    };
    assert!(
        eventually(Duration::from_secs(5), || waited(&lab.events()) > 50_000_000),
        "{}",
        waited(&lab.events())
    );
    assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
}
