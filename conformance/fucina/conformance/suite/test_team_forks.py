"""A process that forks with teams alive: in and outside of tasks, chains and single tasks, and in handlers."""

from __future__ import annotations

from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.suite.team_programs import CHILD_AND_PARENT, MEETING, forks
from fucina.conformance.suite.teams import program

pytestmark = pytest.mark.usefixtures("watchdog")


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
here = threading.Event()
def work(task, chain=None):
    if threading.get_ident() != me:
        inside.set()
        here.wait(20)  # or it might take the other task as well
        if lost: over.wait(20)
        return
    here.set()
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
