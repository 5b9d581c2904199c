"""Parts of the programs that tests of teams run in a process of their own."""

from __future__ import annotations

import os
import signal

import pytest

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
signals = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of this system are other ones")

MEETING = """
import os, threading, time
fucina.parallel.set_max_threads(3)
def meet(pool, parties):
    barrier, seen = threading.Barrier(parties), set()
    def task(_):
        seen.add(threading.get_ident())
        barrier.wait(20)
    pool.parallel_chunks(range(parties), task)
    return len(seen)
n = 100_001 if "fast" in fucina.__name__ else 70
def bulk():
    out = np.zeros(n, np.float32)
    fucina.rng.gaussian_fill(3, out, 1.0)
    return out.tobytes()
def ended(child):
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, code
"""


# both processes came out with a code: the child's is waited for, the parent's is printed
CHILD_AND_PARENT = """
if not children[0]:
    os._exit(code)
ended(children[0])
print("ran" if code == 0 else "raised in the parent")
"""


ENDED = """
count = lambda: len(os.listdir('/proc/self/task'))
before = count()
def all_gone():
    for _ in range(500):
        if count() > before: time.sleep(0.01)
    return count() == before
"""
