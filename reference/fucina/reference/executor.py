"""Single tasks on threads that end when nothing is queued, and the small primitives.

Clauses: TEAM-SPAWN-1, TEAM-PRIMITIVE-1
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fucina.reference.arguments import shown, whole
from fucina.spec.errors import DTypeMismatch, ForkedInTask, InvalidBounds, OverRelease

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from fucina.spec.team import Allocator

__all__ = ["Executor", "Mutex", "ThreadSafeAllocator", "WaitGroup"]

Task = Callable[[], None]


class WaitGroup:
    """A count of tasks under way; ``wait`` returns when it is 0.

    Clauses: TEAM-PRIMITIVE-1
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._process = os.getpid()
        self._spawned = 0
        self._forget()

    def _forget(self) -> None:
        self._count = 0
        self._open: set[int] = set()  # numbers of spawned tasks that have not ended
        self._lost: set[int] = set()  # those that a fork has left in the parent
        self._failures: list[tuple[int, BaseException]] = []

    @property
    def _changed(self) -> threading.Condition:
        """The lock; in the child of a fork a new one, and spawned tasks are lost there.

        Clauses: TEAM-FORK-2
        """
        if self._process != os.getpid():
            self._condition, self._process = threading.Condition(), os.getpid()
            self._count = max(self._count - len(self._open), 0)
            self._open, self._lost = set(), self._open
        return self._condition

    def __repr__(self) -> str:
        return f"WaitGroup(count={self._count})"

    def start(self, count: int = 1) -> None:
        """Count ``count`` tasks more."""
        number = whole("count", count, "TEAM-PRIMITIVE-1")
        if number < 0:
            raise InvalidBounds(f"count must not be negative, got {shown(number)}", clause="TEAM-PRIMITIVE-1")
        with self._changed:
            self._count += number

    def finish(self) -> None:
        """Count one task less; OverRelease when there is none."""
        with self._changed:
            if self._count == 0:
                raise OverRelease(f"finish was called on {self!r}, without a start", clause="TEAM-PRIMITIVE-1")
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
            self._forget()
            self._changed.notify_all()

    def _task(self, run: Callable[..., object], args: tuple[object, ...]) -> Task:
        """Count one task more; return it, to be called once."""
        with self._changed:
            self._count += 1
            self._spawned += 1
            number = self._spawned
            self._open.add(number)

        def task() -> None:
            try:
                run(*args)
            except BaseException as error:  # for wait_and_work, whatever it is
                self._end_one(number, [(number, error)])
            else:
                self._end_one(number, [])

        return task

    def _end_one(self, number: int, failures: list[tuple[int, BaseException]]) -> None:
        """Take note of the end of a task; one from before a reset counts no more."""
        with self._changed:
            if number in self._lost:  # it was this thread that forked, in that task
                self._lost.remove(number)
            elif number in self._open:
                self._open.remove(number)
                self._count = max(self._count - 1, 0)
            else:
                return
            self._failures += failures
            self._changed.notify_all()

    def _raise_first(self) -> None:
        with self._changed:
            failures, self._failures = self._failures, []
            lost, self._lost = self._lost, set()
        if failures:
            raise min(failures, key=lambda failure: failure[0])[1]
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
            raise OverRelease(
                f"unlock was called on {self!r}, which nobody has locked", clause="TEAM-PRIMITIVE-1"
            ) from None

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
        for needed in ("alloc", "resize", "remap", "free"):
            if not callable(getattr(child, needed, None)):
                raise DTypeMismatch(f"child must be an allocator, got {shown(child)}", clause="TEAM-ARG-1")
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


class Executor:
    """At most ``most`` threads: each runs what is queued, one task after the other, and ends when nothing is.

    Clauses: TEAM-SPAWN-1
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._queued: deque[Task] = deque()
        self._threads: set[threading.Thread] = set()

    def spawn(self, group: WaitGroup, run: Callable[..., object], args: tuple[object, ...]) -> bool:
        """Queue a task; False when there can be no thread for it."""
        if self._process != os.getpid():  # in the child of a fork, without the threads and what they were to do
            Executor.__init__(self, self._most)
        with self._lock:
            if len(self._threads) < self._most:
                thread = threading.Thread(target=self._serve, name="fucina", daemon=True)
                with suppress(RuntimeError):  # no more threads to be had
                    thread.start()
                    self._threads.add(thread)
            if not self._threads:
                return False
            self._queued.append(group._task(run, args))
        return True

    def here(self, group: WaitGroup, run: Callable[..., object], args: tuple[object, ...]) -> None:
        """Run a task on the calling thread."""
        group._task(run, args)()

    def wait(self, group: WaitGroup) -> None:
        """Run tasks, of any group, until this group is done; raise what its first failure was."""
        while not group.is_done():
            if self._process != os.getpid():
                Executor.__init__(self, self._most)
            try:
                task = self._queued.popleft()
            except IndexError:
                group.wait()
            else:
                task()
        group._raise_first()

    def end(self) -> None:
        """Let the threads finish what is queued, and end."""
        if self._process == os.getpid():
            for thread in self._threads - {threading.current_thread()}:
                thread.join()

    def _serve(self) -> None:
        process = os.getpid()
        while process == os.getpid():  # a thread that forked in a task is the only one of the child, and ends with it
            with self._lock:  # none is queued for threads that are about to end
                if not self._queued:
                    self._threads.discard(threading.current_thread())
                    return
                task = self._queued.popleft()
            task()
