"""The worker team for Python functions, and the primitives beside it (chapter ``team``).

A Python task holds the GIL while it runs Python; what it gains from a team is what it does without, in numpy or in this
library.  The library's own bulk functions use a team of the process and need nothing from here.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from fucina.fast import parallel
from fucina.fast._accelerate import (
    chain_enqueue,
    team_begin,
    team_chained,
    team_chunks,
    team_drop,
    team_finish,
    team_within,
)
from fucina.fast._arguments import whole
from fucina.fast._executor import Executor, WaitGroup, known_callable, known_group
from fucina.fast._native import ffi, lib
from fucina.fast._primitives import Mutex, ThreadSafeAllocator
from fucina.fast._shown import integer_shown, shown
from fucina.spec.errors import (
    ChainViolation,
    ConcurrentUse,
    DTypeMismatch,
    ForkedInTask,
    IndexOutOfBounds,
    InvalidBounds,
    OutOfMemory,
    UseAfterDeinit,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["BarrierPool", "Chain", "Mutex", "OneShotWorker", "Pool", "ThreadSafeAllocator", "WaitGroup"]

Task = TypeVar("Task")


class Chain:
    """What a task of ``parallel_chained`` makes its successors runnable with; valid while that call runs.

    Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2
    """

    __slots__ = ("_count", "_handle")

    def __init__(self, handle: object, count: int) -> None:
        self._handle, self._count = handle, count

    def enqueue(self, index: int) -> None:
        """Make a task runnable: each exactly once, those that were runnable at first included.

        Raises
        ------
        IndexOutOfBounds
            When there is no such task.
        ChainViolation
            When it is runnable already, or the dispatch is over.

        Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2
        """
        number = whole("index", index, "TEAM-CHAIN-2")
        if not 0 <= number < self._count:
            raise IndexOutOfBounds(
                f"index must lie in [0, {self._count}), got {integer_shown(number)}", clause="TEAM-CHAIN-2"
            )
        outcome = chain_enqueue(self._handle, number)
        if outcome == lib.FC_CHAIN_OVER:
            raise ChainViolation(f"the dispatch of this chain is over, got index {number}", clause="TEAM-CHAIN-2")
        if outcome == lib.FC_CHAIN_TWICE:
            raise ChainViolation(f"task {number} became runnable twice", clause="TEAM-CHAIN-2")


def _native_team(workers: int) -> tuple[Any, int]:
    team = lib.fc_team_open(workers)
    if team == ffi.NULL:
        raise OutOfMemory(f"no memory for a team of {workers} workers", clause="TEAM-LAZY-1")
    return team, int(ffi.cast("uintptr_t", team))


_ALONE: list[int] = []


def _alone() -> int:
    """Return a team without workers, made on the first call."""
    if not _ALONE:
        _ALONE.append(_native_team(0)[1])
    return _ALONE[0]


def _freed_with(owner: object, address: int, begun: list[int]) -> None:
    """Free the team when its owner is collected, not before: another thread may be on its way into a dispatch.

    At the end of the process threads that sleep are no matter.
    """
    weakref.finalize(owner, team_drop, address, begun).atexit = False


def _items(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Return the tasks of a dispatch (clause TEAM-ARG-1)."""
    try:
        items = iter(tasks)  # a sequence need have no __iter__
    except TypeError:
        raise DTypeMismatch(f"tasks must be a sequence, got {shown(tasks)}", clause="TEAM-ARG-1") from None
    return tuple(items)


def _forked() -> ForkedInTask:
    return ForkedInTask("the process forked in a task; what other threads had begun is not done", clause="TEAM-FORK-2")


def _workers(name: str, value: object) -> int:
    """Return a number of workers.

    Clauses: TEAM-POOL-1
    """
    number = whole(name, value, "TEAM-POOL-1")
    if number < 0:
        raise InvalidBounds(f"{name} must not be negative, got {integer_shown(number)}", clause="TEAM-POOL-1")
    return number


class BarrierPool:
    """A fork-join team: the calling thread and ``workers`` threads, which start with the first dispatch.

    Parameters
    ----------
    workers : int
        At least 0; more than ``vector_max_threads - 1`` are not made.

    Clauses: TEAM-LAZY-1, TEAM-SPIN-1, TEAM-END-1, TEAM-FORK-1
    """

    def __init__(self, workers: int) -> None:
        number = _workers("workers", workers)
        team, self._address = _native_team(min(number, parallel.vector_max_threads - 1))
        self._size = int(lib.fc_team_workers(team)) + 1
        _freed_with(self, self._address, [])
        self._team, self._ended = team, False

    def __repr__(self) -> str:
        return f"BarrierPool(workers={self._size - 1})"

    @property
    def team_size(self) -> int:
        """The number of participants, the calling thread included.

        Clauses: TEAM-POOL-1, TEAM-END-1
        """
        self._alive()
        return self._size

    def _alive(self) -> int:
        if self._ended:
            raise UseAfterDeinit(f"{self!r} has been ended", clause="TEAM-END-1")
        return self._address

    def _for_python(self) -> int:
        """Return the team that runs functions of Python; while the interpreter is ending no other thread can.

        Clauses: TEAM-END-1
        """
        address = self._alive()
        return _alone() if sys.is_finalizing() else address

    def parallel_chunks(self, tasks: Sequence[Task], run: Callable[[Task], object]) -> None:
        """Run ``run(task)`` once for every task, on all participants; the calling thread begins with the first.

        Parameters
        ----------
        tasks : sequence
        run : callable

        Raises
        ------
        BaseException
            After all tasks have run, what the first of those that raised did.  An exception that is no ``Exception``
            (KeyboardInterrupt) comes before others, and no task begins after it.
        ForkedInTask
            In the child of a fork inside a task, if tasks of other threads are lost there.

        Clauses: TEAM-CHUNKS-1, TEAM-SERIAL-1, TEAM-RAISE-1, TEAM-ENV-1, TEAM-JOIN-1, TEAM-FORK-2, TEAM-ARG-1
        """
        items = _items(tasks)
        known_callable("run", run)
        outcome, error = team_chunks(self._for_python(), len(items), lambda index: run(items[index]))
        if outcome == lib.FC_TEAM_FORKED:
            raise _forked() from error

    def parallel_chained(self, tasks: Sequence[Task], initial_count: int, run: Callable[[Task, Chain], object]) -> bool:
        """Run ``run(task, chain)`` once for every task, each after some task has enqueued it.

        Parameters
        ----------
        tasks : sequence
        initial_count : int
            Tasks 0 to ``initial_count - 1`` are runnable at first; in [0, len(tasks)], InvalidBounds otherwise.
        run : callable

        Returns
        -------
        bool
            False, and nothing has run, when the team is in use or has no workers.

        Raises
        ------
        BaseException
            What tasks raised, as from :meth:`parallel_chunks`.
        ChainViolation
            When a task became runnable twice, or never.

        Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2, TEAM-CHAIN-3, TEAM-RAISE-1, TEAM-ENV-1, TEAM-ARG-1
        """
        items = _items(tasks)
        known_callable("run", run)
        initial = whole("initial_count", initial_count, "TEAM-CHAIN-1")
        if not 0 <= initial <= len(items):
            raise InvalidBounds(
                f"initial_count must lie in [0, {len(items)}], got {integer_shown(initial)}", clause="TEAM-CHAIN-1"
            )

        def visit(index: int, handle: object) -> None:
            run(items[index], Chain(handle, len(items)))

        outcome, error, violation, index, count = team_chained(self._for_python(), len(items), initial, visit)
        if outcome == lib.FC_TEAM_FORKED:
            raise _forked() from error
        if outcome == lib.FC_TEAM_OUT_OF_MEMORY:
            raise OutOfMemory(f"no memory for a chain of {len(items)} tasks", clause="TEAM-CHAIN-1")
        if violation == lib.FC_CHAIN_TWICE:
            raise ChainViolation(f"task {index} became runnable twice", clause="TEAM-CHAIN-2")
        if violation == lib.FC_CHAIN_MISSING:
            others = f" and {count - 1} more" if count > 1 else ""
            raise ChainViolation(f"task {index}{others} never became runnable", clause="TEAM-CHAIN-2")
        return bool(outcome == lib.FC_TEAM_PARALLEL)

    def deinit(self) -> None:
        """End the threads.

        Raises
        ------
        UseAfterDeinit
            The second time.
        ConcurrentUse
            During a dispatch of this team, from one of its tasks or from another thread.

        Clauses: TEAM-END-1
        """
        self._alive()
        if not lib.fc_team_close(self._team):
            raise ConcurrentUse(f"{self!r} cannot be ended during a dispatch", clause="TEAM-END-1")
        self._ended = True

    def __enter__(self) -> Self:
        self._alive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self.deinit()


class Pool:
    """A team that comes into being with its first dispatch, and single tasks beside it.

    Parameters
    ----------
    max_workers : int, optional
        Threads beside the calling one; by default one less than ``parallel.cpu_thread_count`` says.

    Clauses: TEAM-POOL-1, TEAM-LAZY-1
    """

    def __init__(self, max_workers: int | None = None) -> None:
        if max_workers is None:
            max_workers = parallel.cpu_thread_count(parallel.vector_max_threads) - 1
        self._barrier = BarrierPool(_workers("max_workers", max_workers))
        self._executor = Executor(self._barrier.team_size - 1)

    @classmethod
    def init(cls, max_workers: int | None = None) -> Self:
        """Return a pool: the documents' way to write ``Pool(max_workers)`` (clause TEAM-POOL-1)."""
        return cls(max_workers)

    def __repr__(self) -> str:
        return f"Pool(max_workers={self._barrier._size - 1})"

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
        known_group(group)
        known_callable("run", run)
        self._barrier._alive()
        return self._executor.spawn(group, run, args)

    def wait_and_work(self, group: WaitGroup) -> None:
        """Run tasks that have not begun until the group is done; raise what the first task that raised did.

        Clauses: TEAM-SPAWN-1, TEAM-ARG-1
        """
        known_group(group)
        self._barrier._alive()
        self._executor.wait(group)

    def deinit(self) -> None:
        """End the threads; spawned tasks run to their end first.

        Clauses: TEAM-END-1
        """
        self._barrier.deinit()
        self._executor.end()

    def __enter__(self) -> Self:
        self._barrier._alive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._barrier._ended:
            self.deinit()


class OneShotWorker:
    """A thread beside the caller's, for one task at a time; it starts with the first task.

    Clauses: TEAM-ONESHOT-1, TEAM-ONESHOT-2
    """

    def __init__(self) -> None:
        team, self._address = _native_team(1)
        self._begun: list[int] = []  # the task that was not waited for
        self._outcome: list[Any] = [None, None]  # what it returned and raised; not the finalizer's, which would keep it
        _freed_with(self, self._address, self._begun)
        self._team, self._ended = team, False

    def __repr__(self) -> str:
        return "OneShotWorker()"

    def _alive(self) -> int:
        if self._ended:
            raise UseAfterDeinit(f"{self!r} has been ended", clause="TEAM-ONESHOT-2")
        return self._address

    def _outside(self) -> int:
        address = self._alive()
        if team_within(self._begun):
            raise ConcurrentUse(f"a task cannot wait for itself, got {self!r} within its task", clause="TEAM-ONESHOT-2")
        return address

    def start(self, task: Callable[[], object]) -> None:
        """Begin ``task()`` beside the caller.

        Raises
        ------
        ConcurrentUse
            When a task was started and has not been waited for.

        Clauses: TEAM-ONESHOT-1, TEAM-ONESHOT-2, TEAM-ARG-1
        """
        known_callable("task", task)
        self._alive()
        if sys.is_finalizing() and not self._begun:  # no other thread runs Python any more: wait does
            self._team, self._address = _native_team(0)
        if not team_begin(self._address, task, self._begun, self._outcome):
            raise ConcurrentUse(f"{self!r}, a worker, has a task that was not waited for", clause="TEAM-ONESHOT-2")

    def wait(self) -> Any:
        """Wait for the task; return what it returned, raise what it raised; None when none was started.

        A task that its thread has not begun is run here.

        Raises
        ------
        ConcurrentUse
            From inside the task.

        Clauses: TEAM-ONESHOT-1, TEAM-ONESHOT-2
        """
        found = team_finish(self._outside(), self._begun, self._outcome)
        if found is None:
            return None
        outcome, result = found
        if outcome == lib.FC_TEAM_FORKED:
            raise _forked()
        return result

    def deinit(self) -> None:
        """Wait for the task, whatever becomes of it, and end the thread.

        Raises
        ------
        UseAfterDeinit
            The second time.
        ConcurrentUse
            From inside the task, or while another thread waits for it.

        Clauses: TEAM-ONESHOT-2
        """
        self._outside()
        try:
            with suppress(Exception):  # who wants to know calls wait()
                self.wait()
        finally:
            if not lib.fc_team_close(self._team):
                raise ConcurrentUse(f"another thread waits for the task of {self!r}", clause="TEAM-ONESHOT-2")
            self._ended = True

    def __enter__(self) -> Self:
        self._alive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self.deinit()
