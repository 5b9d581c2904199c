"""Single tasks on threads that come and go, and the small primitives (clauses TEAM-SPAWN-1, TEAM-PRIMITIVE-1)."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fucina.fast._arguments import whole
from fucina.fast._shown import integer_shown, shown
from fucina.spec.errors import DTypeMismatch, ForkedInTask, InvalidBounds, OverRelease

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from fucina.spec.team import Allocator

__all__ = ["Executor", "Mutex", "ThreadSafeAllocator", "WaitGroup", "known_callable", "known_group"]

_IDLE_SECONDS = 2.0


def known_callable(name: str, value: object) -> None:
    """Refuse what cannot be called (clause TEAM-ARG-1)."""
    if not callable(value):
        raise DTypeMismatch(f"{name} must be callable, got {shown(value)}", clause="TEAM-ARG-1")


def known_group(value: object) -> None:
    """Refuse what is no WaitGroup (clause TEAM-ARG-1)."""
    if not isinstance(value, WaitGroup):
        raise DTypeMismatch(f"group must be a WaitGroup, got {shown(value)}", clause="TEAM-ARG-1")


class WaitGroup:
    """A count of tasks under way; ``wait`` returns when it is 0.

    Clauses: TEAM-PRIMITIVE-1
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._process = os.getpid()
        self._count = self._spawned = 0
        self._under_way: set[int] = set()
        self._lost: set[int] = set()
        self._failures: dict[int, BaseException] = {}

    @property
    def _changed(self) -> threading.Condition:
        """The lock; in the child of a fork a new one, and tasks spawned before are lost there.

        Clauses: TEAM-FORK-2
        """
        if self._process != os.getpid():
            self._process, self._condition = os.getpid(), threading.Condition()
            self._count = max(0, self._count - len(self._under_way))
            self._lost, self._under_way = self._under_way, set()
        return self._condition

    def __repr__(self) -> str:
        return f"WaitGroup(count={self._count})"

    def start(self, count: int = 1) -> None:
        """Count ``count`` tasks more."""
        number = whole("count", count, "TEAM-PRIMITIVE-1")
        if number < 0:
            raise InvalidBounds(f"count must not be negative, got {integer_shown(number)}", clause="TEAM-PRIMITIVE-1")
        with self._changed:
            self._count += number

    def finish(self) -> None:
        """Count one task less; OverRelease when there is none."""
        with self._changed:
            if self._count == 0:
                raise OverRelease(f"each finish must follow a start, got {self!r}", clause="TEAM-PRIMITIVE-1")
            self._count -= 1
            self._changed.notify_all()

    def is_done(self) -> bool:
        """Whether no task is under way."""
        with self._changed:
            return self._count == 0

    def wait(self) -> None:
        """Wait until no task is under way."""
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0)

    def reset(self) -> None:
        """Forget what was counted."""
        with self._changed:
            self._count = 0
            self._under_way.clear()
            self._lost.clear()
            self._failures.clear()
            self._changed.notify_all()

    def _number(self) -> int:
        with self._changed:
            self._count += 1
            self._spawned += 1
            self._under_way.add(self._spawned)
            return self._spawned

    def _end_one(self, number: int, error: BaseException | None) -> None:
        """Take note of the end of a task; one from before a reset counts no more."""
        with self._changed:
            if error is not None and number in self._under_way | self._lost:
                self._failures[number] = error
            self._lost.discard(number)  # it was this thread that forked
            if number in self._under_way:
                self._under_way.discard(number)
                self._count = max(0, self._count - 1)
                self._changed.notify_all()

    def _raise_first(self) -> None:
        with self._changed:
            first = self._failures.pop(min(self._failures), None) if self._failures else None
            self._failures.clear()
            lost, self._lost = self._lost, set()
        if first is not None:
            raise first
        if lost:
            raise ForkedInTask(
                f"the process forked; {len(lost)} tasks that were spawned before are not done", clause="TEAM-FORK-2"
            )


class Mutex:
    """A lock that is not reentrant.

    Clauses: TEAM-PRIMITIVE-1
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def lock(self) -> None:
        """Wait until the mutex is free and take it."""
        self._lock.acquire()

    def try_lock(self) -> bool:
        """Take the mutex if it is free; return whether it was."""
        return self._lock.acquire(blocking=False)

    def unlock(self) -> None:
        """Give the mutex back; OverRelease when nobody has it."""
        try:
            self._lock.release()
        except RuntimeError:
            raise OverRelease(f"{self!r} must be locked before its unlock", clause="TEAM-PRIMITIVE-1") from None

    def __enter__(self) -> Self:
        self.lock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unlock()


class ThreadSafeAllocator:
    """An allocator for several threads: every call of the one given happens under one lock.

    Clauses: TEAM-PRIMITIVE-1, TEAM-ARG-1
    """

    def __init__(self, child: Allocator) -> None:
        if not all(callable(getattr(child, call, None)) for call in ("alloc", "resize", "remap", "free")):
            raise DTypeMismatch(
                f"child must have alloc, resize, remap and free, got {shown(child)}", clause="TEAM-ARG-1"
            )
        self._child, self._lock = child, threading.Lock()

    def alloc(self, size: int) -> Any:
        """Allocate."""
        with self._lock:
            return self._child.alloc(size)

    def resize(self, memory: Any, size: int) -> bool:
        """Resize in place if that can be done; return whether it was."""
        with self._lock:
            return self._child.resize(memory, size)

    def remap(self, memory: Any, size: int) -> Any:
        """Resize, perhaps at another address."""
        with self._lock:
            return self._child.remap(memory, size)

    def free(self, memory: Any) -> None:
        """Give memory back."""
        with self._lock:
            self._child.free(memory)


Job = tuple[WaitGroup, int, Callable[..., object], tuple[object, ...]]


def _run(job: Job) -> None:
    group, number, run, args = job
    failure = None
    try:
        run(*args)
    except BaseException as error:  # for wait_and_work, whatever it is
        failure = error
    finally:
        group._end_one(number, failure)


class Executor:
    """At most ``most`` threads, which start when a task finds none idle and end when there has been nothing to do.

    Clauses: TEAM-SPAWN-1
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._fresh()

    def _fresh(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._ended = False

    def spawn(self, group: WaitGroup, run: Callable[..., object], args: tuple[object, ...]) -> bool:
        """Queue a task; False when there can be no thread for it."""
        if self._process != os.getpid():  # in the child of a fork, without the threads and what they were to do
            self._fresh()
        with self._changed:
            if self._idle <= len(self._jobs) and len(self._threads) < self._most:
                thread = threading.Thread(target=self._serve, name="fucina", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads to be had
                    pass
                else:
                    self._threads.add(thread)
            if not self._threads:
                return False
            self._jobs.append((group, group._number(), run, args))
            self._changed.notify()
        return True

    def here(self, group: WaitGroup, run: Callable[..., object], args: tuple[object, ...]) -> None:
        """Run a task on the calling thread."""
        _run((group, group._number(), run, args))

    def wait(self, group: WaitGroup) -> None:
        """Run tasks, of any group, until this group is done; raise what its first failure was."""
        while not group.is_done():
            if self._process != os.getpid():
                self._fresh()
            with self._changed:
                job = self._jobs.popleft() if self._jobs else None
            if job is None:
                group.wait()
            else:
                _run(job)
        group._raise_first()

    def end(self) -> None:
        """Let the threads finish what is queued, and end them."""
        if self._process != os.getpid():
            return
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            threads = list(self._threads)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()

    def _serve(self) -> None:
        process = os.getpid()
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._jobs or self._ended, _IDLE_SECONDS)
                self._idle -= 1
                if not self._jobs:
                    self._threads.discard(threading.current_thread())
                    return
                job = self._jobs.popleft()
            _run(job)
            if process != os.getpid():  # forked in that task: the only thread of the child, which ends with it
                return
