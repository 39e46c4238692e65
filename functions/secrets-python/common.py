"""One secret, `calls` times; what it cost is in the answer."""

import os
import time

SECRET = os.environ.get("SECRET_ID", "prod/db")


def measure(get, event):
    calls = event.get("calls", 100)
    started = time.perf_counter()
    for _ in range(calls):
        value = get(SECRET)
    return {"calls": calls, "ms": (time.perf_counter() - started) * 1000, "length": len(value)}
