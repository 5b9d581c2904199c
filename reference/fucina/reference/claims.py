"""Who has something: whoever was the first to come with a lock, for as long as that lock is held.

Nothing has to be undone when a signal handler raises: ``with`` gives the lock back in C.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

__all__ = ["Claim", "Users"]


class Claim:
    """Who does something that is done once."""

    def __init__(self) -> None:
        self._by: dict[str, threading.Lock] = {}

    def come(self, lock: threading.Lock) -> bool:
        """Come with a lock that is held; return whether this is the one."""
        return self._by.setdefault("by", lock) is lock

    def was(self, lock: threading.Lock) -> bool:
        """Whether the one came with this lock."""
        return self._by.get("by") is lock

    @property
    def taken(self) -> bool:
        """Whether there is the one, who may be done."""
        return bool(self._by)

    @property
    def held(self) -> bool:
        """Whether the one is at it."""
        return "by" in self._by and self._by["by"].locked()


class Users:
    """Who uses something that only one may use at a time: the first who still holds the lock that it came with.

    It may be used again when that is given back.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._found: list[tuple[threading.Lock, int]] = []

    def _here(self) -> list[tuple[threading.Lock, int]]:
        """Return who came and may still be there; in the child of a fork its one thread alone."""
        if self._process != os.getpid():
            self._found = [user for user in self._found if user[1] == threading.get_ident()]
            self._process = os.getpid()
        return self._found

    def come(self, lock: threading.Lock) -> bool:
        """Come with a lock that is held; return whether this is now the one."""
        found, user = self._here(), (lock, threading.get_ident())
        found.append(user)
        for other in list(found):
            if other is user:
                return True
            if other[0].locked():
                break
            with suppress(ValueError):  # another thread has removed it
                found.remove(other)
        found.remove(user)
        return False

    def any(self) -> bool:
        """Return whether there is one."""
        return any(lock.locked() for lock, _ in list(self._here()))
