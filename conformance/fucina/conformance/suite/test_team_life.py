"""Teams from their first dispatch to their end: threads that cannot be had, owners that are forgotten, what ends."""

from __future__ import annotations

import os
from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.team_programs import ENDED, MEETING
from fucina.conformance.suite.teams import Meeting, program
from fucina.spec.errors import ConcurrentUse, UseAfterDeinit

pytestmark = pytest.mark.usefixtures("watchdog")


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
    if all(loader() is None for loader in kept): break
    time.sleep(0.01)
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
    if all(value() is None for value in kept): break
    time.sleep(0.01)
print(sum(value() is not None for value in kept))
"""
    )
    assert program(impl, text).strip() == "0"
