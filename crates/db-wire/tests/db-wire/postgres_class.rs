//! What pins a PostgreSQL session, as RDS Proxy documents it, and what careful multiplexing makes of it.

use danki_db_wire::sql::{Cause, Dialect, digest, postgres};
use proptest::prelude::*;

fn check(sql: &str, rds: Option<Cause>, smart: Option<Cause>) {
    let class = postgres(sql.as_bytes());
    assert_eq!((class.rds, class.smart), (rds, smart), "{sql}");
}

#[test]
fn postgres_pins_as_documented() {
    use Cause::*;
    let cases: &[(&str, Option<Cause>, Option<Cause>)] = &[
        ("SELECT 1", None, None),
        ("set search_path to a, b", Some(Setting), None),
        ("SET LOCAL work_mem = '1MB'", Some(Setting), None),
        ("SET SESSION statement_timeout = 100", Some(Setting), None),
        ("SET ROLE other", Some(Setting), Some(Setting)),
        ("SET TIME ZONE 'UTC'", Some(Setting), Some(Setting)),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", None, None),
        ("SET a = 1; SET b = 2", Some(Setting), Some(Setting)),
        ("RESET work_mem", Some(Setting), None),
        ("RESET ALL", Some(Setting), Some(Setting)),
        ("SELECT set_config('a.b', 'c', false)", Some(Setting), Some(Setting)),
        ("PREPARE p AS SELECT 1", Some(Prepared), Some(Prepared)),
        ("EXECUTE p", Some(Prepared), Some(Prepared)),
        ("DEALLOCATE ALL", Some(Prepared), None),
        ("DISCARD ALL", Some(Prepared), None),
        ("CREATE TEMP TABLE t (a int)", Some(Temporary), Some(Temporary)),
        ("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1", Some(Temporary), Some(Temporary)),
        ("SELECT 1 INTO TEMP t", Some(Temporary), Some(Temporary)),
        ("DECLARE c CURSOR FOR SELECT 1", Some(Cursor), None),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", Some(Cursor), Some(Cursor)),
        ("LISTEN a", Some(Listen), Some(Listen)),
        ("LOAD 'auto_explain'", Some(Library), Some(Library)),
        ("SELECT nextval('s')", Some(Sequence), Some(Sequence)),
        ("SELECT pg_advisory_lock(1)", Some(NamedLock), Some(NamedLock)),
        ("SELECT pg_try_advisory_lock_shared(1)", Some(NamedLock), Some(NamedLock)),
        ("SELECT pg_advisory_xact_lock(1)", None, None),
        ("SELECT pg_try_advisory_xact_lock_shared(1)", None, None),
        ("CALL p()", None, Some(Opaque)),
        ("DO $$ BEGIN PERFORM set_config('a.b', 'c', false); END $$", None, Some(Opaque)),
        ("SELECT my_function(1)", None, Some(Opaque)),
        ("SELECT count(*), now(), coalesce(a, 1) FROM t WHERE a IN (1, 2)", None, None),
        ("INSERT INTO t (a, b) VALUES (1, 'SET x') RETURNING a", None, None),
        ("INSERT INTO s.t (a) VALUES (1)", None, None),
        ("WITH x (a) AS (SELECT 1) SELECT a::numeric(10, 2) FROM x", None, None),
        ("CREATE TABLE t (a varchar(10), PRIMARY KEY (a))", None, None),
        ("SELECT pg_backend_pid()", None, Some(Identity)),
        ("-- LISTEN\nSELECT 'LISTEN' /* LISTEN */", None, None),
    ];
    for (sql, rds, smart) in cases {
        check(sql, *rds, *smart);
    }
}

#[test]
fn settings_are_read() {
    let setting = |sql: &str| postgres(sql.as_bytes()).settings;
    assert_eq!(setting("set search_path to $1,$2")[0].1.as_deref(), Some("$1,$2"));
    assert_eq!(setting("SET x.y = 1"), []);
    assert_eq!(setting("SET work_mem = '4MB';"), [("work_mem".to_owned(), Some("'4MB'".to_owned()))]);
    assert_eq!(setting("SET work_mem TO DEFAULT"), [("work_mem".to_owned(), None)]);
    assert_eq!(setting("RESET \"Work_Mem\""), [("Work_Mem".to_owned(), None)]);
}

#[test]
fn dropped_statements_are_named() {
    assert_eq!(postgres(b"DEALLOCATE PREPARE \"_pg3_0\"").deallocate, Some(Some("_pg3_0".into())));
    assert_eq!(postgres(b"deallocate ALL").deallocate, Some(None));
    assert!(postgres(b"DISCARD ALL").discard_all);
    assert!(postgres(b"ROLLBACK TO SAVEPOINT a").savepoint && !postgres(b"ROLLBACK").savepoint);
}

#[test]
fn definitions_that_others_may_mean_are_seen() {
    let check = |sql: &str, expect: bool| assert_eq!(postgres(sql.as_bytes()).defines, expect, "{sql}");
    for sql in [
        "CREATE TABLE t (a int)",
        "select 1; ALTER TYPE x ADD VALUE 'y'",
        "DROP VIEW v",
        "SELECT 1 INTO t",
        "DO $$ BEGIN END $$",
    ] {
        check(sql, true);
    }
    for sql in [
        "SELECT * FROM t",
        "INSERT INTO t VALUES (1)",
        "CREATE TEMP TABLE t (a int)",
        "TRUNCATE t",
        "COMMENT ON TABLE t IS ''",
    ] {
        check(sql, false);
    }
}

#[test]
fn digests_have_no_data() {
    let sql = b"SELECT * FROM t  WHERE a = 'secret' AND b IN (17, $1)";
    assert_eq!(digest(sql, Dialect::Postgres, 100), "SELECT * FROM t WHERE a = $1 AND b IN ($2, $3)");
    assert_eq!(digest("SÉLECT 'x'".as_bytes(), Dialect::MySql, 2), "S");
}

proptest! {
    #[test]
    fn arbitrary_statements_never_panic(sql: Vec<u8>, longest in 0_usize..50) {
        let _class = postgres(&sql);
        let _digest = digest(&sql, Dialect::Postgres, longest);
        let _digest = digest(&sql, Dialect::MySql, longest);
    }
}
