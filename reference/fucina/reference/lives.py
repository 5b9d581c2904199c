"""Lives: where a tensor is between its making and its end, and what ``replace`` asks of what it replaces."""

from __future__ import annotations

import enum

__all__ = ["Life", "Replaceable"]


class Life(enum.Enum):
    """Where a handle is in its life."""

    OWNED = "owned"
    SCOPED = "scope-owned"
    BORROWED = "borrowed"
    REPLACED = "replaced"
    ENDED = "deinited"
    CLOSED = "closed with its scope"


class Replaceable:
    """What has an end that can be looked for, and that ``replace`` can bring about.

    Notes
    -----
    Clauses: CONTEXT-REPLACE-1
    """

    def live(self, clause: str) -> object:
        """Raise unless it has not ended.

        Raises
        ------
        UseAfterDeinit, UseAfterScope
            If it has.
        """
        raise NotImplementedError

    def deinit_replaced(self) -> None:
        """End it, and forgive a second ``deinit``; of what a scope owns, nothing."""
        raise NotImplementedError
