"""Fills and casts from several Python threads at once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import fucina.fast as fast
from fucina.conformance.suite.team_programs import signals
from fucina.fast import DType


def test_two_threads_fill_at_once() -> None:
    whole = np.zeros(40_000, np.float32)
    fast.rng.gaussian_fill(9, whole, 1.5)
    parts = np.zeros_like(whole)
    barrier = threading.Barrier(2)

    def work(start: int, stop: int) -> None:
        barrier.wait()
        for first in range(start, stop, 2500):
            fast.rng.gaussian_fill_at(9, first, parts[first : first + 2500], 1.5)

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(work, 0, 20_000), pool.submit(work, 20_000, 40_000)]:
            future.result()
    assert parts.tobytes() == whole.tobytes()


def test_many_threads_many_functions(noise: Any) -> None:
    def fill() -> bytes:
        out = np.zeros(3000, np.float32)
        fast.rng.gumbel_fill(4, out)
        return out.tobytes()

    def draw() -> bytes:
        out = np.zeros(3000, np.int64)
        fast.rng.randperm_fill(4, out)
        return out.tobytes()

    def cast() -> bytes:
        return fast.dtype.cast_array(DType.f32, DType.f8_e5m2, noise).tobytes()

    def refuse() -> bytes:
        try:
            fast.rng.uniform_fill(1, np.zeros(3, np.float32), 1.0, 1.0)
        except ValueError as error:
            return str(error).encode()
        return b""

    jobs = [fill, draw, cast, refuse]
    expected = [job() for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: jobs[i % 4](), range(400)))
    assert found == expected * 100


def test_a_long_fill_lets_other_threads_run() -> None:
    out = np.zeros(1 << 23, np.float32)
    span: list[float] = []
    seen: list[float] = []
    finished = threading.Event()

    def watch() -> None:
        while not finished.is_set():
            seen.append(time.perf_counter())
            time.sleep(0.0005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(5):
        span = [time.perf_counter()]
        fast.rng.gaussian_fill(1, out, 1.0)
        span.append(time.perf_counter())
    finished.set()
    watcher.join()
    assert sum(span[0] < moment < span[1] for moment in seen) >= 2


INTERRUPTED = """
import signal
from fucina.fast import thread_mod
def handler(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
for i in range(400):
    worker = thread_mod.OneShotWorker()
    try:
        signal.setitimer(signal.ITIMER_REAL, 2e-5 + 7e-7 * i)
        while True:
            worker.start(int)
            worker.wait()
    except KeyboardInterrupt:
        pass
    worker.wait()
    worker.start(lambda: 5)
    assert worker.wait() == 5
    worker.deinit()
print("ran")
"""


@signals
def test_an_interrupt_loses_no_worker() -> None:
    """Wherever in start or wait it comes: what was begun can still be waited for (clause TEAM-ONESHOT-2)."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
