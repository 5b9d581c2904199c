"""Signals beside teams: an interrupt loses nothing, and what a task starts can be terminated."""

from __future__ import annotations

from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.suite.team_programs import MEETING, forks, signals
from fucina.conformance.suite.teams import program

pytestmark = pytest.mark.usefixtures("watchdog")


@signals
@clause("TEAM-SIGNAL-1")
def test_an_interrupt_is_raised_after_the_join(impl: Any) -> None:
    text = (
        MEETING
        + """
import signal
pool, done, handled = fucina.thread_mod.Pool(2), [], []
def handler(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
out = np.zeros(30_000_000 if "fast" in fucina.__name__ else 3000, np.float32)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    while True: fucina.rng.gaussian_fill(1, out, 1.0)
except KeyboardInterrupt:
    done.append("bulk")
def work(task):
    time.sleep(0.1 if task else 0.3)
    done.append(task)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    pool.parallel_chunks(range(3), work)
except KeyboardInterrupt:
    done.append("raised")
assert 1 in done or 2 in done
assert done[-1] == "raised" and done[0] == "bulk"
assert meet(pool, 3) == 3
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
    signal.signal(number, lambda *args: handled.append(args[0]))
    for i in range(20):
        os.kill(os.getpid(), number)
        pool.parallel_chunks(range(6), lambda task: time.sleep(0.0002))
        assert handled == [number] * (i + 1)
    handled.clear()
print("ran")
"""
    )
    assert program(impl, text).strip() == "ran"


@signals
@clause("TEAM-SPAWN-1", "TEAM-SIGNAL-1", "TEAM-END-1")
def test_an_interrupt_loses_no_single_task(impl: Any) -> None:
    """Wherever it comes in ``spawn_wg`` or ``wait_and_work``, the group can be waited for and the pool be ended."""
    text = """
import time
import signal
kinds, armed, came = fucina.thread_mod, [], []
class Stuck(BaseException): pass
def handler(number, frame):
    came.append(number)  # a finalizer may swallow what is raised
    if armed: raise armed.pop()
signal.signal(signal.SIGALRM, handler)
def work(pool, group):  # a call: since Python 3.12 the jump of a loop lies outside of the ``try`` around it
    while not came:
        pool.spawn_wg(group, int)
        pool.spawn_wg(group, int)
        pool.wait_and_work(group)
end, rounds = time.monotonic() + 6.0, 0
while time.monotonic() < end:
    rounds += 1
    group, pool = kinds.WaitGroup(), kinds.Pool(1 + rounds % 2)
    armed[:], came[:] = [KeyboardInterrupt], []
    try:
        signal.setitimer(signal.ITIMER_REAL, 3e-5 + rounds % 600 * 1.1e-6)
        work(pool, group)
    except KeyboardInterrupt:
        pass
    signal.setitimer(signal.ITIMER_REAL, 20)
    armed[:] = [Stuck]
    if rounds % 2:
        try:
            pool.wait_and_work(group)
        except KeyboardInterrupt:  # it came in a task
            pass
        pool.wait_and_work(group)
        assert group.is_done()
        done = []
        pool.spawn_wg(group, done.append, 1)
        pool.wait_and_work(group)
        assert done == [1]
    pool.deinit()
    armed.clear()
    signal.setitimer(signal.ITIMER_REAL, 0)
print("ran")
"""
    assert program(impl, text).strip().startswith("ran")


@signals
@clause("TEAM-SIGNAL-1", "TEAM-JOIN-1")
@pytest.mark.parametrize("kind", ["chunks", "chained", "worker"])
def test_an_interrupt_while_the_caller_waits(impl: Any, kind: str) -> None:
    """It is raised after the join, and team and worker are as after any other dispatch."""
    text = (
        MEETING
        + f"kind = {kind!r}\n"
        + """
import signal
def handler(number, frame): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
pool, worker, done = fucina.thread_mod.Pool(1), fucina.thread_mod.OneShotWorker(), []
me, begun = threading.get_ident(), threading.Event()
def run(task, chain=None):
    if threading.get_ident() == me:
        begun.wait(20)
        return
    begun.set()
    time.sleep(1)
    done.append(task)
def alone():
    begun.set()
    time.sleep(1)
    done.append(0)
try:
    if kind == "worker":
        worker.start(alone)
        begun.wait(20)
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    if kind == "worker": worker.wait()
    if kind == "chunks": pool.parallel_chunks(range(2), run)
    if kind == "chained": pool.parallel_chained(range(2), 2, run)
    done.append("not raised")
except KeyboardInterrupt:
    assert len(done) == 1, done
assert len(done) == 1, done
assert pool.parallel_chained([0], 1, lambda task, chain: done.append("again")) is True
assert meet(pool, 2) == 2
pool.deinit()
worker.wait()
worker.start(lambda: 5)
assert worker.wait() == 5
worker.deinit()
print(done[1:])
"""
    )
    assert program(impl, text).strip() == "['again']"


@forks
@clause("TEAM-SIGNAL-1")
@pytest.mark.parametrize("kind", ["chunks", "chained", "one shot"])
@pytest.mark.parametrize("how", ["subprocess", "fork"])
def test_a_process_that_a_task_starts_can_be_terminated(impl: Any, kind: str, how: str) -> None:
    text = (
        MEETING
        + f"kind, how = {kind!r}, {how!r}\n"
        + """
import signal, subprocess, sys
kinds, barrier, codes = fucina.thread_mod, threading.Barrier(3), {}
def masked():
    return sorted(int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
def task(_=0, chain=None):
    if how == "subprocess":
        child = subprocess.Popen(["sleep", "50"])
        child.terminate()
        codes[threading.get_ident()] = child.wait(), masked()
    else:
        child = os.fork()
        if child == 0:
            time.sleep(50)
            os._exit(0)
        os.kill(child, signal.SIGTERM)
        codes[threading.get_ident()] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), masked()
    if kind != "one shot": barrier.wait(20)
def dispatch():
    codes.clear()
    if kind == "one shot":
        worker.start(task)
        while len(codes) < 1: time.sleep(0.001)
        worker.wait()
    elif kind == "chunks":
        pool.parallel_chunks(range(3), task)
    else:
        assert pool.parallel_chained(range(3), 3, task)
    return list(codes.values())
parties = 1 if kind == "one shot" else 3
pool, worker = kinds.BarrierPool(2), kinds.OneShotWorker()
assert dispatch() == [(-signal.SIGTERM, masked())] * parties, codes
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
assert dispatch() == [(-signal.SIGTERM, [signal.SIGUSR1])] * parties, codes
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
assert dispatch() == [(-signal.SIGTERM, [])] * parties, codes
print("ran")
"""
    )
    assert program(impl, text).strip() == "ran"
