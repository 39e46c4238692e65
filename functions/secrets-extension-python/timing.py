"""A miss, then hits: each timed by the function's own clock, in ms."""

import time


def timed(get):
    started = time.perf_counter()
    value = get()
    return (time.perf_counter() - started) * 1000, value


def measure(get, hits):
    miss_ms, first = timed(get)
    hit_ms = []
    for _ in range(hits):
        took_ms, value = timed(get)
        if value != first:
            raise ValueError("a hit gave another value than the miss")
        hit_ms.append(took_ms)
    return {"miss_ms": miss_ms, "hit_ms": hit_ms}
