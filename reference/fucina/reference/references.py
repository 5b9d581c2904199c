"""References: how many there are to a storage, and what happens when the last one goes.

A storage is live while it has references, of tensors, by hand, or of arrays that were handed out (*pins*).  When the
last one goes it is released and its hook runs; a hook destroys it, or keeps it to bring it back.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fucina.reference.allocation import Bytes, address_of
from fucina.reference.arguments import shown
from fucina.reference.companions import Companions
from fucina.spec.errors import DTypeMismatch, OverRelease, UseAfterDeinit
from fucina.spec.runtime import HostShadow, Release

__all__ = ["Recycle", "Referenced", "State", "require_hook"]

Recycle: TypeAlias = Callable[["Referenced", Bytes, bool], None]
"""What a pool does with the memory of a storage that is destroyed: ``recycle(storage, memory, keep)``."""

_lock = threading.RLock()  # a finalizer may run, and give a reference back, while its own thread holds the lock


class State(enum.Enum):
    """Where a storage is in its life."""

    LIVE = "live"
    RELEASED = "released"
    DESTROYED = "destroyed"


class _Pin:
    """What an array that was handed out holds on to: one reference, given back when it dies."""

    def __init__(self, owner: Referenced, memory: Bytes, writable: bool) -> None:
        self.owner = owner
        self.memory = memory
        self.__array_interface__ = {
            "version": 3,
            "shape": memory.shape,
            "typestr": "|u1",
            "data": (address_of(memory), not writable),
        }

    def __del__(self) -> None:
        self.owner._unpin()


class Referenced(Companions):
    """Memory with a reference count.

    Parameters
    ----------
    memory : array of bytes
        The memory.
    hook : Release
        What happens when the last reference is gone.
    recycle : callable, optional
        ``recycle(storage, memory, keep)``, called once when it is destroyed, instead of dropping the memory: what a
        pool does.  ``keep`` says whether the memory may be used again: not while arrays still see it.

    Notes
    -----
    Clauses: STORAGE-REF-1, STORAGE-HOOK-1
    """

    def __init__(self, memory: Bytes, hook: Release, recycle: Recycle | None = None) -> None:
        self._memory: Bytes | None = memory
        self._held = 1  # references of tensors and by hand
        self._pins = 0  # references of arrays
        self._generation = 0
        self._hook = hook
        self._shadow: HostShadow | None = None
        self._state = State.LIVE
        self._recycle = recycle

    @property
    def refs(self) -> int:
        """The number of references, those of arrays included.

        Notes
        -----
        Clauses: STORAGE-REF-1, STORAGE-PIN-1
        """
        return 0 if self._state is State.DESTROYED else self._held + self._pins

    @property
    def release_hook(self) -> Release:
        """What runs when the last reference is gone.

        Notes
        -----
        Clauses: STORAGE-HOOK-1
        """
        return self._hook

    def retain(self) -> None:
        """Take one more reference.

        Raises
        ------
        UseAfterDeinit
            If there is none left.

        Notes
        -----
        Clauses: STORAGE-REF-1
        """
        with _lock:
            self.require_live("STORAGE-REF-1")
            self._held += 1

    def release(self) -> None:
        """Give one reference back; the last one runs the hook.

        Raises
        ------
        OverRelease
            If none is held, but by arrays.

        Notes
        -----
        Clauses: STORAGE-REF-1, STORAGE-HOOK-1, STORAGE-THREAD-1
        """
        with _lock:
            if self._held == 0:
                raise OverRelease(
                    f"{self!r} has no reference to give back ({self._pins} of arrays)", clause="STORAGE-REF-1"
                )
            self._held -= 1
            last = self._is_unreferenced()
        if last:
            self._finish()

    def is_unique(self) -> bool:
        """Whether there is exactly one reference.

        Notes
        -----
        Clauses: STORAGE-REF-1
        """
        return self.refs == 1

    def reset_refs(self) -> None:
        """Make one reference of what there is: bring a storage back that its hook kept.

        Raises
        ------
        OverRelease
            If several references are held.
        UseAfterDeinit
            If it was destroyed.

        Notes
        -----
        Clauses: STORAGE-REF-2
        """
        with _lock:
            if self._state is State.DESTROYED:
                self.require_live("STORAGE-REF-2")
            if self.refs > 1:
                raise OverRelease(f"{self.refs} references are held, so none may be forgotten", clause="STORAGE-REF-2")
            if self._pins == 0:
                self._held = 1
            self._state = State.LIVE

    def destroy(self) -> None:
        """Give the memory and the header back, whoever holds references.

        Raises
        ------
        UseAfterDeinit
            If that has happened.

        Notes
        -----
        Clauses: STORAGE-DESTROY-1
        """
        with _lock:
            if self._state is State.DESTROYED:
                self.require_live("STORAGE-DESTROY-1")
            memory, self._memory = self.memory(), None
            seen = self._pins > 0
            self._held = 0
            self._state = State.DESTROYED
            recycle, self._recycle = self._recycle, None
        try:
            self._drop_shadow()
        finally:
            if recycle is not None:
                recycle(self, memory, not seen)

    def destroy_header(self) -> None:
        """Give the header back, and with it the hold on the memory; what becomes of borrowed bytes is the hook's duty.

        Raises
        ------
        UseAfterDeinit
            If that has happened.

        Notes
        -----
        Clauses: STORAGE-DESTROY-1, STORAGE-HOOK-2
        """
        self.destroy()

    def _is_unreferenced(self) -> bool:
        """Whether the last reference has just gone; notes it."""
        if self._state is not State.LIVE or self._held or self._pins:
            return False
        self._state = State.RELEASED
        return True

    def _finish(self) -> None:
        """Run the hook after the last reference.

        Notes
        -----
        Clauses: STORAGE-HOOK-1, STORAGE-HOOK-2
        """
        run, ctx = self._hook.run, self._hook.ctx
        if run is None:
            self.destroy()
            return
        try:
            run(self if ctx is None else ctx, self)
        except BaseException:
            if self._state is State.RELEASED:
                self.destroy()
            raise

    def _unpin(self) -> None:
        """Take back the reference of an array.

        Notes
        -----
        Clauses: STORAGE-PIN-1
        """
        with _lock:
            self._pins -= 1
            last = self._is_unreferenced()
        if last:
            self._finish()

    def __del__(self) -> None:
        # what was retained by hand and never given back (clause STORAGE-GC-1)
        if getattr(self, "_state", None) is State.LIVE:
            self._held = self._pins = 0
            self._state = State.RELEASED
            self._finish()

    # -- the memory

    def require_live(self, clause: str) -> None:
        """Raise UseAfterDeinit unless there are references.

        Notes
        -----
        Clauses: STORAGE-DEAD-1
        """
        if self._state is not State.LIVE:
            raise UseAfterDeinit(f"{self!r} was used after its last reference was given back", clause=clause)

    def memory(self) -> Bytes:
        """Return the bytes, without a reference.

        Raises
        ------
        UseAfterDeinit
            If they were given back.

        Notes
        -----
        Clauses: STORAGE-DEAD-1
        """
        if self._memory is None:
            raise UseAfterDeinit(f"{self!r} was used after its memory was given back", clause="STORAGE-DEAD-1")
        return self._memory

    def pinned(self, *, writable: bool) -> Bytes:
        """Return all bytes as an array that holds a reference.

        Notes
        -----
        Clauses: STORAGE-PIN-1
        """
        with _lock:
            memory = self.memory()
            pin = _Pin(self, memory, writable)
            self._pins += 1
        return np.asarray(pin)


def require_hook(hook: object) -> None:
    """Refuse what is no Release.

    Notes
    -----
    Clauses: STORAGE-HOOK-1
    """
    if type(hook) is not Release:
        raise DTypeMismatch(f"a hook is a Release, got {shown(hook)}", clause="STORAGE-HOOK-1")
