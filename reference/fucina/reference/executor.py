"""Single tasks on threads that end when nothing is queued, and the group that counts them.

What a signal handler raises can end any function of the main thread after any of its calls.  Therefore no state has to
be put right afterwards: a task is under way while the lock of whoever took it is held, which ``with`` gives back in C,
and those who wait look every half millisecond.

Clauses: TEAM-SPAWN-1, TEAM-PRIMITIVE-1, TEAM-SIGNAL-1
"""

from __future__ import annotations

import os
import sys
import threading
import time
from _thread import get_ident, start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from operator import call

from fucina.reference import fpenv
from fucina.reference.arguments import shown, whole
from fucina.reference.claims import Claim
from fucina.spec.errors import ConcurrentUse, ForkedInTask, InvalidBounds, OverRelease

__all__ = ["Executor", "WaitGroup", "require_threads"]


def require_threads() -> None:
    """Raise that other threads do not run any more once the interpreter is ending.

    Clauses: TEAM-END-1
    """
    if sys.is_finalizing():
        raise ConcurrentUse("the interpreter is ending; what other threads had begun is not done", clause="TEAM-END-1")


def look_again() -> None:
    """Wait a little for other threads.

    Clauses: TEAM-END-1
    """
    require_threads()
    time.sleep(0.0005)


class Task:
    """One call, to be made by whoever is the first to take it."""

    def __init__(self, tally: Tally, run: Callable[[], object]) -> None:
        self.tally, self.run = tally, run
        self.number = next(tally.numbers)
        self._claim = Claim()

    @property
    def taken(self) -> bool:
        """Whether somebody has taken it, and perhaps ended it."""
        return self._claim.taken

    @property
    def under_way(self) -> bool:
        """Whether it is not over yet, begun or not."""
        return not self._claim.taken or self._claim.held

    def take_back(self) -> bool:
        """Let nobody run it; False if somebody does or did."""
        return self._claim.come(threading.Lock())

    def __call__(self) -> None:
        """Run it here unless somebody has taken it, in the default environment; keep what it raises.

        Clauses: TEAM-SPAWN-1, TEAM-ENV-1
        """
        lock = threading.Lock()
        tally, caller = self.tally, fpenv.guard()
        with lock:
            try:
                if not self._claim.come(lock):
                    return
                tally.tasks[self.number] = self  # if it was not spawned
                fpenv.set(fpenv.default_environment)
                self.run()
            except BaseException as error:  # for wait_and_work, whatever it is
                if not self._claim.was(lock):
                    raise
                tally.failures[self.number] = error
            finally:
                caller.restore()
        tally.tasks.pop(self.number, None)


def _left(some: Iterator[int]) -> int:
    return int(some.__length_hint__())  # type: ignore[attr-defined] # of a range, and exact


class Tally:
    """The counts of a group until it is reset, or until its process forks."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.numbers = count()
        self.started: deque[Iterator[int]] = deque()  # each gives as many items as must finish yet
        self.tasks: dict[int, Task] = {}
        self.failures: dict[int, BaseException] = {}
        self.lost: list[Task] = []

    def in_child(self) -> Tally:
        """Return what a child goes on with: spawned tasks are lost there (clause TEAM-FORK-2)."""
        child = Tally()
        child.numbers, child.started, child.failures = self.numbers, self.started, self.failures
        child.lost = [task for task in self.tasks.values() if task.under_way]
        return child

    def spawned(self) -> list[Task]:
        """Return the tasks that are not over."""
        for task in list(self.tasks.values()):
            if not task.under_way:
                self.tasks.pop(task.number, None)
        return list(self.tasks.values())

    def total(self) -> int:
        """Return the count."""
        return sum(_left(some) for some in list(self.started)) + len(self.spawned())

    def idle(self) -> bool:
        """Whether the count is 0."""
        for task in list(self.tasks.values()):
            if task.under_way:
                return False
            self.tasks.pop(task.number, None)
        return not any(_left(some) for some in list(self.started))


class WaitGroup:
    """A count of tasks under way; ``wait`` returns when it is 0.

    Clauses: TEAM-PRIMITIVE-1
    """

    def __init__(self) -> None:
        self._tally = Tally()

    @property
    def _counts(self) -> Tally:
        if self._tally.process != os.getpid():
            self._tally = self._tally.in_child()
        return self._tally

    def __repr__(self) -> str:
        return f"WaitGroup(count={self._counts.total()})"

    def start(self, count: int = 1) -> None:
        """Count ``count`` tasks more."""
        number = whole("count", count, "TEAM-PRIMITIVE-1")
        if number < 0:
            raise InvalidBounds(f"count must not be negative, got {shown(number)}", clause="TEAM-PRIMITIVE-1")
        self._counts.started.append(iter(range(number)))

    def finish(self) -> None:
        """Count one task less; OverRelease when there is none."""
        counts = self._counts
        for some in list(counts.started):
            for _ in some:
                return
            with suppress(ValueError):  # another thread has removed it
                counts.started.remove(some)
        for task in counts.spawned():
            if counts.tasks.pop(task.number, None) is task:
                return
        raise OverRelease(f"finish was called on {self!r}, without a start", clause="TEAM-PRIMITIVE-1")

    def is_done(self) -> bool:
        """Whether no task is under way."""
        return self._counts.idle()

    def wait(self) -> None:
        """Wait until no task is under way."""
        while not self.is_done():
            look_again()

    def reset(self) -> None:
        """Forget what was counted."""
        self._tally = Tally()

    def _raise_first(self) -> None:
        counts = self._counts
        failures, counts.failures = counts.failures, {}
        lost, counts.lost = counts.lost, []
        if failures:
            raise failures[min(failures)]
        missing = sum(task.under_way for task in lost)  # but the task of the thread that forked
        if missing:
            raise ForkedInTask(
                f"the process forked; {missing} tasks that were spawned before are not done", clause="TEAM-FORK-2"
            )


def _at_one_go(steps: list[Callable[[], object]]) -> None:
    """Take steps that are calls of C with no handler between them."""
    deque[object](map(call, steps), maxlen=0)


class Seat:
    """The place of one thread of an executor."""

    def __init__(self) -> None:
        self.thread = 0  # its number, once it runs


class Executor:
    """At most ``most`` threads: each runs what is queued, one task after the other, and ends when nothing is.

    Clauses: TEAM-SPAWN-1
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._queued: deque[Task] = deque()
        self._seats: deque[Seat] = deque()
        self._process = os.getpid()  # last: in a child, an interrupt before leaves all of this to be done

    def _survive(self) -> None:
        """In the child of a fork: forget the threads and what they were to do."""
        if self._process != os.getpid():
            Executor.__init__(self, self._most)

    def _waiting(self) -> Task | None:
        """Return the first task that nobody has taken; it stays queued until somebody does."""
        while self._queued:
            with suppress(IndexError, ValueError):  # another thread has removed it
                task = self._queued[0]
                if not task.taken:
                    return task
                self._queued.remove(task)
        return None

    def spawn(self, group: WaitGroup, run: Callable[..., object], args: tuple[object, ...]) -> bool:
        """Queue a task; False when there can be no thread for it, as when the interpreter is ending."""
        self._survive()
        if self._most == 0 or sys.is_finalizing():
            return False
        task = Task(group._counts, partial(run, *args))
        # in one call: no handler comes between a task that is counted and its place in the queue
        steps: list[Callable[[], object]] = [
            partial(task.tally.tasks.__setitem__, task.number, task),
            partial(self._queued.append, task),
        ]
        _at_one_go(steps)
        if len(self._seats) < self._most:
            seat = Seat()
            steps = [partial(start_new_thread, self._serve, (seat,)), partial(self._seats.append, seat)]
            with suppress(RuntimeError):  # no more threads to be had
                _at_one_go(steps)
        return bool(self._seats) or not task.take_back()

    def here(self, group: WaitGroup, run: Callable[..., object], args: tuple[object, ...]) -> None:
        """Run a task on the calling thread."""
        Task(group._counts, partial(run, *args))()

    def wait(self, group: WaitGroup) -> None:
        """Run tasks, of any group, until this group is done; raise what its first failure was."""
        while not group.is_done():
            self._survive()
            task = self._waiting()
            if task is None:
                look_again()
            else:
                task()
        group._raise_first()

    def end(self) -> None:
        """Let the threads finish what is queued, and end."""
        while self._process == os.getpid() and not sys.is_finalizing():
            if any(seat.thread != get_ident() for seat in list(self._seats)):
                look_again()
                continue
            task = self._waiting()
            if task is None or self._seats:  # or it is for this thread, later
                return
            task()

    def _serve(self, seat: Seat) -> None:
        process, seats = os.getpid(), self._seats
        seat.thread = get_ident()
        while seat in list(seats)[: self._most]:  # not if two callers have started the last one
            task = self._waiting()
            if task is not None:
                task()
                if process != os.getpid():  # forked in that task: the only thread of the child, which ends with it
                    return
                continue
            seats.remove(seat)
            if self._waiting() is None:
                return
            seats.append(seat)  # it was queued for this thread
        seats.remove(seat)
