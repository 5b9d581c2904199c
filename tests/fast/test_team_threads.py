"""What a team's threads have of the interpreter and of the system: thread states, signal masks."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from typing import Any

import pytest

import fucina.fast as fast
from fucina.conformance.suite.team_programs import forks
from fucina.conformance.suite.teams import Meeting, program


class _Kept:
    """Something that a thread keeps for itself."""


@pytest.mark.parametrize("kind", ["chunks", "chained"])
def test_a_worker_keeps_one_thread_state_until_it_ends(kind: str) -> None:
    """One made for each task takes a lock without the GIL, and a fork at that moment leaves it locked in the child."""
    own, main = threading.local(), threading.get_ident()
    made: dict[int, weakref.ref[_Kept]] = {}
    tasks: list[tuple[int, int]] = []
    pool = fast.thread_mod.BarrierPool(2)
    for _ in range(20):
        meeting = Meeting(3)

        def task(_: int, chain: Any = None, meeting: Meeting = meeting) -> None:
            if threading.get_ident() != main:
                if not hasattr(own, "kept"):
                    own.kept = _Kept()
                    assert threading.get_ident() not in made
                    made[threading.get_ident()] = weakref.ref(own.kept)
                tasks.append((threading.get_ident(), id(own.kept)))
            meeting()

        if kind == "chunks":
            pool.parallel_chunks(range(3), task)
        else:
            assert pool.parallel_chained(range(3), 3, task)
    assert len(made) == 2
    assert set(tasks) == {(ident, id(kept())) for ident, kept in made.items()}
    assert len(tasks) == 40
    pool.deinit()
    gc.collect()
    assert [kept() for kept in made.values()] == [None, None]


def test_a_one_shot_worker_that_is_collected_leaves_no_thread_state() -> None:
    own = threading.local()
    made: list[weakref.ref[_Kept]] = []

    def task() -> None:
        own.kept = _Kept()
        made.append(weakref.ref(own.kept))

    worker = fast.thread_mod.OneShotWorker()
    worker.start(task)
    while not made:
        time.sleep(0.001)
    del worker
    for _ in range(2000):
        if made[0]() is None:
            break
        time.sleep(0.005)
    assert made[0]() is None


@forks
def test_forks_beside_small_tasks() -> None:
    text = """
import os, threading, time
pool, stop = fucina.thread_mod.BarrierPool(3), False
def dispatch():
    while not stop:
        pool.parallel_chunks(range(30), lambda task: None)
thread = threading.Thread(target=dispatch)
thread.start()
end = time.time() + 5
while time.time() < end:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
stop = True
thread.join()
print("ran")
"""
    assert program(fast, text).strip() == "ran"


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="signal masks are read in /proc")
def test_workers_block_signals_outside_of_python_tasks() -> None:
    text = """
import os, signal, threading, time
def masks():
    found = {}
    for number in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{number}/status") as status:
            found[int(number)] = next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))
    return found
before = set(masks())
fucina.parallel.set_max_threads(3)
out = np.zeros(1_000_000, np.float32)
fucina.rng.gaussian_fill(3, out, 1.0)
pool, barrier, worker = fucina.thread_mod.BarrierPool(2), threading.Barrier(3), fucina.thread_mod.OneShotWorker()
pool.parallel_chunks(range(3), lambda task: barrier.wait(20))
worker.start(lambda: barrier.wait(20))
other = threading.Thread(target=barrier.wait)
other.start()
barrier.wait(20)
other.join()
worker.wait()
bits = sum(1 << (number - 1) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD))
for _ in range(500):  # the last may be on its way out of its task
    own = {number: mask for number, mask in masks().items() if number not in before}
    if all(mask & bits == bits for mask in own.values()):
        break
    time.sleep(0.01)
print(len(own), all(mask & bits == bits for mask in own.values()))
"""
    assert program(fast, text).split() == ["5", "True"]
