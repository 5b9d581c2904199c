"""What the documents call ``thread``: the team, single tasks and a worker beside it, and small primitives."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from fucina.reference import parallel
from fucina.reference.executor import Executor, Mutex, ThreadSafeAllocator, WaitGroup
from fucina.reference.team import BarrierPool, Chain, Failures, here, of_kind, workers_argument
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
        self._executor = Executor(self._barrier.team_size - 1)

    @classmethod
    def init(cls, max_workers: int | None = None) -> Self:
        """Return a pool: the documents' way to write ``Pool(max_workers)`` (clause TEAM-POOL-1)."""
        return cls(max_workers)

    def __repr__(self) -> str:
        return f"Pool(max_workers={self.team_size - 1})"

    @property
    def team_size(self) -> int:
        """The number of participants, the calling thread included (clause TEAM-POOL-1)."""
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
        if self._barrier._ended:
            raise UseAfterDeinit(f"{self!r} has been ended", clause="TEAM-END-1")
        return self._executor.spawn(group, run, args)

    def wait_and_work(self, group: WaitGroup) -> None:
        """Run tasks that have not begun until the group is done; raise what the first task that raised did.

        Clauses: TEAM-SPAWN-1, TEAM-ARG-1
        """
        of_kind("group", group, isinstance(group, WaitGroup), "a WaitGroup")
        self._executor.wait(group)

    def deinit(self) -> None:
        """End the team; spawned tasks run to their end first.

        Clauses: TEAM-END-1
        """
        self._barrier.deinit()
        self._executor.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._barrier._ended:
            self.deinit()


class _Begun:
    """A task on a thread of its own."""

    def __init__(self, task: Callable[[], object]) -> None:
        self._failures = Failures()
        self._results: list[Any] = []

        def work() -> None:
            here.inside = True
            self._failures.run(0, lambda: self._results.append(task()))

        self._work = work
        self.thread = threading.Thread(target=work, daemon=True)

    def start(self) -> None:
        """Begin it; where there is no thread to be had, whoever waits does (clause TEAM-LAZY-1)."""
        with suppress(RuntimeError):
            self.thread.start()

    def join(self) -> Any:
        """Wait for the task; return what it returned, raise what it raised.

        Clauses: TEAM-ONESHOT-1, TEAM-FORK-2
        """
        if self.thread.ident is None:
            outer = getattr(here, "inside", False)
            self._work()
            here.inside = outer
        else:
            self.thread.join()
        self._failures.raise_first()
        if not self._results:
            raise ForkedInTask(
                "the process forked in a task; what other threads had begun is not done", clause="TEAM-FORK-2"
            )
        return self._results[0]


class OneShotWorker:
    """A thread beside the caller's, for one task at a time.

    Clauses: TEAM-ONESHOT-1, TEAM-ONESHOT-2
    """

    def __init__(self) -> None:
        self._begun: list[_Begun] = []  # the task that nobody has come for
        self._waiting: list[_Begun] = []  # the one that somebody waits for
        self._process = os.getpid()
        self._ended = False

    def __repr__(self) -> str:
        return "OneShotWorker()"

    def _alive(self) -> None:
        if self._ended:
            raise UseAfterDeinit(f"{self!r} has been ended", clause="TEAM-ONESHOT-2")
        if self._process != os.getpid():  # whoever waited is not in the child of a fork
            self._process, self._waiting = os.getpid(), []

    def _outside(self) -> None:
        self._alive()
        if any(begun.thread is threading.current_thread() for begun in self._begun):
            raise ConcurrentUse(f"a task of {self!r} cannot wait for itself", clause="TEAM-ONESHOT-2")

    def start(self, task: Callable[[], object]) -> None:
        """Begin ``task()`` beside the caller.

        Clauses: TEAM-ONESHOT-1, TEAM-ONESHOT-2, TEAM-ARG-1
        """
        of_kind("task", task, callable(task), "callable")
        self._alive()
        if self._begun or self._waiting:
            raise ConcurrentUse(f"the worker, {self!r}, has a task that was not waited for", clause="TEAM-ONESHOT-2")
        begun = _Begun(task)
        self._begun.append(begun)
        begun.start()

    def wait(self) -> Any:
        """Wait for the task; return what it returned, raise what it raised; None when none was started.

        Clauses: TEAM-ONESHOT-1, TEAM-ONESHOT-2
        """
        self._outside()
        if not self._begun:
            return None
        waiting = self._waiting
        waiting.append(self._begun.pop())
        try:
            return waiting[0].join()
        finally:
            waiting.clear()

    def deinit(self) -> None:
        """Wait for the task, whatever becomes of it, and end the worker.

        Clauses: TEAM-ONESHOT-2
        """
        self._outside()
        if self._waiting:
            raise ConcurrentUse(f"another thread waits for the task of {self!r}", clause="TEAM-ONESHOT-2")
        try:
            with suppress(Exception):  # who wants to know calls wait()
                self.wait()
        finally:
            self._ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self.deinit()
