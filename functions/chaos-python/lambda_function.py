"""Everything a function can do wrong. Event: {"action": "<name>"}; each function below is an action."""

import os
import signal
import sys
import time


def fine(event):
    return {"pid": os.getpid(), "tmp": sorted(os.listdir("/tmp"))}


def fork(event):
    """Starts processes until the kernel refuses, at most 2,000; they outlive the handler."""
    started = 0
    try:
        for _ in range(event.get("processes", 2000)):
            if os.fork() == 0:
                time.sleep(3600)
                os._exit(0)
            started += 1
    except OSError as refused:
        return {"started": started, "refused": refused.strerror}
    return {"started": started, "refused": None}


def fill_tmp(event):
    """Writes to /tmp until it is full, at most `mb` megabytes."""
    block, written = b"\0" * (1 << 20), 0
    try:
        with open("/tmp/filled", "wb", buffering=0) as file:
            while written < event.get("mb", 11 * 1024):
                file.write(block)
                written += 1
    except OSError as refused:
        return {"mb": written, "refused": refused.strerror}
    return {"mb": written, "refused": None}


def ignore_sigterm(event):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return never_return(event)


def flood_stdout(event):
    line = "x" * 1023 + "\n"
    for _ in range(event.get("mb", 100) * 1024):
        sys.stdout.write(line)
    return {"mb": event.get("mb", 100)}


def allocate(event):
    """Touches memory until it is killed, at most `mb` megabytes."""
    held = []
    for _ in range(event.get("mb", 20 * 1024)):
        held.append(bytearray(os.urandom(4096) * 256))
    return {"mb": len(held)}


def too_large(event):
    """One byte more than Lambda takes (6 MiB + 100 bytes) once encoded as a JSON string with its two quotes."""
    return "x" * (event.get("bytes", 6 * 1024 * 1024 + 101) - 2)


def never_return(event):
    while True:
        time.sleep(3600)


def spin(event):
    while True:
        pass


def raise_error(event):
    raise ValueError("chaos")


def exit_zero(event):
    sys.stdout.flush()
    os._exit(0)


def exit_one(event):
    sys.stdout.flush()
    os._exit(1)


def kill_self(event):
    os.kill(os.getpid(), signal.SIGKILL)


def segfault(event):
    os.kill(os.getpid(), signal.SIGSEGV)


ACTIONS = {
    action.__name__: action
    for action in (
        fine, fork, fill_tmp, ignore_sigterm, flood_stdout, allocate, too_large,
        never_return, spin, raise_error, exit_zero, exit_one, kill_self, segfault,
    )
}


def handler(event, context):
    return ACTIONS[event["action"]](event)
