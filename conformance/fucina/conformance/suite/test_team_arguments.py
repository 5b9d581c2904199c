"""Arguments of another kind: refused by name, on every size of team, before a task has run or been counted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fucina.conformance import clause
from fucina.conformance.compare import assert_raises
from fucina.spec.errors import DTypeMismatch

NO_CALLABLES: tuple[Any, ...] = (None, 3, "run", [print])
NO_GROUPS: tuple[Any, ...] = (None, 3, "group", print)
NO_SEQUENCES: tuple[Any, ...] = (None, 3, print)


def refused(name: str, value: object, call: Callable[[object], object]) -> None:
    """Assert the error, and that it says which argument and what it was."""
    plain = value is None or isinstance(value, int | str)
    shown = repr(value) if plain else type(value).__name__
    error = assert_raises(DTypeMismatch, "TEAM-ARG-1", lambda: call(value), shows=(f"{name} must", shown))
    assert isinstance(error, TypeError)


@clause("TEAM-ARG-1")
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("kind", ["Pool", "BarrierPool"])
def test_dispatches(impl: Any, kind: str, workers: int) -> None:
    ran: list[object] = []
    with getattr(impl.thread_mod, kind)(workers) as pool:
        for wrong in NO_CALLABLES:
            for tasks in ([], [1], [1, 2]):
                refused("run", wrong, partial(pool.parallel_chunks, tasks))
                refused("run", wrong, partial(pool.parallel_chained, tasks, 0))
        for wrong in NO_SEQUENCES:
            refused("tasks", wrong, lambda wrong: pool.parallel_chunks(wrong, ran.append))
            refused("tasks", wrong, lambda wrong: pool.parallel_chained(wrong, 0, ran.append))
        assert ran == []
        pool.parallel_chunks(iter([1, 2]), ran.append)
        assert sorted(map(str, ran)) == ["1", "2"]


class Counted:
    """A sequence by its length and its items alone."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        if index >= 4:
            raise IndexError(index)
        return index * index


@clause("TEAM-ARG-1")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_sequence_without_an_iterator(impl: Any, workers: int) -> None:
    ran: list[int] = []
    with impl.thread_mod.Pool(workers) as pool:
        pool.parallel_chunks(Counted(), ran.append)
        assert sorted(ran) == [0, 1, 4, 9]
        if pool.parallel_chained(Counted(), 4, lambda task, chain: ran.append(task)):
            assert sorted(ran) == [0, 0, 1, 1, 4, 4, 9, 9]


def _spawned(spawn: Callable[..., object], run: Callable[..., object], group: object) -> object:
    return spawn(group, run, 1)


@clause("TEAM-ARG-1")
@pytest.mark.parametrize("workers", [0, 1])
def test_single_tasks(impl: Any, workers: int) -> None:
    kinds, ran = impl.thread_mod, list[object]()
    with kinds.Pool(workers) as pool:
        group = kinds.WaitGroup()
        for spawn in (pool.spawn_wg, pool.try_spawn_wg):
            for wrong in NO_GROUPS:
                refused("group", wrong, partial(_spawned, spawn, ran.append))
            for wrong in NO_CALLABLES:
                refused("run", wrong, partial(spawn, group))
        for wrong in NO_GROUPS:
            refused("group", wrong, pool.wait_and_work)
        assert group.is_done()
        pool.wait_and_work(group)
        assert ran == []


@clause("TEAM-ARG-1")
def test_the_worker_and_the_allocator(impl: Any) -> None:
    with impl.thread_mod.OneShotWorker() as worker:
        for wrong in NO_CALLABLES:
            refused("task", wrong, worker.start)
        assert worker.wait() is None
        worker.start(lambda: 3)
        assert worker.wait() == 3
    for wrong in (None, 3, "child"):
        refused("child", wrong, impl.thread_mod.ThreadSafeAllocator)
