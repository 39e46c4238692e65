#!/usr/bin/env python3
"""What drivers do that statement scripts do not: prepared statements, pipelines, COPY, files, large packets, cancelling, many at once.

usage: drivers.py mysql|postgres PROXY_PORT [USER PASSWORD DATABASE]
"""
import asyncio
import os
import sys
import tempfile
import threading
import time


COM_STMT_PREPARE = 0x16


def mysql(port, account):
    import pymysql
    done = []

    def connect(**more):
        return pymysql.connect(host="127.0.0.1", port=port, user=account[0], password=account[1], database=account[2], autocommit=True, **more)

    def one(connection, sql, *args):
        with connection.cursor() as cursor:
            cursor.execute(sql, args or None)
            return cursor.fetchall()

    connection = connect(local_infile=True, max_allowed_packet=64 << 20)
    large = "x" * (18 << 20)
    one(connection, "SET GLOBAL max_allowed_packet = 67108864")
    connection.close()
    connection = connect(local_infile=True, max_allowed_packet=64 << 20)
    # The connection behind it may be older than the setting: a fresh one is asked for by pinning.
    try:
        assert one(connection, "SELECT LENGTH(%s)", large)[0][0] == len(large)
        done.append("a statement above 16 MiB")
    except pymysql.MySQLError as error:
        done.append(f"a statement above 16 MiB: {error.args[0]}")
        connection = connect(local_infile=True)
    # PyMySQL itself never prepares.
    connection._execute_command(COM_STMT_PREPARE, ("SELECT '" + "x" * 1_000_000 + "' AS a").encode())
    columns = int.from_bytes(connection._read_packet().get_all_data()[5:7], "little")
    for _ in range(columns + 1):
        connection._read_packet()
    assert columns == 1 and one(connection, "SELECT 6") == ((6,),)
    done.append("a prepared statement of 1 MB")
    assert len(one(connection, "SELECT REPEAT('y', 15000000)")[0][0]) == 15000000
    done.append("a row of 15 MB")
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("1,a\n2,b\n3,c\n")
        file.flush()
        one(connection, "SET GLOBAL local_infile = 1")
        one(connection, "CREATE TABLE IF NOT EXISTS d_file (a INT, b CHAR(1))")
        one(connection, "TRUNCATE d_file")
        one(connection, f"LOAD DATA LOCAL INFILE '{file.name}' INTO TABLE d_file FIELDS TERMINATED BY ','")
        assert one(connection, "SELECT COUNT(*), SUM(a) FROM d_file") == ((3, 6),)
    done.append("LOCAL INFILE")
    victim = connect()
    ended = []
    waiter = threading.Thread(target=lambda: ended.append(attempt(victim, "SELECT SLEEP(20)")))
    waiter.start()
    time.sleep(0.5)
    one(connection, f"KILL QUERY {victim.thread_id()}")
    waiter.join(10)
    assert ended, "the query was killed"
    done.append("KILL QUERY by the number that the client knows")
    try:
        pymysql.connect(host="127.0.0.1", port=port, user=account[0], password="wrong")
        raise AssertionError("a wrong password passes")
    except pymysql.err.OperationalError as error:
        assert error.args[0] == 1045, error
    try:
        pymysql.connect(host="127.0.0.1", port=port, user=account[0], password=account[1], database="d_no_such")
        raise AssertionError("a database that does not exist")
    except pymysql.err.OperationalError as error:
        assert error.args[0] in (1049, 1044), error
    done.append("refused logins")
    many(lambda: connect(), lambda connection, n: one(connection, "SELECT %s + 1", n)[0][0] == n + 1)
    done.append("50 clients at once")
    return done


def attempt(connection, sql):
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()
    except Exception as error:
        return error


def many(connect, check):
    wrong = []

    def client(n):
        try:
            connection = connect()
            for i in range(20):
                if not check(connection, n * 1000 + i):
                    wrong.append(n)
            connection.close()
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(50)]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert not wrong, wrong[:3]


def postgres(port, account):
    import asyncpg
    import psycopg
    done = []

    def connect(**more):
        return psycopg.connect(host="127.0.0.1", port=port, user=account[0], password=account[1], dbname=account[2], autocommit=True, **more)

    connection = connect(prepare_threshold=0)
    for n in range(5):
        assert connection.execute("SELECT %s::int + 1", (n,)).fetchone() == (n + 1,)
    done.append("statements prepared by psycopg")
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::text", (str(n),)) for n in range(50)]
    assert [cursor.fetchone()[0] for cursor in cursors] == [str(n) for n in range(50)]
    done.append("a pipeline")
    connection.execute("DROP TABLE IF EXISTS d_copy")
    connection.execute("CREATE TABLE d_copy (a int, b text)")
    with connection.cursor() as cursor:
        with cursor.copy("COPY d_copy FROM STDIN") as copy:
            for n in range(20000):
                copy.write_row((n, "z" * 50))
        with cursor.copy("COPY d_copy TO STDOUT") as copy:
            assert sum(1 for _ in copy.rows()) == 20000
    done.append("COPY both ways")
    large = "x" * (20 << 20)
    assert connection.execute("SELECT length(%s)", (large,)).fetchone() == (len(large),)
    assert len(connection.execute("SELECT repeat('y', 20000000)").fetchone()[0]) == 20000000
    done.append("20 MB each way")
    timer = threading.Timer(0.5, connection.cancel)
    timer.start()
    began = time.time()
    try:
        connection.execute("SELECT pg_sleep(20)")
        raise AssertionError("the query was not cancelled")
    except psycopg.errors.QueryCanceled:
        assert time.time() - began < 10
    assert connection.execute("SELECT 5").fetchone() == (5,)
    done.append("cancelling")
    with connection.transaction():
        connection.execute("INSERT INTO d_copy VALUES (-1, %s)", ("t",))
    listener = connect()
    listener.execute("LISTEN d_channel")
    connection.execute("NOTIFY d_channel, 'hello'")
    assert next(listener.notifies(timeout=5)).payload == "hello"
    listener.close()
    done.append("LISTEN and NOTIFY")
    for wrong in ({"password": "wrong"}, {"dbname": "d_no_such"}):
        try:
            psycopg.connect(**{"host": "127.0.0.1", "port": port, "user": account[0], "password": account[1], "dbname": account[2], **wrong})
            raise AssertionError(wrong)
        except psycopg.OperationalError:
            pass
    done.append("refused logins")

    async def pool():
        pool = await asyncpg.create_pool(host="127.0.0.1", port=port, user=account[0], password=account[1], database=account[2], min_size=20, max_size=20)

        async def query(n):
            async with pool.acquire() as connection:
                async with connection.transaction():
                    assert await connection.fetchval("SELECT $1::int * 2", n) == n * 2
                    rows = await connection.fetch("SELECT generate_series(1, $1::int) AS x", n % 100)
                    assert len(rows) == n % 100

        await asyncio.gather(*(query(n) for n in range(500)))
        await pool.close()

    asyncio.run(pool())
    done.append("asyncpg's pool and statement cache")
    many(lambda: connect(prepare_threshold=0), lambda connection, n: connection.execute("SELECT %s::int + 1", (n,)).fetchone() == (n + 1,))
    done.append("50 clients at once")
    return done


family, account = sys.argv[1], sys.argv[3:6] or ["app", "secret", "test"]
done = (mysql if family == "mysql" else postgres)(int(sys.argv[2]), account)
print(f"drivers {family}: {', '.join(done)}")
