"""The small primitives beside a team: a mutex, an allocator for several threads (clause TEAM-PRIMITIVE-1)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from fucina.fast._shown import shown
from fucina.spec.errors import DTypeMismatch, OverRelease

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from fucina.spec.team import Allocator

__all__ = ["Mutex", "ThreadSafeAllocator"]


class Mutex:
    """A lock that is not reentrant.

    Clauses: TEAM-PRIMITIVE-1
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Mutex(locked={self._lock.locked()})"

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
