"""The same queries through each peer, in turn, for some rounds: a table and a JSON line per figure.

A peer is NAME:PID:PORT OF POSTGRESQL:PORT OF MYSQL, a port of 0 for what it does not speak. Latency is that of one
client: the median of pgbench's log, the mean of sysbench. A proxy's CPU per query is what its process took, from /proc, over the queries
that were answered. Of the rounds, the best and the median one count."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
IDLE = 500


def cpu_s(pid):
    if not pid:
        return 0.0
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


def pgbench(port, mode, clients, seconds, connect=False):
    """Queries and the median latency in µs."""
    with tempfile.TemporaryDirectory() as logs:
        script = os.path.join(logs, "one.sql")
        with open(script, "w") as file:
            file.write("SELECT 1;\n")
        command = ["pgbench", "-n", "-h", "127.0.0.1", "-p", str(port), "-U", "app", "-M", mode, "-c", str(clients), "-j", "1"]
        command += ["-T", str(seconds), "-f", script] + (["-C"] if connect else []) + (["-l"] if clients == 1 else []) + ["test"]
        env = dict(os.environ, PGPASSWORD="secret", PGSSLMODE="disable")
        said = subprocess.run(command, env=env, cwd=logs, capture_output=True, text=True)
        done = re.search(r"transactions actually processed: (\d+)", said.stdout)
        if said.returncode or not done:
            raise RuntimeError(said.stderr.strip().splitlines()[-1] if said.stderr else said.stdout)
        took = []
        for name in os.listdir(logs):
            if name.startswith("pgbench_log"):
                with open(os.path.join(logs, name)) as log:
                    took = [int(line.split()[2]) for line in log]
        return int(done.group(1)), statistics.median(took) if took else None


def sysbench(port, mode, clients, seconds):
    command = ["sysbench", "oltp_point_select", "--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=app"]
    command += ["--mysql-password=secret", "--mysql-db=test", "--tables=1", "--table-size=1000", "--mysql-ssl=off"]
    command += [f"--threads={clients}", f"--time={seconds}", "--report-interval=0"]
    command += [f"--db-ps-mode={'auto' if mode == 'prepared' else 'disable'}"]
    said = subprocess.run(command + ["run"], capture_output=True, text=True)
    done = re.search(r"queries:\s+(\d+)", said.stdout)
    if said.returncode or not done:
        raise RuntimeError((said.stderr + said.stdout).strip()[-300:])
    # Its percentiles are rounded to buckets of 8 %.
    mean_ms = seconds * 1000 * clients / int(done.group(1))
    return int(done.group(1)), mean_ms * 1000


def prepare_mysql(port):
    command = ["sysbench", "oltp_point_select", "--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=app"]
    command += ["--mysql-password=secret", "--mysql-db=test", "--tables=1", "--table-size=1000", "--mysql-ssl=off", "prepare"]
    subprocess.run(command, check=True, capture_output=True)


def measure(run, pid):
    before = cpu_s(pid)
    queries, latency_us = run()
    if not queries:
        raise RuntimeError("no query was answered")
    return {"queries": queries, "latency_us": latency_us, "cpu_us": (cpu_s(pid) - before) * 1e6 / queries if pid else None}


def contests(peers, seconds):
    """(name, peer, how to run it): each contest has every peer that can take part."""
    for name, _, pg, _ in peers:
        for mode in ("simple", "extended", "prepared"):
            # Its version for Debian 12 knows no prepared statements beyond a transaction.
            if not pg or (name == "pgbouncer" and mode == "prepared"):
                continue
            for clients in (1, 16, 64):
                yield f"postgresql {mode} {clients}", name, lambda pg=pg, mode=mode, clients=clients: pgbench(pg, mode, clients, seconds)
        if pg:
            yield "postgresql connect", name, lambda pg=pg: pgbench(pg, "simple", 1, seconds, connect=True)
    for name, _, _, my in peers:
        for mode in ("simple", "prepared"):
            for clients in (1, 16, 64):
                if my:
                    yield f"mysql {mode} {clients}", name, lambda my=my, mode=mode, clients=clients: sysbench(my, mode, clients, seconds)


def race(peers, rounds, seconds):
    pids = {name: pid for name, pid, _, _ in peers}
    order = sorted(contests(peers, seconds), key=lambda contest: contest[0])
    found = {}
    for number in range(rounds):
        for contest, name, run in order if number % 2 == 0 else reversed(order):
            try:
                found.setdefault((contest, name), []).append(measure(run, pids[name]))
            except RuntimeError as error:
                print(f"{contest}: {name}: {error}")
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return found


def report(found):
    print(f"{'contest':<26}{'peer':<11}{'query µs: best, median':>26}{'CPU µs/query: best, median':>30}{'per s':>9}")
    for (contest, name), rows in sorted((key, rows) for key, rows in found.items() if rows):
        row = {"contest": contest, "peer": name, "rounds": len(rows)}
        for key in ("latency_us", "cpu_us"):
            values = sorted(r[key] for r in rows if r[key] is not None)
            row[key] = [round(values[0], 2), round(statistics.median(values), 2)] if values else None
        row["queries"] = round(statistics.median(r["queries"] for r in rows))
        shown = [", ".join(f"{value:.1f}" for value in row[key]) if row[key] else "" for key in ("latency_us", "cpu_us")]
        print(f"{contest:<26}{name:<11}{shown[0]:>26}{shown[1]:>30}{row['queries']:>9}")
        print(json.dumps(row), file=sys.stderr)


def established(port):
    """Clients that are connected to a port of this machine."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def idle_memory(peers):
    """What a client costs that has logged in and does nothing: pgbench connects all of them before the first one sleeps."""
    for name, pid, pg, _ in peers:
        if not pid or not pg:
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write("\\sleep 3 s\n")
            script.flush()
            before = rss_kib(pid)
            command = ["pgbench", "-n", "-h", "127.0.0.1", "-p", str(pg), "-U", "app", "-c", str(IDLE), "-j", "1", "-t", "1", "-f", script.name, "test"]
            env = dict(os.environ, PGPASSWORD="secret", PGSSLMODE="disable")
            run = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            while established(pg) < IDLE and run.poll() is None:
                time.sleep(0.1)
            time.sleep(1)
            kib = (rss_kib(pid) - before) / IDLE
            said = run.communicate()[1]
            if run.returncode:
                print(f"idle clients: {name}: {said.strip().splitlines()[-1]}")
                continue
            print(f"{IDLE} idle clients: {name:<11}{kib:.1f} KiB each")
            print(json.dumps({"contest": "idle clients", "peer": name, "kib_each": round(kib, 2)}), file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("peers", nargs="+")
    options = parser.parse_args()
    peers = [(name, int(pid), int(pg), int(my)) for name, pid, pg, my in (peer.split(":") for peer in options.peers)]
    with open("/proc/loadavg") as load:
        print(f"load before: {load.read().strip()}")
    prepare_mysql(next(my for _, pid, _, my in peers if not pid))
    # Each starts with its connections made.
    idle_memory([peer for peer in peers if peer[0] != "haproxy"])
    report(race(peers, options.rounds, options.seconds))
    with open("/proc/loadavg") as load:
        print(f"load after: {load.read().strip()}")


if __name__ == "__main__":
    main()
