#!/usr/bin/env python3
"""Statement scripts, once direct and once through the proxy, with other clients in between; the outputs have to be equal.

usage: sessions.py mysql|postgres DIRECT_PORT PROXY_PORT [USER PASSWORD DATABASE]

Each script is a list of statements of one session. Before each statement another session borrows and changes connections: it runs a
transaction of its own, so that whatever was left on a shared connection is overwritten. Exit status 1 names what differs.
"""
import sys
import pymysql
import pymysql.constants.CLIENT as CLIENT
import psycopg

MYSQL = {
    "variables": ["SET NAMES latin1", "SELECT @@character_set_client, @@collation_connection",
                  "SET SESSION sql_mode = 'ANSI_QUOTES'", "SELECT \"a\" FROM (SELECT 1 AS a) t", "SELECT @@sql_mode"],
    "time zone": ["SET time_zone = '+09:00'", "SELECT @@time_zone", "SELECT FROM_UNIXTIME(0)"],
    "user variables": ["SET @a = 5", "SELECT @a", "SELECT @b := @a + 1", "SELECT @b"],
    "untracked": ["SET group_concat_max_len = 4", "SELECT GROUP_CONCAT(x) FROM (SELECT 11 x UNION SELECT 22) t",
                  "SET rand_seed1 = 1, rand_seed2 = 2", "SELECT RAND()"],
    "autocommit": ["SET autocommit = 0", "SELECT @@autocommit", "INSERT INTO d_t (v) VALUES ('x')", "SELECT COUNT(*) FROM d_t",
                   "ROLLBACK", "SELECT COUNT(*) FROM d_t", "SET autocommit = 1", "SELECT @@autocommit"],
    "transaction": ["START TRANSACTION", "INSERT INTO d_t (v) VALUES ('y')", "SAVEPOINT a", "INSERT INTO d_t (v) VALUES ('z')",
                    "ROLLBACK TO a", "SELECT COUNT(*) FROM d_t", "COMMIT", "SELECT COUNT(*) FROM d_t"],
    "isolation": ["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SELECT @@tx_isolation", "SELECT 1", "SELECT @@tx_isolation"],
    "row count": ["INSERT INTO d_t (v) VALUES ('1'), ('2')", "SELECT ROW_COUNT()"],
    "insert id": ["TRUNCATE d_t", "INSERT INTO d_t (v) VALUES ('1')", "SELECT LAST_INSERT_ID()", "SELECT 1", "SELECT LAST_INSERT_ID()",
                  "INSERT INTO d_t (id, v) VALUES (77, 'x')", "SELECT LAST_INSERT_ID()"],
    "warnings": ["SELECT CAST('abc' AS UNSIGNED)", "SHOW WARNINGS"],
    "found rows": ["SELECT SQL_CALC_FOUND_ROWS id FROM d_t LIMIT 1", "SELECT FOUND_ROWS()"],
    "temporary": ["CREATE TEMPORARY TABLE d_tmp (a INT)", "INSERT INTO d_tmp VALUES (1)", "SELECT * FROM d_tmp", "DROP TEMPORARY TABLE d_tmp"],
    "temporary in a procedure": ["DROP PROCEDURE IF EXISTS d_p", "CREATE PROCEDURE d_p() CREATE TEMPORARY TABLE d_tmp2 (a INT)",
                                 "CALL d_p()", "INSERT INTO d_tmp2 VALUES (3)", "SELECT * FROM d_tmp2"],
    "variable in a function": ["DROP FUNCTION IF EXISTS d_f",
                               "CREATE FUNCTION d_f() RETURNS INT DETERMINISTIC BEGIN SET @hidden = 9; RETURN 1; END",
                               "SELECT d_f()", "SELECT @hidden"],
    "setting in a procedure": ["DROP PROCEDURE IF EXISTS d_q", "CREATE PROCEDURE d_q() SET sql_select_limit = 1", "CALL d_q()",
                               "SELECT 1 UNION SELECT 2"],
    "locks": ["SELECT GET_LOCK('d_lock', 1)", "SELECT IS_USED_LOCK('d_lock') = CONNECTION_ID()", "SELECT RELEASE_LOCK('d_lock')"],
    "use": ["CREATE DATABASE IF NOT EXISTS d_other", "USE d_other", "SELECT DATABASE()", "SELECT 1", "SELECT DATABASE()"],
    "text prepare": ["PREPARE s FROM 'SELECT ? + 1'", "SET @p = 4", "EXECUTE s USING @p", "DEALLOCATE PREPARE s"],
    "several": ["SELECT 1; SELECT 2; SET @m = 3", "SELECT @m"],
    "errors": ["SELECT * FROM d_missing", "SELECT 1", "INSERT INTO d_t (id) VALUES (1), (1)", "SELECT COUNT(*) FROM d_t WHERE id = 1"],
    "tables locked": ["LOCK TABLES d_t READ", "INSERT INTO d_t (v) VALUES ('q')", "UNLOCK TABLES"],
    "long": ["SELECT LENGTH('%s')" % ("x" * 40000), "SELECT REPEAT('y', 100000)"],
}

POSTGRES = {
    "settings": ["SET search_path TO pg_catalog, public", "SHOW search_path", "SET work_mem = '5MB'", "SHOW work_mem",
                 "RESET work_mem", "SHOW work_mem"],
    "reported": ["SET TimeZone TO 'Asia/Tokyo'", "SHOW TimeZone", "SET DateStyle TO 'German'", "SELECT DATE '2026-11-21'"],
    "in a transaction": ["BEGIN", "SET work_mem = '6MB'", "COMMIT", "SHOW work_mem", "BEGIN", "SET work_mem = '7MB'", "ROLLBACK", "SHOW work_mem"],
    "local": ["BEGIN", "SET LOCAL work_mem = '8MB'", "SHOW work_mem", "COMMIT", "SHOW work_mem"],
    "savepoints": ["BEGIN", "SAVEPOINT a", "SET work_mem = '9MB'", "ROLLBACK TO a", "COMMIT", "SHOW work_mem"],
    "set_config": ["SELECT set_config('work_mem', '3MB', false)", "SHOW work_mem"],
    "temporary": ["CREATE TEMP TABLE d_tmp (a int)", "INSERT INTO d_tmp VALUES (1)", "SELECT * FROM d_tmp"],
    "prepared by text": ["PREPARE p AS SELECT 1 + $1::int", "EXECUTE p(4)", "DEALLOCATE p"],
    "function": ["CREATE OR REPLACE FUNCTION d_f() RETURNS int LANGUAGE sql AS $$ SELECT set_config('d.x', 'y', false); SELECT 1 $$",
                 "SELECT d_f()", "SELECT current_setting('d.x', true)"],
    "block": ["DO $$ BEGIN PERFORM set_config('d.z', 'w', false); END $$", "SELECT current_setting('d.z', true)"],
    "sequence": ["DROP SEQUENCE IF EXISTS d_s", "CREATE SEQUENCE d_s", "SELECT nextval('d_s')", "SELECT currval('d_s')", "SELECT lastval()"],
    "advisory": ["SELECT pg_advisory_lock(42)", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42",
                 "SELECT pg_advisory_unlock(42)"],
    "cursor": ["BEGIN", "DECLARE c CURSOR FOR SELECT generate_series(1, 3)", "FETCH 2 FROM c", "FETCH 2 FROM c", "COMMIT"],
    "hold": ["DECLARE h CURSOR WITH HOLD FOR SELECT generate_series(1, 3)", "FETCH 1 FROM h", "FETCH 1 FROM h", "CLOSE h"],
    "errors": ["SELECT * FROM d_missing", "SELECT 1", "BEGIN", "SELECT 1/0", "SELECT 1", "ROLLBACK", "SELECT 2"],
    "role": ["SET ROLE app", "SELECT current_user", "RESET ROLE"],
    "discard": ["SET work_mem = '2MB'", "DISCARD ALL", "SHOW work_mem"],
    "several": ["SELECT 1; SELECT 2", "SET work_mem = '1MB'; SELECT 5", "SHOW work_mem"],
    "long": ["SELECT length('%s')" % ("x" * 40000), "SELECT repeat('y', 100000)"],
}


def mysql_connect(port, account):
    return pymysql.connect(host="127.0.0.1", port=port, user=account[0], password=account[1], database=account[2],
                           autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS)


def mysql_run(connection, sql):
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            sets = [cursor.fetchall()]
            while cursor.nextset():
                sets.append(cursor.fetchall())
            return sets
    except pymysql.MySQLError as error:
        return ("error", error.args)


def mysql_disturb(connection):
    for sql in ("BEGIN", "SELECT LAST_INSERT_ID(991)", "SELECT ROW_COUNT(), @a, @hidden", "COMMIT", "SET sql_mode = 'PIPES_AS_CONCAT', time_zone = '+01:00'",
                "INSERT INTO d_noise (v) VALUES (1)", "SELECT 1 UNION SELECT 2 UNION SELECT 3", "SELECT CAST('x' AS SIGNED)"):
        mysql_run(connection, sql)


def postgres_connect(port, account):
    return psycopg.connect(host="127.0.0.1", port=port, user=account[0], password=account[1], dbname=account[2], autocommit=True,
                           prepare_threshold=0)


def postgres_run(connection, sql):
    try:
        # No parameters and a ClientCursor: the simple protocol, as several statements need it.
        cursor = psycopg.ClientCursor(connection)
        cursor.execute(sql)
        sets = []
        while True:
            sets.append((cursor.statusmessage, cursor.fetchall() if cursor.description else None))
            if not cursor.nextset():
                return sets
    except psycopg.Error as error:
        return ("error", error.sqlstate, str(error).splitlines()[0])


def postgres_disturb(connection):
    for sql in ("BEGIN", "SELECT 1", "COMMIT", "SET work_mem = '33MB'", "SET DateStyle TO 'SQL'", "SELECT 2"):
        postgres_run(connection, sql)


def main():
    family, direct, proxy = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    account = sys.argv[4:7] or ["app", "secret", "test"]
    if family == "mysql":
        connect, run, disturb, scripts = mysql_connect, mysql_run, mysql_disturb, MYSQL
        setup = ["DROP TABLE IF EXISTS d_t, d_noise", "CREATE TABLE d_t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(9)) ENGINE=InnoDB",
                 "CREATE TABLE d_noise (id INT AUTO_INCREMENT PRIMARY KEY, v INT) AUTO_INCREMENT=5000"]
    else:
        connect, run, disturb, scripts = postgres_connect, postgres_run, postgres_disturb, POSTGRES
        setup = []
    noise = [connect(proxy, account) for _ in range(2)]
    differing = errors = 0
    for name, script in scripts.items():
        outputs = []
        for port in (direct, proxy):
            session = connect(direct, account)
            for sql in setup:
                run(session, sql)
            session.close()
            session = connect(port, account)
            output = []
            for sql in script:
                for other in noise:
                    disturb(other)
                output.append(run(session, sql))
            session.close()
            outputs.append(output)
        for sql, expected, found in zip(script, *outputs):
            if expected != found:
                refused = found[0] == "error" and "not known any more" in str(found)
                errors += refused
                differing += not refused
                print(f"{'refused' if refused else 'DIFFERS'}: {name}: {sql[:80]}: {str(expected)[:120]} | {str(found)[:160]}")
    print(f"sessions {family}: {len(scripts)} scripts, {differing} differ, {errors} refused")
    sys.exit(differing > 0)


main()
