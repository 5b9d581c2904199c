"""Programs that fork, end and are interrupted: each in a process of its own, with a watchdog."""

from __future__ import annotations

import os
from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.teams import Meeting, program
from fucina.spec.errors import ConcurrentUse, UseAfterDeinit

pytestmark = pytest.mark.usefixtures("watchdog")

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

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


@clause("TEAM-END-1")
@pytest.mark.parametrize("kind", ["Pool", "BarrierPool"])
def test_the_end(impl: Any, kind: str) -> None:
    pool = getattr(impl.thread_mod, kind)(2)
    pool.parallel_chunks(range(5), lambda task: None)
    refused: list[BaseException] = []

    def work(task: int) -> None:
        try:
            pool.deinit()
        except ConcurrentUse as error:
            refused.append(error)

    pool.parallel_chunks(range(6), work)
    assert len(refused) == 6
    pool.parallel_chunks(range(3), Meeting(3))
    pool.deinit()
    for call in (
        pool.deinit,
        lambda: pool.parallel_chunks([1, 2], print),
        lambda: pool.parallel_chained([1, 2], 1, print),
        lambda: pool.team_size,
        pool.__enter__,
    ):
        assert_raises(UseAfterDeinit, "TEAM-END-1", call)
    if kind == "Pool":
        group, ran = impl.thread_mod.WaitGroup(), list[int]()
        for call in (
            lambda: pool.wait_and_work(group),
            lambda: pool.spawn_wg(group, ran.append, 1),
            lambda: pool.try_spawn_wg(group, ran.append, 1),
        ):
            assert_raises(UseAfterDeinit, "TEAM-END-1", call)
        assert group.is_done()
        assert ran == []


@clause("TEAM-END-1")
@pytest.mark.parametrize("how", ["", "sys.exit(0)", "raise SystemExit", "os._exit(0)", "del pool, kept"])
def test_a_process_ends_with_its_teams_alive(impl: Any, how: str) -> None:
    text = (
        MEETING
        + "pool, kept = fucina.thread_mod.Pool(2), fucina.thread_mod.OneShotWorker()\n"
        + "assert meet(pool, 3) == 3\nbulk()\nkept.start(lambda: time.sleep(0.01))\n"
        + "import atexit\natexit.register(bulk)\nprint('to the end', flush=True)\n"
        + how
    )
    assert program(impl, text).strip() == "to the end"


@clause("TEAM-END-1")
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("kind", ["chunks", "chained", "spawned", "worker"])
def test_a_dispatch_while_the_interpreter_ends(impl: Any, kind: str, warm: bool) -> None:
    """No other thread runs Python any more, so it is the caller's alone."""
    text = f"""
kind, warm = {kind!r}, {warm}
import os
class Session:
    def __init__(self):
        kinds = fucina.thread_mod
        self.pool, self.worker, self.group = kinds.Pool(2), kinds.OneShotWorker(), kinds.WaitGroup()
        self.write = os.write
    def use(self):
        ran = []
        if kind == "chunks": self.pool.parallel_chunks(range(5), ran.append)
        if kind == "chained" and not self.pool.parallel_chained(range(5), 5, lambda task, chain: ran.append(task)):
            ran += range(5)
        if kind == "spawned":
            for i in range(5): self.pool.spawn_wg(self.group, ran.append, i)
            self.pool.wait_and_work(self.group)
        if kind == "worker":
            self.worker.start(lambda: ran.extend(range(5)))
            self.worker.wait()
        return sorted(ran) == [0, 1, 2, 3, 4]
    def __del__(self):
        self.write(1, b"ran" if self.use() else b"not all")
session = Session()
if warm: assert session.use()
sys.modules["kept"] = session
del session
"""
    assert program(impl, text).strip() == "ran"


@clause("TEAM-END-1")
def test_a_process_ends_while_another_thread_dispatches(impl: Any) -> None:
    text = MEETING + (
        "pool = fucina.thread_mod.Pool(2)\n"
        "def forever():\n    while True:\n        bulk()\n"
        "        pool.parallel_chunks(range(8), lambda task: sum(range(1000)))\n"
        "threading.Thread(target=forever, daemon=True).start()\ntime.sleep(0.3)\nprint('to the end', flush=True)\n"
    )
    assert program(impl, text).strip() == "to the end"


@clause("TEAM-END-1")
def test_forgotten_teams_leave_no_threads(impl: Any) -> None:
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("the threads of a process are counted in /proc")
    text = MEETING + (
        "count = lambda: len(os.listdir('/proc/self/task'))\nbefore = count()\n"
        "for _ in range(20):\n    pool = fucina.thread_mod.Pool(2)\n    meet(pool, 3)\n    del pool\n"
        "for _ in range(500):\n    if count() > before: time.sleep(0.01)\nprint(count() - before)\n"
    )
    assert program(impl, text).strip() == "0"


@forks
@clause("TEAM-FORK-1")
def test_a_child_starts_afresh_and_the_parent_goes_on(impl: Any) -> None:
    text = (
        MEETING
        + """
pool, worker = fucina.thread_mod.Pool(2), fucina.thread_mod.OneShotWorker()
expected = bulk()
assert meet(pool, 3) == 3
worker.start(lambda: 1); worker.wait()
for i in range(10):
    if i % 2: time.sleep(0.01)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert bulk() == expected
            assert meet(pool, 3) == 3
            worker.start(lambda: 2)
            assert worker.wait() == 2
            if i % 3 == 0:
                grandchild = os.fork()
                if grandchild == 0:
                    os._exit(0 if meet(pool, 3) == 3 and bulk() == expected else 1)
                ended(grandchild)
            pool.deinit()
            worker.deinit()
            code = 0
        finally:
            os._exit(code)
    assert meet(pool, 3) == 3 and bulk() == expected
    ended(child)
print("ran")
"""
    )
    assert program(impl, text).strip() == "ran"


@forks
@clause("TEAM-FORK-1", "TEAM-THREADS-1")
def test_forks_while_another_thread_dispatches(impl: Any) -> None:
    text = (
        MEETING
        + """
pool, stop = fucina.thread_mod.Pool(2), threading.Event()
expected = bulk()
def forever():
    while not stop.is_set():
        bulk()
        pool.parallel_chunks(range(4), lambda task: None)
thread = threading.Thread(target=forever)
thread.start()
for _ in range(15):
    child = os.fork()
    if child == 0:
        os._exit(0 if bulk() == expected and meet(pool, 3) == 3 else 1)
    ended(child)
stop.set()
thread.join()
print("ran")
"""
    )
    assert program(impl, text).strip() == "ran"


@forks
@clause("TEAM-FORK-2")
def test_a_fork_inside_a_task_of_the_dispatcher(impl: Any) -> None:
    text = (
        MEETING
        + """
from fucina.spec.errors import ForkedInTask
pool, children, ran, inside = fucina.thread_mod.Pool(1), [], [], threading.Event()
me = threading.get_ident()
def work(task):
    ran.append(task)
    if task == 0:
        inside.wait(20)
        children.append(os.fork())
        if children[-1]: inside.clear()
    elif threading.get_ident() != me:
        inside.set()
        time.sleep(0.3)
code = 1
try:
    pool.parallel_chunks(range(3), work)
    code = 0 if children[0] else 1
except ForkedInTask as error:
    code = 0 if not children[0] and "TEAM-FORK-2" in str(error) and meet(pool, 2) == 2 else 1
"""
        + CHILD_AND_PARENT
    )
    assert program(impl, text).strip() == "ran"


@forks
@clause("TEAM-FORK-2")
def test_a_fork_inside_a_task_of_a_worker(impl: Any) -> None:
    text = (
        MEETING
        + """
pool, children = fucina.thread_mod.Pool(1), []
me, done = threading.get_ident(), threading.Event()
def work(task):
    if threading.get_ident() == me:
        done.wait(20)
        return
    child = os.fork()
    if child:
        children.append(child)
        done.set()
pool.parallel_chunks(range(2), work)
ended(children[0])
print("ran")
"""
    )
    assert program(impl, text).strip() == "ran"


@clause("TEAM-SIGNAL-1")
def test_an_interrupt_is_raised_after_the_join(impl: Any) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("signals of this system are other ones")
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


INTERRUPTED = """
import signal
kinds, armed = fucina.thread_mod, []
class Stuck(BaseException): pass
def handler(number, frame):
    if armed: raise armed[0]
signal.signal(signal.SIGALRM, handler)
end, rounds = time.monotonic() + seconds, 0
while time.monotonic() < end:
    rounds += 1
    group, pool = kinds.WaitGroup(), kinds.Pool(1 + rounds % 2)
    armed[:] = [KeyboardInterrupt]
    signal.setitimer(signal.ITIMER_REAL, 3e-5 + rounds % 600 * 1.1e-6, 0.005)  # again, if a finalizer swallows it
    try:
        try:
            while True:
                pool.spawn_wg(group, int)
                pool.spawn_wg(group, int)
                pool.wait_and_work(group)
        except KeyboardInterrupt:
            armed.clear()
    except KeyboardInterrupt:  # the timer was faster
        armed.clear()
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


@clause("TEAM-SPAWN-1", "TEAM-SIGNAL-1", "TEAM-END-1")
def test_an_interrupt_loses_no_single_task(impl: Any) -> None:
    """Wherever it comes in ``spawn_wg`` or ``wait_and_work``, the group can be waited for and the pool be ended."""
    if not hasattr(os, "fork"):
        pytest.skip("signals of this system are other ones")
    text = "import time\nseconds = 6.0\n" + INTERRUPTED
    assert program(impl, text).strip().startswith("ran")


@clause("TEAM-SIGNAL-1", "TEAM-JOIN-1")
@pytest.mark.parametrize("kind", ["chunks", "chained", "worker"])
def test_an_interrupt_while_the_caller_waits(impl: Any, kind: str) -> None:
    """It is raised after the join, and team and worker are as after any other dispatch."""
    if not hasattr(os, "fork"):
        pytest.skip("signals of this system are other ones")
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


@clause("TEAM-LAZY-1", "TEAM-ONESHOT-1", "TEAM-SPAWN-1")
def test_single_tasks_where_no_thread_is_to_be_had(impl: Any) -> None:
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("threads are refused by limits of Linux")
    text = """
import os, resource, threading
kinds, done = fucina.thread_mod, []
pool, worker, group = kinds.Pool(3), kinds.OneShotWorker(), kinds.WaitGroup()
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
if os.getuid() == 0: os.setuid(65534)  # the limit does not bind root
try:
    threading.Thread(target=lambda: None).start()
    print("threads can be had")
except RuntimeError:
    pass
for i in (7, 8):
    worker.start(lambda: i)
    assert worker.wait() == i
worker.deinit()
assert pool.try_spawn_wg(group, done.append, 1) is False
assert group.is_done() and done == []
pool.spawn_wg(group, done.append, 2)
assert done == [2]
pool.wait_and_work(group)
pool.deinit()
print("ran")
"""
    written = program(impl, text)
    if "threads can be had" in written:
        pytest.skip("threads could not be refused here")
    assert written.strip() == "ran"


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


@clause("TEAM-LAZY-1", "TEAM-CHAIN-3", "TEAM-ONESHOT-1")
def test_a_team_without_threads_does_the_same_work(impl: Any) -> None:
    text = """
import resource, threading
pool, worker = fucina.thread_mod.Pool(3), fucina.thread_mod.OneShotWorker()
done = []
soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
import os
if os.getuid() == 0:  # the limit does not bind root: refuse them by address space
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), resource.RLIM_INFINITY))
else:
    resource.setrlimit(resource.RLIMIT_NPROC, (0, hard))
try:
    threading.Thread(target=lambda: None).start()
    print("threads can be had")
except RuntimeError:
    pass
pool.parallel_chunks(range(10), done.append)
print(sorted(done) == list(range(10)), len(done))
done.clear()
def visit(task, chain):
    done.append(task)
    if task == 1: chain.enqueue(3)
    if task == 3: raise LookupError
try:
    pool.parallel_chained(range(4), 3, visit)
except LookupError:
    print(sorted(done))
print(pool.parallel_chained(range(3), 3, lambda task, chain: None))
for _ in range(2):  # by who waits
    worker.start(threading.get_ident)
    print(worker.wait() == threading.get_ident(), worker.wait())
worker.start(lambda: 1 // 0)
try:
    worker.wait()
except ZeroDivisionError:
    print("raised")
"""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("threads are refused by limits of Linux")
    written = program(impl, text)
    if "threads can be had" in written:
        pytest.skip("threads could not be refused here")
    assert written.splitlines() == ["True 10", "[0, 1, 2, 3]", "True", "True None", "True None", "raised"]


@clause("TEAM-SPIN-1")
@pytest.mark.parametrize("budget", ["0", "1", "4294967295", None, "garbage"])
def test_a_spin_budget_changes_time_alone(impl: Any, budget: str | None) -> None:
    text = (
        MEETING
        + """
with fucina.thread_mod.Pool(2) as pool:
    for i in range(60):
        assert meet(pool, 3) == 3
        if i % 20 == 0: time.sleep(0.02)
print("ran")
"""
    )
    assert program(impl, text, variables={"FUCINA_SPIN_BUDGET": budget}).strip() == "ran"


ENDED = """
count = lambda: len(os.listdir('/proc/self/task'))
before = count()
def all_gone():
    for _ in range(500):
        if count() > before: time.sleep(0.01)
    return count() == before
"""


@clause("TEAM-END-1", "CONTEXT-LIFE-2")
def test_a_team_ends_in_a_task_of_another(impl: Any) -> None:
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("the threads of a process are counted in /proc")
    text = (
        MEETING
        + ENDED
        + """
def used():
    pool = fucina.thread_mod.Pool(2)
    meet(pool, 3)
    return pool
kept, dropped = [used() for _ in range(4)], [used() for _ in range(4)]
def work(task):
    kept.pop().deinit()
    dropped.pop()
    ctx = fucina.ExecContext()
    ctx.try_work_pool()
    ctx.dot_backward_worker().start(int)
    ctx.deinit()
with fucina.thread_mod.Pool(1) as pool:
    pool.parallel_chunks(range(4), work)
assert not kept and not dropped
print(all_gone())
"""
    )
    assert program(impl, text).strip() == "True"


@clause("CONTEXT-LIFE-2", "TEAM-END-1")
def test_a_context_comes_down_whatever_its_team_says(impl: Any) -> None:
    """Neither a task of its own team, nor a worker's interrupt, keeps scopes and buffers."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    for kind in (ConcurrentUse, KeyboardInterrupt):
        ctx, raised = impl.ExecContext(), list[type]()
        pool = ctx.try_work_pool()
        ctx.open_exec_scope()
        if kind is KeyboardInterrupt:
            ctx.dot_backward_worker().start(interrupt)

        def end(task: int, ctx: Any = ctx, raised: list[type] = raised) -> None:
            if task == 0:
                try:
                    ctx.deinit()
                except BaseException as error:
                    raised.append(type(error))

        if kind is ConcurrentUse:
            if pool.team_size == 1:
                continue
            pool.parallel_chunks(range(3), end)
        else:
            end(0)
        assert raised == [kind]
        assert ctx.rt.scope_depth == 0


@clause("TEAM-ONESHOT-2")
def test_a_forgotten_worker_leaves_no_thread(impl: Any) -> None:
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("the threads of a process are counted in /proc")
    text = (
        MEETING
        + ENDED
        + """
ran = []
def task(i):
    time.sleep(0.001 * (i % 3))
    ran.append(i)
    if i % 5 == 0: raise LookupError(i)
for i in range(30):
    worker = fucina.thread_mod.OneShotWorker()
    if i % 2:
        worker.start(lambda: i)
        worker.wait()
    worker.start(lambda i=i: task(i))
    if i % 4 == 0: time.sleep(0.004)
    del worker
print(all_gone(), sorted(ran) == list(range(30)))
"""
    )
    assert program(impl, text).split() == ["True", "True"]


@forks
@clause("TEAM-FORK-2")
@pytest.mark.parametrize("lost", [True, False])
def test_a_fork_inside_a_chain(impl: Any, lost: bool) -> None:
    text = (
        MEETING
        + f"lost = {lost}\n"
        + """
from fucina.spec.errors import ForkedInTask
pool, children, ran, inside = fucina.thread_mod.Pool(1), [], [], threading.Event()
me, begun, done = threading.get_ident(), threading.Event(), threading.Event()
def work(task, chain):
    ran.append(task)
    if threading.get_ident() != me:
        inside.set()
        begun.wait(20)  # or it could run both
        if lost: time.sleep(1)
        done.set()
    elif not children:
        begun.set()
        inside.wait(20)
        if not lost:
            done.wait(20)
            time.sleep(0.5)  # for the task to be noted as done, on a machine with more to do
        children.append(os.fork())
        if children[0] == 0: chain.enqueue(2)
        else: chain.enqueue(2)
code = 1
try:
    whole = pool.parallel_chained(range(3), 2, work)
    code = 0 if whole and sorted(ran) == [0, 1, 2] and (children[0] or not lost) else 1
except ForkedInTask as error:
    code = 0 if lost and not children[0] and "TEAM-FORK-2" in str(error) and 2 in ran and meet(pool, 2) == 2 else 1
"""
        + CHILD_AND_PARENT
    )
    assert program(impl, text).strip() == "ran"


@forks
@clause("TEAM-FORK-2")
@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("kind", ["chunks", "chained"])
@pytest.mark.parametrize("error", ["LookupError", "SystemExit"])
def test_a_fork_inside_a_task_that_raises(impl: Any, kind: str, lost: bool, error: str) -> None:
    text = (
        MEETING
        + f"kind, lost, error = {kind!r}, {lost}, {error}\n"
        + """
from fucina.spec.errors import ForkedInTask
me, inside, over, children = threading.get_ident(), threading.Event(), threading.Event(), []
def work(task, chain=None):
    if threading.get_ident() != me:
        inside.set()
        if lost: over.wait(20)
        return
    inside.wait(20)
    if not lost: time.sleep(0.5)  # for the other to be noted as done
    children.append(os.fork())
    if children[0] == 0: raise error
    over.set()
pool, code, main = fucina.thread_mod.Pool(1), 1, os.getpid()
try:
    if kind == "chunks": pool.parallel_chunks(range(2), work)
    else: assert pool.parallel_chained(range(2), 2, work)
    code = 0 if os.getpid() == main else 2
except ForkedInTask:
    code = 0 if os.getpid() != main and lost else 3
except (LookupError, SystemExit):
    code = 0 if os.getpid() != main and not lost else 4
"""
        + CHILD_AND_PARENT
    )
    assert program(impl, text).strip() == "ran"


@forks
@clause("TEAM-FORK-2")
@pytest.mark.parametrize("kind", ["chunks", "chained", "spawned"])
def test_a_worker_that_forks_begins_nothing_else_in_the_child(impl: Any, kind: str) -> None:
    text = (
        MEETING
        + f"kind = {kind!r}\n"
        + """
pool, children = fucina.thread_mod.Pool(1), []
me, forked = threading.get_ident(), threading.Event()
read, write = os.pipe()
def work(task, chain=None):
    os.write(write, b"p" if os.getpid() == parent else b"c")
    if threading.get_ident() == me:
        forked.wait(20)
    elif not forked.is_set():
        child = os.fork()
        if child: children.append(child)
        forked.set()
parent = os.getpid()
if kind == "chunks": pool.parallel_chunks(range(6), work)
if kind == "chained": pool.parallel_chained(range(6), 6, work)
if kind == "spawned":
    group = fucina.thread_mod.WaitGroup()
    for i in range(6): pool.spawn_wg(group, work, i)
    pool.wait_and_work(group)
ended(children[0])
os.close(write)
print(os.read(read, 100).decode())
"""
    )
    assert program(impl, text).strip() == "pppppp"


@forks
@clause("TEAM-FORK-2", "TEAM-SPAWN-1")
def test_spawned_tasks_are_lost_in_a_child(impl: Any) -> None:
    text = (
        MEETING
        + """
from fucina.spec.errors import ForkedInTask
kinds = fucina.thread_mod
pool, group, begun, ran = kinds.Pool(1), kinds.WaitGroup(), threading.Event(), []
def slow():
    begun.set()
    time.sleep(1)
    ran.append("slow")
pool.spawn_wg(group, slow)
pool.spawn_wg(group, ran.append, "next")
begun.wait(20)
child = os.fork()
if child == 0:
    code = 1
    try:
        pool.wait_and_work(group)
    except ForkedInTask:
        pool.wait_and_work(group)
        pool.spawn_wg(group, ran.append, "again")
        pool.wait_and_work(group)
        group.wait()
        code = 0 if ran == ["again"] else 2
    os._exit(code)
pool.wait_and_work(group)
assert sorted(ran) == ["next", "slow"]
ended(child)
print("ran")
"""
    )
    assert program(impl, text).strip() == "ran"


@forks
@clause("TEAM-FORK-2", "TEAM-ONESHOT-2")
@pytest.mark.parametrize("who", ["this thread", "another thread"])
def test_a_one_shot_task_in_a_child(impl: Any, who: str) -> None:
    """What was begun is not waited for in the child either, whoever began it; there it is lost."""
    text = (
        MEETING
        + f"who = {who!r}\n"
        + """
from fucina.spec.errors import ConcurrentUse, ForkedInTask
worker, begun, release = fucina.thread_mod.OneShotWorker(), threading.Event(), threading.Event()
def task():
    begun.set()
    release.wait(20)
    return "old"
if who == "this thread":
    worker.start(task)
else:
    starter = threading.Thread(target=worker.start, args=(task,))
    starter.start()
    starter.join()
begun.wait(20)
child = os.fork()
if child == 0:
    code = 1
    try:
        worker.start(lambda: "new")
    except ConcurrentUse:
        try:
            worker.wait()
        except ForkedInTask:
            assert worker.wait() is None
            worker.start(lambda: "newer")
            code = 0 if worker.wait() == "newer" and worker.wait() is None else 2
    os._exit(code)
ended(child)
release.set()
assert worker.wait() == "old"
print("ran")
"""
    )
    assert program(impl, text).strip() == "ran"


@forks
@clause("TEAM-FORK-2", "TEAM-SPAWN-1", "TEAM-SIGNAL-1")
def test_a_handler_forks_while_the_caller_waits(impl: Any) -> None:
    text = (
        MEETING
        + """
import signal
from fucina.spec.errors import ForkedInTask
kinds, children = fucina.thread_mod, []
def handler(number, frame): children.append(os.fork())
signal.signal(signal.SIGALRM, handler)
pool, group, begun = kinds.Pool(1), kinds.WaitGroup(), threading.Event()
def slow():
    begun.set()
    time.sleep(1)
pool.spawn_wg(group, slow)
begun.wait(20)
signal.setitimer(signal.ITIMER_REAL, 0.3)
code = 1
try:
    pool.wait_and_work(group)
    code = 0 if children[0] else 1
except ForkedInTask:
    code = 0 if not children[0] else 1
"""
        + CHILD_AND_PARENT
    )
    assert program(impl, text).strip() == "ran"


@clause("TEAM-ONESHOT-2")
@pytest.mark.parametrize("how", ["task", "result", "exception"])
def test_a_worker_that_its_task_refers_to_is_collected(impl: Any, how: str) -> None:
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("the threads of a process are counted in /proc")
    text = (
        MEETING
        + ENDED
        + f"how = {how!r}\n"
        + """
import gc, weakref
class Loader:
    def __init__(self):
        self.worker, self.over = fucina.thread_mod.OneShotWorker(), threading.Event()
        self.worker.start(self.load if how == "task" else lambda: self.load())
    def load(self):
        self.over.set()
        if how == "result": return self
        if how == "exception": raise LookupError(self)
def made():
    loader = Loader()
    loader.over.wait(20)
    return weakref.ref(loader)
kept = [made() for _ in range(10)]
for _ in range(500):
    gc.collect()
    if any(loader() is not None for loader in kept): time.sleep(0.01)
print(sum(loader() is not None for loader in kept), all_gone())
"""
    )
    assert program(impl, text).split() == ["0", "True"]


@clause("TEAM-ONESHOT-2")
def test_a_worker_dropped_in_the_task_of_another_keeps_nothing(impl: Any) -> None:
    text = (
        MEETING
        + """
import gc, weakref
class Kept: pass
kept = []
def task():
    for _ in range(5):
        value, over = Kept(), threading.Event()
        kept.append(weakref.ref(value))
        inner = fucina.thread_mod.OneShotWorker()
        inner.start(lambda value=value, over=over: (over.set(), value)[1])
        over.wait(20)
        time.sleep(0.02)
        del inner, value
worker = fucina.thread_mod.OneShotWorker()
worker.start(task)
worker.wait()
for _ in range(500):
    gc.collect()
    if any(value() is not None for value in kept): time.sleep(0.01)
print(sum(value() is not None for value in kept))
"""
    )
    assert program(impl, text).strip() == "0"


@forks
@clause("TEAM-END-1", "TEAM-FORK-2")
def test_a_child_cannot_end_the_team_that_runs_its_task(impl: Any) -> None:
    text = (
        MEETING
        + """
from fucina.spec.errors import ConcurrentUse, ForkedInTask
pool, children, me, code = fucina.thread_mod.BarrierPool(1), [], threading.get_ident(), 1
inside = threading.Event()
def run(task):
    global code
    if threading.get_ident() != me:
        inside.set()
        time.sleep(0.3)
    elif not children:
        inside.wait(20)
        children.append(os.fork())
        if children[0]:
            code = 0
        else:
            try:
                pool.deinit()
            except ConcurrentUse:
                code = 0
try:
    pool.parallel_chunks(range(2), run)
except ForkedInTask:
    assert not children[0]
pool.deinit()
"""
        + CHILD_AND_PARENT
    )
    assert program(impl, text).strip() == "ran"
