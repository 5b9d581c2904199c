"""The backend: what runs the kernels of a context; ``internal.backend_mod``."""

from __future__ import annotations

from typing import Any

__all__ = ["Backend"]


class Backend:
    """Runs kernels, on a team of workers if it was given one.

    Notes
    -----
    Clauses: CONTEXT-TEAM-1, CONTEXT-RT-1
    """

    def __init__(self) -> None:
        self._work_pool: Any = None

    @property
    def work_pool(self) -> Any:
        """The team, if there is one.

        Notes
        -----
        Clauses: CONTEXT-TEAM-1
        """
        return self._work_pool

    def set_work_pool(self, pool: Any) -> None:
        """Take a team, or None, for what runs from now on.

        Notes
        -----
        Clauses: CONTEXT-TEAM-1
        """
        self._work_pool = pool
