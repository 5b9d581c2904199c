"""Another process that keeps one core busy."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator


@contextlib.contextmanager
def neighbour() -> Iterator[None]:
    """Let a process compute without a pause, on the last of the cores that we may use, while the block runs."""
    core = max(os.sched_getaffinity(0))
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(other.pid, {core})
        time.sleep(0.5)  # until it is at work
        yield
    finally:
        other.kill()
        other.wait()
