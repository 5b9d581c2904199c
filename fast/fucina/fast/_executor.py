"""Single tasks on threads that come and go, and the group that counts them (clauses TEAM-SPAWN-1, TEAM-PRIMITIVE-1).

A signal handler runs between any two steps of Python on the main thread, and what it raises leaves the rest undone.
So nothing here takes a lock for a few steps, and nothing is a task's state that a step of Python would have to write at
its end.  What changes changes by single calls of C: a task is counted and queued by one, taken by one, and under way as
long as its taker holds a lock that the C code of ``with`` lets go of.  Whoever sleeps looks again after a while, so
that a wake-up that was cut off costs time alone, and the child of a fork does not wait for threads of the parent.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, get_ident, start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count as counter
from operator import call
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from fucina.fast._arguments import whole
from fucina.fast._native import lib
from fucina.fast._shown import integer_shown, shown
from fucina.spec.errors import ConcurrentUse, DTypeMismatch, ForkedInTask, InvalidBounds, OverRelease

if TYPE_CHECKING:
    from _thread import LockType

__all__ = ["Executor", "WaitGroup", "known_callable", "known_group"]

_IDLE_SECONDS = 2.0
_NAP_SECONDS = 0.05
_DEFAULT_ENVIRONMENT = lib.FC_FPENV_NEAREST_EVEN  # nothing is flushed


def known_callable(name: str, value: object) -> None:
    """Refuse what cannot be called (clause TEAM-ARG-1)."""
    if not callable(value):
        raise DTypeMismatch(f"{name} must be callable, got {shown(value)}", clause="TEAM-ARG-1")


def known_group(value: object) -> None:
    """Refuse what is no WaitGroup (clause TEAM-ARG-1)."""
    if not isinstance(value, WaitGroup):
        raise DTypeMismatch(f"group must be a WaitGroup, got {shown(value)}", clause="TEAM-ARG-1")


def _at_once(*calls: Callable[[], object]) -> None:
    """Make calls of C one after the other, with no signal handler between them."""
    deque(map(call, calls), maxlen=0)


def _wake(sleepers: deque[LockType]) -> None:
    """Wake all who sleep; one that is missed looks again by itself."""
    while sleepers:
        with suppress(IndexError, RuntimeError):  # another thread was faster
            sleepers.popleft().release()


def _sleep_until(ready: Callable[[], object], places: Callable[[], tuple[deque[LockType], ...]]) -> None:
    """Sleep until what is waited for is ready: woken in one of the places, which a fork may change, or after a nap.

    Clauses: TEAM-END-1
    """
    gate = allocate_lock()
    gate.acquire()
    try:
        while not ready():
            for place in places():
                if gate not in place:
                    place.append(gate)
            if ready():
                return
            if sys.is_finalizing():
                raise ConcurrentUse(
                    "the interpreter is ending; what other threads had begun is not done", clause="TEAM-END-1"
                )
            gate.acquire(timeout=_NAP_SECONDS)
    finally:
        for place in places():
            with suppress(IndexError, ValueError):
                place.remove(gate)


class _Job:
    """A single task: queued until somebody takes it, under way until its taker's lock is free again."""

    __slots__ = ("args", "number", "round", "run", "takers", "uncounted")

    def __init__(self, of: _Round, run: Callable[..., object], args: tuple[object, ...]) -> None:
        self.round, self.run, self.args = of, run, args
        self.number = next(of.numbers)
        self.takers: list[LockType] = []  # the first of them has it
        self.uncounted: list[LockType] = []  # who called finish for it

    def over(self) -> bool:
        """Whether it counts no more."""
        return bool(self.uncounted or (self.takers and not self.takers[0].locked()))

    def cancel(self) -> bool:
        """Take it and let go of it at once; False if somebody has it."""
        taker = allocate_lock()
        self.takers.append(taker)
        return self.takers[0] is taker

    def perform(self, queue: deque[_Job] | None) -> None:
        """Run it on this thread, if nobody has taken it; what it raises is for ``wait_and_work``, whatever it is.

        What a handler raises once it was taken counts as raised by the task.  Without a queue it is counted here.

        Clauses: TEAM-SPAWN-1, TEAM-ENV-1, TEAM-SIGNAL-1
        """
        taker = allocate_lock()
        with taker:
            try:
                self.takers.append(taker)
                if self.takers[0] is taker:
                    if queue is None:
                        self.round.open.append(self)
                    else:
                        _discard(queue, self)
                    environment = lib.fc_fpenv_get()
                    try:
                        lib.fc_fpenv_set(_DEFAULT_ENVIRONMENT)
                        self.run(*self.args)
                    finally:
                        lib.fc_fpenv_set(environment)
            except BaseException as error:
                if not self.takers or self.takers[0] is not taker:
                    raise
                self.round.failures[self.number] = error
        if self.takers[0] is taker:
            self.run, self.args = int, ()  # somebody may keep the group
            self.round.prune()
            _wake(self.round.sleepers)


def _discard(queue: deque[_Job], job: _Job) -> None:
    with suppress(IndexError, ValueError):  # another thread was faster
        queue.remove(job)


class _Round:
    """What a group counts in one process from one reset to the next."""

    def __init__(self, before: _Round | None = None) -> None:
        self.process = os.getpid()
        self.numbers: Iterator[int] = before.numbers if before else counter(1)
        self.starts: deque[Iterator[int]] = before.starts if before else deque()  # as many items as are left of each
        self.failures: dict[int, BaseException] = before.failures if before else {}
        self.open: deque[_Job] = deque()
        self.lost = [job for job in tuple(before.open) if not job.over()] if before else []
        self.sleepers: deque[LockType] = deque()
        self.after: dict[int, _Round] = {}

    def count(self) -> int:
        starts = sum(start.__length_hint__() for start in tuple(self.starts))  # type: ignore[attr-defined]
        return int(starts) + sum(not job.over() for job in tuple(self.open))

    def prune(self) -> None:
        """Forget spawned tasks that are over, from the first on."""
        while self.open:
            try:
                job = self.open[0]
                if not job.over():
                    return
                self.open.remove(job)
            except (IndexError, ValueError):  # another thread was faster
                pass

    def take_one(self) -> bool:
        """Count one less; False if there is none."""
        while self.starts:
            try:
                start = self.starts[0]
                if next(start, None) is not None:
                    return True
                self.starts.remove(start)
            except (IndexError, ValueError):  # another thread was faster
                pass
        mine = allocate_lock()
        for job in tuple(self.open):
            if not job.over():
                job.uncounted.append(mine)
                if job.uncounted[0] is mine:
                    return True
        return False

    def done(self) -> bool:
        """Whether nothing is under way."""
        if any(start.__length_hint__() for start in tuple(self.starts)):  # type: ignore[attr-defined]
            return False
        self.prune()
        return not self.open


class WaitGroup:
    """A count of tasks under way; ``wait`` returns when it is 0.

    Clauses: TEAM-PRIMITIVE-1
    """

    def __init__(self) -> None:
        self._round = _Round()

    def _now(self) -> _Round:
        """Return what is counted; in the child of a fork, where tasks that were spawned before are lost, another.

        Clauses: TEAM-FORK-2
        """
        now, process = self._round, os.getpid()
        if now.process != process:
            now = self._round = now.after.setdefault(process, _Round(now))
        return now

    def __repr__(self) -> str:
        return f"WaitGroup(count={self._now().count()})"

    def start(self, count: int = 1) -> None:
        """Count ``count`` tasks more."""
        number = whole("count", count, "TEAM-PRIMITIVE-1")
        if number < 0:
            raise InvalidBounds(f"count must not be negative, got {integer_shown(number)}", clause="TEAM-PRIMITIVE-1")
        if number:
            self._now().starts.append(iter(range(number)))

    def finish(self) -> None:
        """Count one task less; OverRelease when there is none."""
        now = self._now()
        if not now.take_one():
            raise OverRelease(f"each finish must follow a start, got {self!r}", clause="TEAM-PRIMITIVE-1")
        _wake(now.sleepers)

    def is_done(self) -> bool:
        """Whether no task is under way."""
        return self._now().done()

    def wait(self) -> None:
        """Wait until no task is under way."""
        _sleep_until(self.is_done, lambda: (self._now().sleepers,))

    def reset(self) -> None:
        """Forget what was counted."""
        before, self._round = self._now(), _Round()
        _wake(before.sleepers)

    def _raise_first(self) -> None:
        now = self._now()
        first = now.failures.pop(min(now.failures), None) if now.failures else None
        now.failures.clear()
        lost = sum(not job.over() for job in now.lost)  # not the task of the thread that forked, if it has ended
        now.lost.clear()
        if first is not None:
            raise first
        if lost:
            raise ForkedInTask(
                f"the process forked; {lost} tasks that were spawned before are not done", clause="TEAM-FORK-2"
            )


class _Ticket:
    """What stands for a thread of an executor."""

    __slots__ = ("thread",)

    def __init__(self) -> None:
        self.thread = 0


class _Crew:
    """The threads of an executor in one process, and what they are to do."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.jobs: deque[_Job] = deque()
        self.tokens: SimpleQueue[None] = SimpleQueue()  # one for each job that was queued, to wake a thread with
        self.threads: deque[_Ticket] = deque()
        self.idle: deque[_Ticket] = deque()
        self.sleepers: deque[LockType] = deque()  # callers of wait_and_work and deinit
        self.ended = False
        self.after: dict[int, _Crew] = {}

    def first(self) -> _Job | None:
        """Return the first job that nobody has taken.  It stays queued until it is."""
        while self.jobs:
            try:
                job = self.jobs[0]
            except IndexError:  # another thread was faster
                continue
            if not job.takers:
                return job
            _discard(self.jobs, job)
        return None

    def hire(self, most: int) -> None:
        """Start a thread if there may be another and none is idle."""
        if len(self.jobs) > len(self.idle) and len(self.threads) < most:
            ticket = _Ticket()
            with suppress(RuntimeError):  # no more threads to be had
                _at_once(partial(start_new_thread, self.serve, (ticket, most)), partial(self.threads.append, ticket))

    def serve(self, ticket: _Ticket, most: int) -> None:
        """Do what is queued; leave after some time without."""
        ticket.thread = get_ident()
        while ticket in tuple(self.threads)[:most]:  # or two callers started the last one
            job = self.first()
            if job is not None:
                job.perform(self.jobs)
                if self.process != os.getpid():  # forked in that task: the only thread of the child, which ends with it
                    return
                del job  # and what it holds, for as long as this thread sleeps
                continue
            if not self.ended and self.woken(ticket):
                continue
            self.threads.remove(ticket)
            if self.first() is None:
                break
            self.threads.append(ticket)  # it was queued for this thread
        else:
            self.threads.remove(ticket)
        _wake(self.sleepers)

    def woken(self, ticket: _Ticket) -> bool:
        """Sleep; return whether it was for less than is worth it."""
        self.idle.append(ticket)
        try:
            self.tokens.get(timeout=_IDLE_SECONDS)
        except Empty:
            return False
        finally:
            self.idle.remove(ticket)
        return True

    def others(self) -> bool:
        """Whether there are threads but the calling one."""
        return any(ticket.thread != get_ident() for ticket in tuple(self.threads))


class Executor:
    """At most ``most`` threads, which start when a task finds none idle and end when there has been nothing to do.

    Clauses: TEAM-SPAWN-1
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._crew = _Crew()

    def _now(self) -> _Crew:
        """Return the threads; in the child of a fork none, and none of what they were to do.

        Clauses: TEAM-FORK-1
        """
        now, process = self._crew, os.getpid()
        if now.process != process:
            now = self._crew = now.after.setdefault(process, _Crew())
        return now

    def spawn(self, group: WaitGroup, run: Callable[..., object], args: tuple[object, ...]) -> bool:
        """Queue a task; False when there can be no thread for it, as while the interpreter is ending."""
        if not self._most or sys.is_finalizing():
            return False
        crew, now = self._now(), group._now()
        job = _Job(now, run, args)
        _at_once(partial(now.open.append, job), partial(crew.jobs.append, job), partial(crew.tokens.put, None))
        crew.hire(self._most)
        if not crew.threads and job.cancel():
            _discard(crew.jobs, job)
            now.prune()
            return False
        _wake(crew.sleepers)
        return True

    def here(self, group: WaitGroup, run: Callable[..., object], args: tuple[object, ...]) -> None:
        """Run a task on the calling thread."""
        _Job(group._now(), run, args).perform(None)

    def wait(self, group: WaitGroup) -> None:
        """Run tasks, of any group, until this group is done; raise what its first failure was."""
        while not group.is_done():
            job = self._now().first()
            if job is not None:
                job.perform(self._now().jobs)
                continue
            _sleep_until(
                lambda: group.is_done() or self._now().first() is not None,
                lambda: (group._now().sleepers, self._now().sleepers),
            )
        group._raise_first()

    def end(self) -> None:
        """Let the threads finish what is queued, and end them."""
        crew = self._crew
        crew.ended = True
        for _ in tuple(crew.threads):
            crew.tokens.put(None)
        while self._now() is crew and not sys.is_finalizing():
            job = crew.first()
            if crew.others():
                _sleep_until(lambda: self._now() is not crew or not crew.others(), lambda: (crew.sleepers,))
            elif job is not None and not crew.threads:  # who spawned it was interrupted before there was a thread
                job.perform(crew.jobs)
            else:
                return
