"""The backend: what runs the kernels of a context; ``internal.backend_mod``."""

from __future__ import annotations

from typing import Any

__all__ = ["Backend"]


class Backend:
    """Runs kernels.  Large ones share the team of the process; the team it was given is for Python tasks.

    Clauses: CONTEXT-TEAM-1, CONTEXT-RT-1
    """

    __slots__ = ("_work_pool",)

    def __init__(self) -> None:
        self._work_pool: Any = None

    @property
    def work_pool(self) -> Any:
        """The team that it was given, or None.

        Clauses: CONTEXT-TEAM-1
        """
        return self._work_pool

    def set_work_pool(self, pool: Any) -> None:
        """Take a team, or None.

        Clauses: CONTEXT-TEAM-1
        """
        self._work_pool = pool
