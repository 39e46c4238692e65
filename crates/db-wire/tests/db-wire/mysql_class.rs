//! What pins a MySQL session, as RDS Proxy documents it, and what careful multiplexing makes of it.

use danki_db_wire::sql::{Cause, mysql};
use proptest::prelude::*;

fn check(sql: &str, rds: Option<Cause>, smart: Option<Cause>) {
    let class = mysql(sql.as_bytes());
    assert_eq!((class.rds, class.smart), (rds, smart), "{sql}");
}

#[test]
fn mysql_pins_as_documented() {
    use Cause::*;
    let cases: &[(&str, Option<Cause>, Option<Cause>)] = &[
        ("SELECT 1", None, None),
        ("lock tables t read", Some(TableLock), Some(TableLock)),
        ("LOCK TABLE t WRITE", Some(TableLock), Some(TableLock)),
        ("FLUSH TABLES WITH READ LOCK", Some(TableLock), Some(TableLock)),
        ("SELECT GET_LOCK('a', 1)", Some(NamedLock), Some(NamedLock)),
        ("SET @x = 1", Some(UserVariable), Some(UserVariable)),
        ("SELECT @x := 1", Some(UserVariable), Some(UserVariable)),
        ("SELECT a, b INTO @x, @y FROM t", Some(UserVariable), Some(UserVariable)),
        ("SELECT @x", None, Some(UserVariable)),
        ("SET group_concat_max_len = 1", Some(Setting), None),
        ("SET SESSION sql_mode = 'ANSI'", None, None),
        ("SET NAMES utf8mb4 COLLATE utf8mb4_bin", None, None),
        ("SET CHARACTER SET latin1", None, None),
        ("SET autocommit=0, time_zone='+00:00'", None, None),
        ("SET autocommit=0, foreign_key_checks=0", Some(Setting), None),
        ("SET sql_mode=(SELECT CONCAT(@@sql_mode, ',ANSI'))", None, None),
        ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", None, None),
        ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", Some(NextTransaction), Some(NextTransaction)),
        ("SET @@transaction_isolation = 'SERIALIZABLE'", Some(NextTransaction), Some(NextTransaction)),
        ("SET @@session.transaction_isolation = 'SERIALIZABLE'", None, None),
        ("CREATE TEMPORARY TABLE t (a INT)", Some(Temporary), Some(Temporary)),
        ("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", Some(Temporary), Some(Temporary)),
        ("SELECT ROW_COUNT()", Some(Previous), None),
        ("SELECT SQL_CALC_FOUND_ROWS * FROM t", None, Some(Previous)),
        ("PREPARE s FROM 'SELECT 1'", Some(Prepared), Some(Prepared)),
        ("SELECT /*! STRAIGHT_JOIN */ 1", Some(ExecutableComment), Some(ExecutableComment)),
        ("/*M! SELECT 1 */", Some(ExecutableComment), Some(ExecutableComment)),
        ("SELECT 'SET @x = 1' -- LOCK TABLES", None, None),
        ("CALL p()", None, None),
        ("SET session_track_gtids = 'OWN_GTID'", Some(Setting), None),
        ("SET session_track_schema = 1", None, None),
        ("SELECT 1; SET @x = 1", Some(UserVariable), Some(UserVariable)),
        ("SELECT CONNECTION_ID()", None, Some(Identity)),
        ("SET GLOBAL max_connections = 5", None, None),
    ];
    for (sql, rds, smart) in cases {
        check(sql, *rds, *smart);
    }
}

#[test]
fn filters_excuse_sets_only() {
    assert!(mysql(b"SET @x = 1").only_sets);
    assert!(mysql(b"SET sql_select_limit = 1").only_sets);
    assert!(!mysql(b"SELECT @x := 1").only_sets);
    assert!(!mysql(b"LOCK TABLES t READ").only_sets);
}

#[test]
fn long_statements_pin() {
    let sql = format!("SELECT '{}'", "x".repeat(16 * 1024));
    assert_eq!(mysql(sql.as_bytes()).rds, Some(Cause::LongStatement));
}

#[test]
fn questions_and_kills_are_seen() {
    assert!(mysql(b"SHOW WARNINGS").previous && mysql(b"SHOW COUNT(*) ERRORS").previous);
    assert!(mysql(b"GET DIAGNOSTICS @a = NUMBER").previous);
    assert!(mysql(b"SELECT last_insert_id()").last_id && mysql(b"SELECT @@identity").last_id);
    let kill = mysql(b"KILL QUERY 42").kill.expect("a number is there");
    assert_eq!((kill.id, kill.at), (42, (11, 13)));
    assert!(!mysql(b"SELECT COUNT(*), cast(a AS CHAR(3)), ZZ FROM t WHERE a IN (1)").doubt);
    assert!(mysql(b"SELECT f(1)").doubt && mysql(b"CALL p()").doubt && !mysql(b"SELECT a FROM t").doubt);
}

proptest! {
    #[test]
    fn arbitrary_statements_never_panic(sql: Vec<u8>) {
        let _class = mysql(&sql);
    }

    #[test]
    fn statements_of_words_never_panic(words in prop::collection::vec(prop::sample::select(vec![
        "SET", "@a", "@@b", "=", ",", "(", ")", ";", "KILL", "99999999999999", "/*!", "*/", "INTO", "'", "USE", "session", "transaction",
    ]), 0..12)) {
        let _class = mysql(words.join(" ").as_bytes());
    }
}
