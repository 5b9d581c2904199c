"""What the documents call ``thread``: the team, single tasks and a worker beside it, and small primitives."""

from __future__ import annotations

import os
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from fucina.reference import parallel
from fucina.reference.claims import Claim, Users
from fucina.reference.executor import Executor, WaitGroup, require_threads
from fucina.reference.primitives import Mutex, ThreadSafeAllocator
from fucina.reference.team import (
    BarrierPool,
    Chain,
    Failures,
    here,
    of_kind,
    wait_through,
    workers_argument,
)
from fucina.spec.errors import ConcurrentUse, ForkedInTask, UseAfterDeinit

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["BarrierPool", "Chain", "Mutex", "OneShotWorker", "Pool", "ThreadSafeAllocator", "WaitGroup"]

Task = TypeVar("Task")


class Pool:
    """A team, and single tasks beside it.

    Clauses: TEAM-POOL-1, TEAM-LAZY-1
    """

    def __init__(self, max_workers: int | None = None) -> None:
        if max_workers is None:
            max_workers = parallel.cpu_thread_count(parallel.vector_max_threads) - 1
        self._barrier = BarrierPool(workers_argument("max_workers", max_workers))
        self._most = self._barrier.team_size - 1
        self._executor = Executor(self._most)

    @classmethod
    def init(cls, max_workers: int | None = None) -> Self:
        """Return a pool: the documents' way to write ``Pool(max_workers)`` (clause TEAM-POOL-1)."""
        return cls(max_workers)

    def __repr__(self) -> str:
        return f"Pool(max_workers={self._most})"

    @property
    def team_size(self) -> int:
        """The number of participants, the calling thread included.

        Clauses: TEAM-POOL-1, TEAM-END-1
        """
        return self._barrier.team_size

    def parallel_chunks(self, tasks: Sequence[Task], run: Callable[[Task], object]) -> None:
        """Run ``run(task)`` once for every task, as :meth:`BarrierPool.parallel_chunks` does.

        Clauses: TEAM-CHUNKS-1, TEAM-SERIAL-1, TEAM-RAISE-1, TEAM-ENV-1, TEAM-JOIN-1, TEAM-FORK-2
        """
        self._barrier.parallel_chunks(tasks, run)

    def parallel_chained(self, tasks: Sequence[Task], initial_count: int, run: Callable[[Task, Chain], object]) -> bool:
        """Run a dependency graph, as :meth:`BarrierPool.parallel_chained` does.

        Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2, TEAM-CHAIN-3, TEAM-RAISE-1, TEAM-ENV-1
        """
        return self._barrier.parallel_chained(tasks, initial_count, run)

    def spawn_wg(self, group: WaitGroup, run: Callable[..., object], *args: object) -> None:
        """Run ``run(*args)`` on another thread some time soon, or here and now where no other can be had.

        Clauses: TEAM-SPAWN-1
        """
        if not self.try_spawn_wg(group, run, *args):
            self._executor.here(group, run, args)

    def try_spawn_wg(self, group: WaitGroup, run: Callable[..., object], *args: object) -> bool:
        """Run ``run(*args)`` on another thread some time soon; False, and nothing happens, where none can be had.

        Clauses: TEAM-SPAWN-1, TEAM-ARG-1
        """
        of_kind("group", group, isinstance(group, WaitGroup), "a WaitGroup")
        of_kind("run", run, callable(run), "callable")
        self._barrier.alive()
        return self._executor.spawn(group, run, args)

    def wait_and_work(self, group: WaitGroup) -> None:
        """Run tasks that have not begun until the group is done; raise what the first task that raised did.

        Clauses: TEAM-SPAWN-1, TEAM-ARG-1
        """
        of_kind("group", group, isinstance(group, WaitGroup), "a WaitGroup")
        self._barrier.alive()
        self._executor.wait(group)

    def deinit(self) -> None:
        """End the team; spawned tasks run to their end first.

        Clauses: TEAM-END-1
        """
        self._barrier.deinit()
        self._executor.end()

    def __enter__(self) -> Self:
        self._barrier.alive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._barrier._ended:
            self.deinit()


class _Begun:
    """A task that was started, for a thread of its own or for whoever waits, whoever is first to take it."""

    def __init__(self, task: Callable[[], object]) -> None:
        self._task = task
        self._process = os.getpid()
        self._failures = Failures()
        self._results: list[Any] = []
        self._claim = Claim()
        self.thread = 0

    def run(self) -> None:
        """Run it here, unless somebody has taken it.

        Clauses: TEAM-ONESHOT-1, TEAM-ENV-1
        """
        lock, outer = threading.Lock(), getattr(here, "inside", False)
        with lock:  # it is over when this is free again
            if self._claim.come(lock):
                self.thread, here.inside = threading.get_ident(), True
                try:
                    self._failures.run(0, lambda: self._results.append(self._task()))
                finally:
                    here.inside = outer

    def under_way(self) -> bool:
        """Whether somebody runs it."""
        return self._claim.held

    def finish(self) -> None:
        """Run it if nobody does; wait for its end, if not another process waits for it.

        Clauses: TEAM-ONESHOT-1, TEAM-SIGNAL-1
        """

        def ended() -> bool:
            self.run()
            return not self.under_way() or self._process != os.getpid()

        wait_through(ended, self._failures)

    def result(self) -> Any:
        """Return what it returned, raise what it raised.

        Clauses: TEAM-ONESHOT-1, TEAM-FORK-2, TEAM-END-1
        """
        self._failures.raise_first()
        if not self._results:
            require_threads()
            raise ForkedInTask(
                "the process forked in a task; what other threads had begun is not done", clause="TEAM-FORK-2"
            )
        return self._results[0]


class OneShotWorker:
    """A thread beside the caller's, for one task at a time.

    Clauses: TEAM-ONESHOT-1, TEAM-ONESHOT-2
    """

    def __init__(self) -> None:
        self._begun: list[_Begun] = []  # the task whose end nobody has seen
        self._waiting = Users()
        self._ended = False

    def __repr__(self) -> str:
        return "OneShotWorker()"

    def _alive(self) -> None:
        if self._ended:
            raise UseAfterDeinit(f"{self!r} has been ended", clause="TEAM-ONESHOT-2")

    def _outside(self) -> None:
        self._alive()
        if any(begun.under_way() and begun.thread == threading.get_ident() for begun in self._begun):
            raise ConcurrentUse(f"a task of {self!r} cannot wait for itself", clause="TEAM-ONESHOT-2")

    def start(self, task: Callable[[], object]) -> None:
        """Begin ``task()`` beside the caller.

        Clauses: TEAM-ONESHOT-1, TEAM-ONESHOT-2, TEAM-ARG-1
        """
        of_kind("task", task, callable(task), "callable")
        self._alive()
        if self._begun:
            raise ConcurrentUse(f"the worker, {self!r}, has a task that was not waited for", clause="TEAM-ONESHOT-2")
        begun = _Begun(task)
        self._begun.append(begun)
        if not sys.is_finalizing():  # other threads do not run any more
            with suppress(RuntimeError):  # none to be had: wait runs it
                start_new_thread(begun.run, ())

    def wait(self) -> Any:
        """Wait for the task; return what it returned, raise what it raised; None when none was started.

        Clauses: TEAM-ONESHOT-1, TEAM-ONESHOT-2
        """
        self._outside()
        lock = threading.Lock()
        with lock:
            if not self._waiting.come(lock) or not self._begun:
                return None
            begun = self._begun[0]
            begun.finish()
            self._begun.clear()
        return begun.result()

    def deinit(self) -> None:
        """Wait for the task, whatever becomes of it, and end the worker.

        Clauses: TEAM-ONESHOT-2
        """
        self._outside()
        if self._waiting.any():
            raise ConcurrentUse(f"another thread waits for the task of {self!r}", clause="TEAM-ONESHOT-2")
        try:
            with suppress(Exception):  # who wants to know calls wait()
                self.wait()
        finally:
            self._ended = True

    def __enter__(self) -> Self:
        self._alive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self.deinit()
