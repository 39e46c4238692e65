"""Keeps of a run what explaining it needs: slim.py RUN TARGET."""

import json
import sys
from pathlib import Path

KEPT = {"env", "invocation", "refused", "segment", "cpu", "cpu_wait", "dns", "connection", "flight", "request", "database"}


def samples(series):
    """Counters that stand still say nothing: ends and the samples around each change stay."""
    all_of = series["samples"]
    same = lambda a, b: all(a[key] == b[key] for key in a if key != "at_ns")
    last = len(all_of) - 1
    keep = [
        s
        for n, s in enumerate(all_of)
        if n in (0, last) or not (same(all_of[n - 1], s) and same(s, all_of[n + 1]))
    ]
    return {**series, "samples": keep}


run, target = Path(sys.argv[1]), Path(sys.argv[2])
target.mkdir(parents=True, exist_ok=True)
with open(target / "events.jsonl", "w") as out:
    for line in open(run / "events.jsonl"):
        event = json.loads(line)
        if event["type"] in KEPT:
            if event["type"] in ("cpu", "cpu_wait"):
                event = samples(event)
            out.write(json.dumps(event, separators=(",", ":")) + "\n")
manifest = json.load(open(run / "manifest.json"))
manifest["capabilities"] = {}
variants = [
    {
        "name": v["name"],
        "function": {k: v["function"][k] for k in ("memory", "runtime", "environment")},
        **({"db_proxy": v["db_proxy"]} if v.get("db_proxy") else {}),
    }
    for v in manifest["experiment"]["variants"]
]
database = manifest["experiment"]["region"].get("database")
region = {"region": {"database": {k: database[k] for k in ("max_connections", "class") if k in database}}} if database else {}
manifest["experiment"] = {"description": manifest["experiment"]["description"], "variants": variants, **region}
json.dump(manifest, open(target / "manifest.json", "w"), indent=1)
