"""One secret, `calls` times: the first is the miss, in ms by the function's own clock; the others are hits."""

import os
import time

SECRET = os.environ.get("SECRET_ID", "prod/db")


def measure(get, event):
    took_ms = []
    for _ in range(event.get("calls", 100)):
        started = time.perf_counter()
        value = get(SECRET)
        took_ms.append((time.perf_counter() - started) * 1000)
    return {"miss_ms": took_ms[0], "hit_ms": took_ms[1:], "length": len(value)}
