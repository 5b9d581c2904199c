"""Dispatches of Python tasks: each once, on several threads, nested, at once, with exceptions."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.conformance.suite.teams import PATIENCE, Meeting
from fucina.spec.errors import InvalidBounds, InvalidInteger

pytestmark = pytest.mark.usefixtures("watchdog")

KINDS = ("Pool", "BarrierPool")


def made(impl: Any, kind: str, workers: int) -> Any:
    return getattr(impl.thread_mod, kind)(workers)


@clause("TEAM-POOL-1")
@pytest.mark.parametrize("kind", KINDS)
def test_sizes(impl: Any, kind: str) -> None:
    most = impl.parallel.vector_max_threads
    for workers in (0, 1, 5, 63, 64, 10**20):
        with made(impl, kind, workers) as pool:
            assert pool.team_size == min(workers + 1, most)
    assert_raises(InvalidBounds, "TEAM-POOL-1", lambda: made(impl, kind, -1), shows=[-1])
    assert_raises(InvalidInteger, "TEAM-POOL-1", lambda: made(impl, kind, True))


@clause("TEAM-POOL-1")
def test_a_pool_is_as_large_as_the_count_says(impl: Any) -> None:
    count = impl.parallel.cpu_thread_count(impl.parallel.vector_max_threads)
    with impl.thread_mod.Pool() as pool, impl.thread_mod.Pool.init() as other:
        assert pool.team_size == other.team_size == count
    with impl.thread_mod.Pool.init(max_workers=2) as pool:
        assert pool.team_size == 3


@clause("TEAM-CHUNKS-1")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [0, 1, 3, 8])
def test_every_task_once(impl: Any, kind: str, workers: int) -> None:
    with made(impl, kind, workers) as pool:
        for length in [*range(8), 100, 1000]:
            done: list[int] = []
            assert pool.parallel_chunks(range(length), done.append) is None
            assert sorted(done) == list(range(length))


@clause("TEAM-CHUNKS-1")
def test_the_caller_begins_with_the_first(impl: Any) -> None:
    seen: list[tuple[int, int]] = []
    with impl.thread_mod.Pool(3) as pool:
        for _ in range(20):
            seen.clear()
            pool.parallel_chunks(range(6), lambda task: seen.append((task, threading.get_ident())))
            assert dict(seen)[0] == threading.get_ident()


@clause("TEAM-CHUNKS-1", "TEAM-JOIN-1")
@pytest.mark.parametrize("workers", [1, 3])
def test_tasks_run_on_all_participants_at_once(impl: Any, workers: int) -> None:
    with impl.thread_mod.Pool(workers) as pool:
        for _ in range(5):
            meeting = Meeting(workers + 1)
            pool.parallel_chunks(range(workers + 1), meeting)
            assert len(meeting.identities) == workers + 1


@clause("TEAM-JOIN-1")
def test_a_dispatch_returns_after_its_last_task(impl: Any) -> None:
    done: list[int] = []

    def work(task: int) -> None:
        time.sleep(0.002 * (task % 4))
        done.append(task)

    with impl.thread_mod.Pool(3) as pool:
        for _ in range(10):
            done.clear()
            pool.parallel_chunks(range(9), work)
            assert len(done) == 9


@clause("TEAM-JOIN-1")
def test_a_dispatch_waits_for_what_another_thread_has_begun(impl: Any) -> None:
    caller, meeting = threading.get_ident(), Meeting(2)
    done: list[int] = []

    def work(task: int) -> None:
        meeting()
        if threading.get_ident() != caller:
            time.sleep(0.1)
        done.append(task)

    with impl.thread_mod.Pool(1) as pool:
        pool.parallel_chunks(range(2), work)
        ended = sorted(done)
    assert ended == [0, 1]  # after the pool's end, so that no thread is left behind where this fails


@clause("TEAM-SERIAL-1")
def test_a_dispatch_in_a_task_runs_in_order_on_its_thread(impl: Any) -> None:
    with impl.thread_mod.Pool(3) as pool, impl.thread_mod.BarrierPool(3) as other:
        inner: dict[int, list[tuple[int, int]]] = {task: [] for task in range(8)}
        answers: list[bool] = []

        def work(task: int) -> None:
            for team in (pool, other):
                team.parallel_chunks(range(5), lambda i: inner[task].append((i, threading.get_ident())))
            answers.append(pool.parallel_chained([1, 2], 2, lambda task, chain: None))
            inner[task].append((-1, threading.get_ident()))

        pool.parallel_chunks(range(8), work)
    for task in range(8):
        assert [i for i, _ in inner[task]] == [0, 1, 2, 3, 4] * 2 + [-1]
        assert len({thread for _, thread in inner[task]}) == 1
    assert answers == [False] * 8


@clause("TEAM-SERIAL-1", "TEAM-CHAIN-3", "TEAM-THREADS-1")
def test_a_second_thread_is_served_serially(impl: Any) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold(task: int) -> None:
        entered.set()
        leave.wait(PATIENCE / 2)

    with impl.thread_mod.Pool(1) as pool:
        first = threading.Thread(target=lambda: pool.parallel_chunks(range(2), hold))
        first.start()
        assert entered.wait(PATIENCE / 2)
        order: list[tuple[int, int]] = []
        pool.parallel_chunks(range(4), lambda task: order.append((task, threading.get_ident())))
        assert order == [(task, threading.get_ident()) for task in range(4)]
        assert pool.parallel_chained(range(4), 4, lambda task, chain: order.clear()) is False
        assert len(order) == 4
        leave.set()
        first.join()


@clause("TEAM-RAISE-1")
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_lowest_index_is_raised_after_all_tasks(impl: Any, workers: int) -> None:
    with impl.thread_mod.Pool(workers) as pool:
        for bad in ({2, 5, 9}, {0}, {9}, set(range(10)), {1, 0}):
            done: list[int] = []

            def work(task: int, bad: set[int] = bad, done: list[int] = done) -> None:
                time.sleep(0.001 * ((task * 7) % 3))
                done.append(task)
                if task in bad:
                    raise LookupError(task)

            with pytest.raises(LookupError) as caught:
                pool.parallel_chunks(range(10), work)
            assert caught.value.args == (min(bad),)
            assert sorted(done) == list(range(10))
        done = []
        pool.parallel_chunks(range(4), done.append)
        assert len(done) == 4


@clause("TEAM-RAISE-1")
@pytest.mark.parametrize("workers", [0, 2])
def test_an_interrupt_comes_first_and_ends_the_dispatch(impl: Any, workers: int) -> None:
    begun: list[int] = []

    def work(task: int) -> None:
        begun.append(task)
        if task == 0:
            raise LookupError("first")
        if task == 3:
            raise KeyboardInterrupt
        time.sleep(0.001)

    with impl.thread_mod.Pool(workers) as pool:
        with pytest.raises(KeyboardInterrupt):
            pool.parallel_chunks(range(2000), work)
        assert len(begun) < 1500


@clause("TEAM-RAISE-1")
def test_an_interrupt_comes_first_whatever_ends_with_the_others(impl: Any) -> None:
    """The interrupt takes the place of an exception whose end lets another task raise a third."""
    released = threading.Event()

    class SlowError(Exception):
        def __del__(self) -> None:
            released.set()
            time.sleep(0.3)

    meeting = Meeting(3)

    def work(task: int) -> None:
        meeting()
        if task == 2:
            raise SlowError
        if task == 1:
            time.sleep(0.3)
            raise KeyboardInterrupt
        released.wait(2)
        time.sleep(0.1)
        raise LookupError

    with impl.thread_mod.Pool(2) as pool, pytest.raises(KeyboardInterrupt):
        pool.parallel_chunks(range(3), work)


@clause("TEAM-ENV-1")
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_tasks_begin_in_the_default_environment(impl: Any, workers: int) -> None:
    fpenv = impl.fpenv
    if not fpenv.supported:
        pytest.skip("the implementation says that it cannot reach the floating-point environment here")
    bad = fpenv.Environment(fpenv.RoundingMode.upward, fpenv.UnderflowMode.flush_to_zero)
    found: list[Any] = []

    def work(_: int) -> None:
        found.append((fpenv.get(), float(np.float32(1) / np.float32(3)), float(np.float32(1e-30) * np.float32(1e-10))))
        fpenv.set(bad)  # for whoever comes next on this thread
        time.sleep(0.0005)

    def link(task: int, chain: Any) -> None:
        work(task)
        if task < 3:
            chain.enqueue(4 + task)

    with np.errstate(all="ignore"), fpenv.guard():
        fpenv.set(bad)
        with impl.thread_mod.Pool(workers) as pool:
            pool.parallel_chunks(range(12), work)
            assert fpenv.get() == bad
            if pool.parallel_chained(range(7), 4, link):
                assert fpenv.get() == bad
            with impl.thread_mod.OneShotWorker() as worker:
                worker.start(lambda: work(0))
                worker.wait()
            assert fpenv.get() == bad
            group = impl.thread_mod.WaitGroup()
            for _ in range(8):  # one after the other and several at once, here and elsewhere
                pool.spawn_wg(group, work, 0)
                assert fpenv.get() == bad
                pool.spawn_wg(group, work, 0)
                pool.wait_and_work(group)
                assert fpenv.get() == bad
    third, tiny = 0.3333333432674408, 9.999946101114759e-41
    assert len(found) == 12 + (7 if workers else 0) + 1 + 16
    assert set(found) == {(fpenv.default_environment, third, tiny)}
