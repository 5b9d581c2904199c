"""Closing an owner of storage when something has already gone wrong: one exception leaves, and it says both."""

from __future__ import annotations

from typing import Protocol

from fucina.spec.errors import LeakedBuffers

__all__ = ["deinit_noting"]


class _Owner(Protocol):
    def deinit(self) -> None: ...


def deinit_noting(owner: _Owner, error: BaseException | None) -> None:
    """Close a pool or a context; what leaked is raised, or becomes a note on the exception that is under way.

    Clauses: POOL-LEAK-1
    """
    try:
        owner.deinit()
    except LeakedBuffers as leaked:
        if error is None:
            raise
        error.add_note(str(leaked))
