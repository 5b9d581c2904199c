"""Dependency graphs: order, violations, never a hang; and what stands beside the team."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.teams import PATIENCE, Meeting
from fucina.spec.errors import (
    ChainViolation,
    ConcurrentUse,
    IndexOutOfBounds,
    InvalidBounds,
    InvalidInteger,
    OverRelease,
    UseAfterDeinit,
)

pytestmark = pytest.mark.usefixtures("watchdog")


@clause("TEAM-CHAIN-1", "TEAM-CHAIN-2", "TEAM-CHAIN-3")
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_random_graphs_run_in_order(impl: Any, workers: int) -> None:
    chance = random.Random(workers)
    with impl.thread_mod.Pool(workers) as pool:
        for _ in range(15):
            count = chance.randint(1, 60)
            initial = chance.randint(1, count)
            before = [set[int]()] * initial + [
                set(chance.sample(range(i), min(i, chance.randint(1, 3)))) for i in range(initial, count)
            ]
            lock, done, waits = threading.Lock(), list[int](), [set(needs) for needs in before]

            def visit(
                task: int, chain: Any, before: Any = before, lock: Any = lock, done: Any = done, waits: Any = waits
            ) -> None:
                with lock:
                    assert before[task] <= set(done)
                    done.append(task)
                    ready = []
                    for i, needs in enumerate(waits):
                        if task in needs:
                            needs.discard(task)
                            if not needs:
                                ready.append(i)
                for i in ready:
                    chain.enqueue(i)

            assert pool.parallel_chained(range(count), initial, visit) is True
            assert sorted(done) == list(range(count))


@clause("TEAM-CHAIN-1", "TEAM-JOIN-1")
def test_independent_tasks_run_at_once(impl: Any) -> None:
    with impl.thread_mod.Pool(3) as pool:
        meeting = Meeting(4)
        assert pool.parallel_chained(range(4), 4, lambda task, chain: meeting())
        assert len(meeting.identities) == 4


@clause("TEAM-CHAIN-2")
@pytest.mark.parametrize("swallow", [False, True])
def test_twice_is_a_violation(impl: Any, swallow: bool) -> None:
    seen: list[BaseException] = []

    def visit(task: int, chain: Any) -> None:
        if task == 0:
            chain.enqueue(1)
            chain.enqueue(2)
        if task == 1:
            try:
                chain.enqueue(2)
            except ChainViolation as error:
                seen.append(error)
                if not swallow:
                    raise

    with impl.thread_mod.Pool(2) as pool:
        assert_raises(ChainViolation, "TEAM-CHAIN-2", lambda: pool.parallel_chained(range(3), 1, visit), shows=[2])
        assert len(seen) == 1
        assert_raises(
            ChainViolation, "TEAM-CHAIN-2", lambda: pool.parallel_chained([0], 1, lambda task, chain: chain.enqueue(0))
        )


@clause("TEAM-CHAIN-2")
@pytest.mark.parametrize("workers", [1, 3])
def test_missing_is_a_violation_and_no_hang(impl: Any, workers: int) -> None:
    ran: list[int] = []

    def visit(task: int, chain: Any) -> None:
        ran.append(task)
        time.sleep(0.002)
        if task == 0:
            chain.enqueue(3)

    with impl.thread_mod.Pool(workers) as pool:
        assert_raises(ChainViolation, "TEAM-CHAIN-2", lambda: pool.parallel_chained(range(6), 2, visit), shows=[2])
        assert sorted(ran) == [0, 1, 3]
        assert_raises(ChainViolation, "TEAM-CHAIN-2", lambda: pool.parallel_chained(range(6), 0, visit), shows=[0])
        assert sorted(ran) == [0, 1, 3]


@clause("TEAM-CHAIN-2")
def test_enqueue_outside(impl: Any) -> None:
    kept: list[Any] = []

    def visit(task: int, chain: Any) -> None:
        kept.append(chain)
        for index in (-1, 2, 10**30):
            assert_raises(IndexOutOfBounds, "TEAM-CHAIN-2", lambda index=index: chain.enqueue(index))  # type: ignore[misc]
        assert_raises(InvalidInteger, "TEAM-CHAIN-2", lambda: chain.enqueue(1.0))

    with impl.thread_mod.Pool(1) as pool:
        assert pool.parallel_chained(range(2), 2, visit)
        assert_raises(ChainViolation, "TEAM-CHAIN-2", lambda: kept[0].enqueue(1))
        last: list[Any] = []
        with pytest.raises(ChainViolation):
            pool.parallel_chained(range(3), 2, lambda task, chain: last.append(chain))
        # not a second time: that it is over is all that is wrong
        assert_raises(ChainViolation, "TEAM-CHAIN-2", lambda: last[0].enqueue(2), shows=[2])
        with pytest.raises(ChainViolation, match="over"):
            last[0].enqueue(2)
        assert_raises(InvalidBounds, "TEAM-CHAIN-1", lambda: pool.parallel_chained([1], 2, visit), shows=[2])
        assert_raises(InvalidBounds, "TEAM-CHAIN-1", lambda: pool.parallel_chained([1], -1, visit), shows=[-1])
        assert pool.parallel_chained([], 0, visit) is True


@clause("TEAM-RAISE-1", "TEAM-CHAIN-2")
def test_what_a_task_raises_comes_before_what_is_missing(impl: Any) -> None:
    def visit(task: int, chain: Any) -> None:
        if task in (1, 2):
            raise LookupError(task)
        chain.enqueue(3)

    with impl.thread_mod.Pool(2) as pool:
        with pytest.raises(LookupError) as caught:
            pool.parallel_chained(range(5), 3, visit)
        assert caught.value.args == (1,)


@clause("TEAM-CHAIN-3")
def test_no_workers_no_chain(impl: Any) -> None:
    ran: list[int] = []
    with impl.thread_mod.Pool(0) as pool:
        assert pool.parallel_chained(range(3), 3, lambda task, chain: ran.append(task)) is False
    assert not ran


@clause("TEAM-ONESHOT-1", "TEAM-ONESHOT-2")
def test_one_task_beside_the_caller(impl: Any) -> None:
    worker = impl.thread_mod.OneShotWorker()
    assert worker.wait() is None
    for i in range(50):
        worker.start(lambda i=i: i * i)
        assert worker.wait() == i * i
        assert worker.wait() is None
    meeting = Meeting(2)
    worker.start(meeting)
    assert_raises(ConcurrentUse, "TEAM-ONESHOT-2", lambda: worker.start(meeting))
    meeting()
    worker.wait()
    assert len(meeting.identities) == 2
    worker.start(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        worker.wait()
    done: list[int] = []

    def late() -> None:
        time.sleep(0.02)
        done.append(1)

    worker.start(late)
    worker.deinit()
    assert done == [1]
    for call in (worker.wait, worker.deinit, lambda: worker.start(meeting)):
        assert_raises(UseAfterDeinit, "TEAM-ONESHOT-2", call)


@clause("TEAM-ONESHOT-2")
def test_a_task_cannot_wait_for_itself(impl: Any) -> None:
    worker, seen = impl.thread_mod.OneShotWorker(), list[type]()
    started = threading.Event()

    def task() -> int:
        started.wait(PATIENCE)
        for call in (worker.wait, worker.deinit):
            try:
                call()
            except ConcurrentUse as error:
                seen.append(type(error))
        return 3

    worker.start(task)
    started.set()
    for _ in range(2000):  # wait() here would take the task from the list of what can be waited for
        if len(seen) == 2:
            break
        time.sleep(0.005)
    assert seen == [ConcurrentUse] * 2
    assert worker.wait() == 3
    worker.deinit()


@clause("TEAM-ONESHOT-2")
def test_the_end_while_another_thread_waits(impl: Any) -> None:
    worker, release = impl.thread_mod.OneShotWorker(), threading.Event()
    found: list[Any] = []
    worker.start(lambda: release.wait(PATIENCE))
    waiter = threading.Thread(target=lambda: found.append(worker.wait()))
    waiter.start()
    time.sleep(0.5)  # until it waits, on a machine with more to do
    assert_raises(ConcurrentUse, "TEAM-ONESHOT-2", worker.deinit)
    assert_raises(ConcurrentUse, "TEAM-ONESHOT-2", lambda: worker.start(int))
    release.set()
    waiter.join(PATIENCE)
    assert found == [True]
    worker.deinit()


@clause("TEAM-ONESHOT-2")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_worker_ends_whatever_its_task_raised(impl: Any, kind: type[BaseException]) -> None:
    def task() -> None:
        raise kind

    worker = impl.thread_mod.OneShotWorker()
    worker.start(task)
    with pytest.raises(kind):
        worker.deinit()
    assert_raises(UseAfterDeinit, "TEAM-ONESHOT-2", worker.wait)


@clause("TEAM-CHAIN-2")
def test_enqueue_from_elsewhere_at_the_end(impl: Any) -> None:
    """Another thread enqueues the last task at any moment: it runs, or the dispatch says that it is missing."""
    kept: list[Any] = []
    stop = threading.Event()
    late: list[BaseException] = []

    def elsewhere() -> None:
        while not stop.is_set():
            for chain in kept[-1:]:
                try:
                    chain.enqueue(3)
                except ChainViolation:
                    pass
                except BaseException as error:
                    late.append(error)

    other = threading.Thread(target=elsewhere)
    other.start()
    try:
        with impl.thread_mod.Pool(1) as pool:
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                ran: list[int] = []

                def visit(task: int, chain: Any, ran: list[int] = ran) -> None:
                    ran.append(task)
                    kept[:] = [chain]

                try:
                    assert pool.parallel_chained(range(4), 3, visit) is True
                    assert sorted(ran) == [0, 1, 2, 3]
                except ChainViolation:
                    assert {0, 1, 2} <= set(ran)
    finally:
        stop.set()
        other.join()
    assert not late


@clause("TEAM-SPAWN-1")
def test_single_tasks(impl: Any) -> None:
    kinds = impl.thread_mod
    with kinds.Pool(2) as pool:
        group, found = kinds.WaitGroup(), list[tuple[int, int]]()
        for i in range(200):
            pool.spawn_wg(group, lambda *args: found.append(args), i, i + 1)
        pool.wait_and_work(group)
        assert group.is_done()
        assert sorted(found) == [(i, i + 1) for i in range(200)]
        meeting = Meeting(2)
        assert pool.try_spawn_wg(group, meeting) is True
        meeting()
        pool.wait_and_work(group)
        assert len(meeting.identities) == 2

        def fail(i: int) -> None:
            time.sleep(0.001 * (5 - i))
            raise LookupError(i)

        for i in range(5):
            pool.spawn_wg(group, fail, i)
        with pytest.raises(LookupError) as caught:
            pool.wait_and_work(group)
        assert caught.value.args == (0,)
        pool.wait_and_work(group)
    with kinds.Pool(0) as pool:
        here: list[int] = []
        assert pool.try_spawn_wg(group, here.append, 1) is False
        assert here == []
        assert group.is_done()
        pool.spawn_wg(group, lambda: here.append(threading.get_ident()))
        assert here == [threading.get_ident()]
        pool.wait_and_work(group)


@clause("TEAM-SPAWN-1")
def test_who_waits_runs_what_is_spawned_meanwhile(impl: Any) -> None:
    """A task that waits for one that it has spawned ends, although its thread is the only one beside the caller."""
    kinds = impl.thread_mod
    with kinds.Pool(1) as pool:
        group, inside, second, found = kinds.WaitGroup(), threading.Event(), threading.Event(), list[bool]()

        def first() -> None:
            inside.set()
            time.sleep(0.2)  # for the caller to have nothing to do
            pool.spawn_wg(group, second.set)
            found.append(second.wait(PATIENCE / 4))

        pool.spawn_wg(group, first)
        assert inside.wait(PATIENCE / 4)
        pool.wait_and_work(group)
        assert found == [True]


@clause("TEAM-SPAWN-1", "TEAM-PRIMITIVE-1")
def test_a_reset_beside_a_task_loses_no_thread(impl: Any) -> None:
    kinds = impl.thread_mod
    with kinds.Pool(1) as pool:
        group, release = kinds.WaitGroup(), threading.Event()
        pool.spawn_wg(group, release.wait, PATIENCE)
        group.reset()
        assert group.is_done()
        meeting = Meeting(2)
        pool.spawn_wg(group, meeting)
        release.set()
        meeting()
        pool.wait_and_work(group)
        assert len(meeting.identities) == 2


@clause("TEAM-PRIMITIVE-1")
def test_primitives(impl: Any) -> None:
    kinds = impl.thread_mod
    group = kinds.WaitGroup()
    assert group.is_done()
    group.wait()
    group.start(2)
    group.start()
    for _ in range(3):
        assert not group.is_done()
        group.finish()
    assert group.is_done()
    assert_raises(OverRelease, "TEAM-PRIMITIVE-1", group.finish)
    assert_raises(InvalidBounds, "TEAM-PRIMITIVE-1", lambda: group.start(-1))
    group.start(4)
    waiter = threading.Thread(target=group.wait)
    waiter.start()
    group.reset()
    waiter.join(PATIENCE)
    assert not waiter.is_alive()

    mutex = kinds.Mutex()
    mutex.lock()
    assert mutex.try_lock() is False
    mutex.unlock()
    assert mutex.try_lock() is True
    mutex.unlock()
    assert_raises(OverRelease, "TEAM-PRIMITIVE-1", mutex.unlock)
    with mutex:
        assert mutex.try_lock() is False

    class Child:
        inside = worst = 0

        def _call(self) -> None:
            Child.inside += 1
            Child.worst = max(Child.worst, Child.inside)
            time.sleep(0.0005)
            Child.inside -= 1

        def alloc(self, size: int) -> Any:
            self._call()
            return bytearray(size)

        def resize(self, memory: Any, size: int) -> bool:
            self._call()
            return size <= len(memory)

        def remap(self, memory: Any, size: int) -> Any:
            self._call()
            return memory[:size]

        def free(self, memory: Any) -> None:
            self._call()

    allocator = kinds.ThreadSafeAllocator(Child())

    def use(_: int) -> None:
        memory = allocator.alloc(8)
        assert len(memory) == 8
        assert allocator.resize(memory, 9) is False
        assert len(allocator.remap(memory, 4)) == 4
        assert allocator.free(memory) is None

    with kinds.Pool(3) as pool:
        pool.parallel_chunks(range(20), use)
    assert Child.worst == 1
