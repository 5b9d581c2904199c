"""The team, as it is meant: participants take the next task until there is none, and wait for each other.

Here the threads live as long as the dispatch, so there is nothing to park, wake, end or lose in a fork.  What a
persistent team adds is speed, in ``fucina.fast``; what it may do with tasks is this.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fucina.reference import fpenv, parallel
from fucina.reference.arguments import shown, whole
from fucina.reference.claims import Users
from fucina.spec.errors import (
    ChainViolation,
    ConcurrentUse,
    DTypeMismatch,
    ForkedInTask,
    IndexOutOfBounds,
    InvalidBounds,
    UseAfterDeinit,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["BarrierPool", "Chain", "Failures", "here", "of_kind", "wait_through", "workers_argument"]

Task = TypeVar("Task")
here = threading.local()
"""``here.inside``: whether this thread is in a task."""


def of_kind(name: str, value: object, fits: bool, kind: str) -> None:
    """Refuse an argument of another kind before anything happens (clause TEAM-ARG-1)."""
    if not fits:
        raise DTypeMismatch(f"{name} must be {kind}, got {shown(value)}", clause="TEAM-ARG-1")


def items_of(tasks: object) -> tuple[Any, ...]:
    """Return the tasks, of whatever can be iterated over (clause TEAM-ARG-1)."""
    try:
        one_by_one = iter(tasks)  # type: ignore[call-overload]
    except TypeError:
        one_by_one = None
    of_kind("tasks", tasks, one_by_one is not None, "a sequence")
    return tuple(one_by_one)


class Failures:
    """What tasks raised: the lowest index counts, and an interrupt more than any other (clause TEAM-RAISE-1)."""

    def __init__(self) -> None:
        self._found: list[tuple[bool, int, BaseException]] = []
        self.interrupted = False

    def run(self, index: int, task: Callable[[], object]) -> None:
        """Run a task in the default environment, unless there was an interrupt (clause TEAM-ENV-1)."""
        if self.interrupted:
            return
        try:
            with fpenv.guard():
                fpenv.set(fpenv.default_environment)
                task()
        except BaseException as error:  # raised again after the join, whatever it is
            self.note(index, error)

    def note(self, index: int, error: BaseException) -> None:
        """Keep what task ``index`` raised."""
        self.interrupted |= not isinstance(error, Exception)
        self._found.append((isinstance(error, Exception), index, error))

    def stop(self, error: BaseException) -> None:
        """Keep what a handler raised outside of a task: none begins after it (clause TEAM-SIGNAL-1)."""
        self.interrupted = True
        self._found.append((False, -1, error))

    def first(self) -> BaseException | None:
        """Return the one that counts, if there is any, and forget all."""
        _, _, error = min(self._found, key=lambda found: found[:2], default=(False, 0, None))
        self._found.clear()
        return error

    def raise_first(self) -> None:
        """Raise the one that counts, if there is any."""
        if error := self.first():
            raise error

    def raise_lost(self, tasks: int, process: int) -> None:
        """Raise that a fork lost tasks, whatever others raised: in the child an interrupt does not account for them.

        Clauses: TEAM-FORK-2
        """
        if tasks and (process != os.getpid() or not self.interrupted):
            raise ForkedInTask(
                f"the process forked in a task; {tasks} tasks of other threads are not done", clause="TEAM-FORK-2"
            ) from self.first()


def wait_through(done: Callable[[], bool], failures: Failures) -> None:
    """Wait whatever a handler raises, which is kept; not for threads that the end of the interpreter has stopped.

    Clauses: TEAM-SIGNAL-1, TEAM-END-1
    """
    while True:
        try:
            while not done() and not sys.is_finalizing():
                time.sleep(0.0005)
        except BaseException as error:
            failures.stop(error)
        else:
            return


class Chain:
    """The state of a dependency graph: what is runnable, and what was.

    Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2
    """

    def __init__(self, count: int, initial: int, failures: Failures) -> None:
        self._count = count
        self._process = os.getpid()
        self._failures = failures
        self._lock = threading.Lock()  # for a few steps, in which an interrupt ends all
        self._runnable = deque(range(initial))
        self._seen = set(range(initial))
        self._running = self.lost = 0
        self._over = False
        self._twice: list[int] = []

    def enqueue(self, index: int) -> None:
        """Make a task runnable: each exactly once, those that were runnable at first included.

        Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2
        """
        number = whole("index", index, "TEAM-CHAIN-2")
        if not 0 <= number < self._count:
            raise IndexOutOfBounds(f"index must lie in [0, {self._count}), got {shown(index)}", clause="TEAM-CHAIN-2")
        self._survive()
        with self._lock:
            if self._over:
                raise ChainViolation(
                    f"task {number} was enqueued after the dispatch of its chain was over", clause="TEAM-CHAIN-2"
                )
            if number in self._seen:
                self._twice.append(number)
                raise ChainViolation(f"task {number} became runnable twice", clause="TEAM-CHAIN-2")
            self._seen.add(number)
            self._runnable.append(number)

    def _survive(self, own: int = 1) -> None:
        """In the child of a fork: this thread runs the task that forked, if it was in one; those of others are lost.

        Clauses: TEAM-FORK-2
        """
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), threading.Lock()
            self.lost, self._running = self._running - own, own

    def _take(self) -> int | None:
        """Wait for a runnable task; None when no task is running that could make one runnable: it is over then."""
        while True:
            self._survive(own=0)
            with self._lock:
                if self._runnable and not self._failures.interrupted:
                    self._running += 1
                    return self._runnable.popleft()
                if not self._running or self._failures.interrupted:
                    self._over = not self._running
                    return None
            time.sleep(0.0005)

    def _end_one(self) -> None:
        self._survive()
        with self._lock:
            self._running -= 1

    def close(self) -> None:
        """Make nothing runnable any more."""
        with self._lock:
            self._over = True

    def _judge(self) -> None:
        if self._twice:
            raise ChainViolation(f"task {self._twice[0]} became runnable twice", clause="TEAM-CHAIN-2")
        missing = sorted(set(range(self._count)) - self._seen)
        if missing:
            others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise ChainViolation(f"task {missing[0]}{others} never became runnable", clause="TEAM-CHAIN-2")


class Trace:
    """What one participant did in a dispatch: how many tasks, when it took the first, when the last ended.

    Without a task the times are those of its first look for one, and of seeing that none is left.

    Clauses: TEAM-PROFILE-1
    """

    def __init__(self) -> None:
        self.tasks = 0
        self.claim = self.completion = time.monotonic()

    def begin(self) -> None:
        """Note that a task is taken."""
        if not self.tasks:
            self.claim = time.monotonic()

    def end(self) -> None:
        """Note that a task has ended."""
        self.tasks += 1
        self.completion = time.monotonic()

    def leave(self) -> None:
        """Note that there is nothing left to do."""
        if not self.tasks:
            self.completion = time.monotonic()


def workers_argument(name: str, value: object) -> int:
    """Return a number of workers.

    Raises
    ------
    InvalidInteger, InvalidBounds
        If it is no integer, or negative.

    Clauses: TEAM-POOL-1
    """
    number = whole(name, value, "TEAM-POOL-1")
    if number < 0:
        raise InvalidBounds(f"{name} must not be negative, got {shown(number)}", clause="TEAM-POOL-1")
    return number


class BarrierPool:
    """A fork-join team: the calling thread and ``workers`` threads, which live while a dispatch does.

    Clauses: TEAM-LAZY-1, TEAM-SPIN-1, TEAM-END-1, TEAM-FORK-1
    """

    def __init__(self, workers: int) -> None:
        self._workers = min(workers_argument("workers", workers), parallel.vector_max_threads - 1)
        self._users = Users()
        self._ended = False

    def __repr__(self) -> str:
        return f"BarrierPool(workers={self._workers})"

    def alive(self) -> None:
        """Raise UseAfterDeinit after deinit (clause TEAM-END-1)."""
        if self._ended:
            raise UseAfterDeinit(f"{self!r} has been ended", clause="TEAM-END-1")

    @property
    def team_size(self) -> int:
        """The number of participants, the calling thread included.

        Clauses: TEAM-POOL-1, TEAM-END-1
        """
        self.alive()
        return self._workers + 1

    def parallel_chunks(self, tasks: Sequence[Task], run: Callable[[Task], object]) -> None:
        """Run ``run(task)`` once for every task, on all participants; the calling thread begins with the first.

        Clauses: TEAM-CHUNKS-1, TEAM-SERIAL-1, TEAM-RAISE-1, TEAM-ENV-1, TEAM-JOIN-1, TEAM-FORK-2, TEAM-ARG-1
        """
        items = items_of(tasks)
        of_kind("run", run, callable(run), "callable")
        self.alive()
        failures = Failures()
        unclaimed = deque(range(1, len(items)))
        done: list[int] = []
        process = os.getpid()

        def participate(first: int | None, trace: Trace) -> None:
            index = first
            while True:
                if index is None:
                    try:
                        index = unclaimed.popleft()  # one thread gets each
                    except IndexError:
                        return
                trace.begin()
                failures.run(index, lambda item=items[index]: run(item))  # type: ignore[misc] # bound now, not when it runs
                trace.end()
                done.append(index)
                index = None
                if first is None and process != os.getpid():  # a worker that forked in that task (TEAM-FORK-2)
                    return

        if len(items) < 2 or not self._dispatch(participate, len(items), failures):
            for index, item in enumerate(items):
                failures.run(index, lambda item=item: run(item))  # type: ignore[misc]
        else:
            failures.raise_lost(len(items) - len(done), process)
        failures.raise_first()

    def parallel_chained(self, tasks: Sequence[Task], initial_count: int, run: Callable[[Task, Chain], object]) -> bool:
        """Run ``run(task, chain)`` once for every task, each after some task has enqueued it.

        Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2, TEAM-CHAIN-3, TEAM-RAISE-1, TEAM-ENV-1, TEAM-ARG-1
        """
        items = items_of(tasks)
        of_kind("run", run, callable(run), "callable")
        initial = whole("initial_count", initial_count, "TEAM-CHAIN-1")
        if not 0 <= initial <= len(items):
            raise InvalidBounds(
                f"initial_count must lie in [0, {len(items)}], got {shown(initial_count)}", clause="TEAM-CHAIN-1"
            )
        self.alive()
        failures, process = Failures(), os.getpid()
        chain = Chain(len(items), initial, failures)

        def participate(first: int | None, trace: Trace) -> None:
            while (index := chain._take()) is not None:
                trace.begin()
                try:
                    failures.run(index, lambda item=items[index]: run(item, chain))  # type: ignore[misc]
                finally:
                    trace.end()
                    chain._end_one()
                if first is None and process != os.getpid():  # a worker that forked in that task (TEAM-FORK-2)
                    return

        if not self._dispatch(participate, len(items), failures):
            return False
        chain.close()
        failures.raise_lost(chain.lost, process)
        failures.raise_first()
        chain._judge()
        return True

    def _dispatch(self, participate: Callable[[int | None, Trace], None], tasks: int, failures: Failures) -> bool:
        """Let every participant work, and wait for all; False if the team is not to be had.

        What a handler raises here, on the calling thread and in no task, comes after the join as well.

        Clauses: TEAM-JOIN-1, TEAM-SERIAL-1, TEAM-CHAIN-3, TEAM-SIGNAL-1
        """
        if not self._workers or getattr(here, "inside", False) or sys.is_finalizing():
            return False
        start, process = time.monotonic(), os.getpid()
        traces: dict[int, Trace] = {}
        entered: list[int] = []
        left: list[int] = []
        over: list[bool] = []

        def work(participant: int) -> None:
            entered.append(participant)
            here.inside = True
            try:
                trace = traces[participant] = Trace()
                if not over:  # a thread that nobody waits for any more
                    participate(0 if participant == 0 else None, trace)
                trace.leave()
            except BaseException as error:
                failures.stop(error)
            finally:
                here.inside = False
                left.append(participant)

        lock, started = threading.Lock(), 0
        with lock:
            if not self._users.come(lock):
                return False
            try:
                for i in range(self._workers):
                    start_new_thread(work, (i + 1,))
                    started += 1
            except RuntimeError:  # no more threads to be had: fewer do the same work (clause TEAM-LAZY-1)
                pass
            except BaseException as error:
                failures.stop(error)
            try:
                work(0)
            except BaseException as error:
                failures.stop(error)
                left.append(0)
            started += 1

            def joined() -> bool:
                if not over:
                    over.append(True)
                return process != os.getpid() or len(set(left)) >= max(len(entered), started)

            wait_through(joined, failures)
        if tasks and process == os.getpid() and os.environ.get("FUCINA_POOL_PROFILE") == "1":
            self._show(traces, tasks, start)
        return True

    @staticmethod
    def _show(traces: dict[int, Trace], tasks: int, start: float) -> None:
        """Write one line per participant (clause TEAM-PROFILE-1)."""
        for participant, trace in sorted(traces.items()):
            claim, completion = ((moment - start) * 1e6 for moment in (trace.claim, trace.completion))
            print(
                f"fucina pool: participant {participant} of {len(traces)}, {tasks} chunks, {trace.tasks} tasks, "
                f"claim +{claim:.1f} us, completion +{completion:.1f} us",
                file=sys.stderr,
            )

    def deinit(self) -> None:
        """End the team.

        Clauses: TEAM-END-1
        """
        self.alive()
        if self._users.any():
            raise ConcurrentUse(f"{self!r} cannot be ended during a dispatch", clause="TEAM-END-1")
        self._ended = True

    def __enter__(self) -> Self:
        self.alive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self.deinit()
