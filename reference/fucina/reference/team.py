"""The team, as it is meant: participants take the next task until there is none, and wait for each other.

Here the threads live as long as the dispatch, so there is nothing to park, wake, end or lose in a fork.  What a
persistent team adds is speed, in ``fucina.fast``; what it may do with tasks is this.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from fucina.reference import fpenv, parallel
from fucina.reference.arguments import shown, whole
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

__all__ = ["BarrierPool", "Chain", "Failures", "here", "of_kind", "workers_argument"]

Task = TypeVar("Task")
here = threading.local()
"""``here.inside``: whether this thread is in a task."""


def of_kind(name: str, value: object, fits: bool, kind: str) -> None:
    """Refuse an argument of another kind before anything happens (clause TEAM-ARG-1)."""
    if not fits:
        raise DTypeMismatch(f"{name} must be {kind}, got {shown(value)}", clause="TEAM-ARG-1")


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
            ordinary = isinstance(error, Exception)
            self.interrupted |= not ordinary
            self._found.append((ordinary, index, error))

    def raise_first(self) -> None:
        """Raise the one that counts, if there is any."""
        if self._found:
            _, _, error = min(self._found, key=lambda found: found[:2])
            self._found.clear()
            raise error


class Chain:
    """The state of a dependency graph: what is runnable, and what was.

    Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2
    """

    def __init__(self, count: int, initial: int) -> None:
        self._count = count
        self._process = os.getpid()
        self._changed = threading.Condition()
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
        with self._changed:
            if self._over:
                raise ChainViolation(
                    f"task {number} was enqueued after the dispatch of its chain was over", clause="TEAM-CHAIN-2"
                )
            if number in self._seen:
                self._twice.append(number)
                raise ChainViolation(f"task {number} became runnable twice", clause="TEAM-CHAIN-2")
            self._seen.add(number)
            self._runnable.append(number)
            self._changed.notify()

    def _survive(self) -> None:
        """In the child of a fork inside a task: this thread runs that task, and those of other threads are lost.

        Clauses: TEAM-FORK-2
        """
        if self._process != os.getpid():
            self._process, self._changed = os.getpid(), threading.Condition()
            self.lost, self._running = self._running - 1, 1

    def _take(self) -> int | None:
        """Wait for a runnable task; None when no task is running that could make one runnable: it is over then."""
        with self._changed:
            self._changed.wait_for(lambda: self._runnable or not self._running)
            if not self._runnable:
                self._over = True
                return None
            self._running += 1
            return self._runnable.popleft()

    def _end_one(self) -> None:
        self._survive()
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def _judge(self) -> None:
        with self._changed:
            self._over = True
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
        self._busy = threading.Lock()
        self._process = os.getpid()
        self._ended = False

    def __repr__(self) -> str:
        return f"BarrierPool(workers={self._workers})"

    @property
    def team_size(self) -> int:
        """The number of participants, the calling thread included (clause TEAM-POOL-1)."""
        return self._workers + 1

    def _take(self) -> bool:
        """Take the team for one dispatch, if it is free and this thread is in no task (clause TEAM-SERIAL-1)."""
        if self._ended:
            raise UseAfterDeinit(f"{self!r} has been ended", clause="TEAM-END-1")
        if self._process != os.getpid():  # in the child of a fork: whoever had the team is not here
            self._busy, self._process = threading.Lock(), os.getpid()
        return self._workers > 0 and not getattr(here, "inside", False) and self._busy.acquire(blocking=False)

    def parallel_chunks(self, tasks: Sequence[Task], run: Callable[[Task], object]) -> None:
        """Run ``run(task)`` once for every task, on all participants; the calling thread begins with the first.

        Clauses: TEAM-CHUNKS-1, TEAM-SERIAL-1, TEAM-RAISE-1, TEAM-ENV-1, TEAM-JOIN-1, TEAM-FORK-2, TEAM-ARG-1
        """
        of_kind("tasks", tasks, isinstance(tasks, Iterable), "a sequence")
        of_kind("run", run, callable(run), "callable")
        items = tuple(tasks)
        failures = Failures()
        if not self._take():
            for index, item in enumerate(items):
                failures.run(index, lambda item=item: run(item))  # type: ignore[misc] # bound now, not when it runs
        elif len(items) < 2:
            self._busy.release()
            for item in items:
                failures.run(0, lambda item=item: run(item))  # type: ignore[misc]
        else:
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
                    failures.run(index, lambda item=items[index]: run(item))  # type: ignore[misc]
                    trace.end()
                    done.append(index)
                    index = None
                    if first is None and process != os.getpid():  # a worker that forked in that task (TEAM-FORK-2)
                        return

            self._dispatch(participate, len(items))
            if len(done) < len(items):
                raise ForkedInTask(
                    f"the process forked in a task; {len(items) - len(done)} tasks of other threads are not done",
                    clause="TEAM-FORK-2",
                )
        failures.raise_first()

    def parallel_chained(self, tasks: Sequence[Task], initial_count: int, run: Callable[[Task, Chain], object]) -> bool:
        """Run ``run(task, chain)`` once for every task, each after some task has enqueued it.

        Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2, TEAM-CHAIN-3, TEAM-RAISE-1, TEAM-ENV-1, TEAM-ARG-1
        """
        of_kind("tasks", tasks, isinstance(tasks, Iterable), "a sequence")
        of_kind("run", run, callable(run), "callable")
        items = tuple(tasks)
        initial = whole("initial_count", initial_count, "TEAM-CHAIN-1")
        if not 0 <= initial <= len(items):
            raise InvalidBounds(
                f"initial_count must lie in [0, {len(items)}], got {shown(initial_count)}", clause="TEAM-CHAIN-1"
            )
        if not self._take():
            return False
        chain, failures, process = Chain(len(items), initial), Failures(), os.getpid()

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

        self._dispatch(participate, len(items))
        if chain.lost:
            raise ForkedInTask(
                f"the process forked in a task; {chain.lost} tasks of other threads are not done", clause="TEAM-FORK-2"
            )
        failures.raise_first()
        chain._judge()
        return True

    def _dispatch(self, participate: Callable[[int | None, Trace], None], tasks: int) -> None:
        """Let every participant work, wait for all, and give the team back (clause TEAM-JOIN-1)."""
        busy = self._busy  # in a child a task may have made another
        start, process = time.monotonic(), os.getpid()
        traces: dict[int, Trace] = {}

        def work(participant: int) -> None:
            here.inside = True
            trace = traces[participant] = Trace()
            try:
                participate(0 if participant == 0 else None, trace)
            finally:
                here.inside = False
            trace.leave()

        threads: list[threading.Thread] = []
        for i in range(self._workers):
            thread = threading.Thread(target=work, args=(i + 1,), daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads to be had: fewer do the same work (clause TEAM-LAZY-1)
                break
            threads.append(thread)
        work(0)
        interrupt: BaseException | None = None
        while threads:
            try:
                threads[-1].join()
                threads.pop()
            except BaseException as error:  # Ctrl-C waits for the join
                interrupt = error
        busy.release()
        if tasks and process == os.getpid() and os.environ.get("FUCINA_POOL_PROFILE") == "1":
            self._show(traces, tasks, start)
        if interrupt is not None:
            raise interrupt

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
        if self._ended:
            raise UseAfterDeinit(f"{self!r} has been ended", clause="TEAM-END-1")
        if self._busy.locked() and self._process == os.getpid():
            raise ConcurrentUse(f"{self!r} cannot be ended during a dispatch", clause="TEAM-END-1")
        self._ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self.deinit()
