"""The team parts of a context: made on first use, taken down with the context."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from fucina.reference.thread_mod import OneShotWorker, Pool

if TYPE_CHECKING:
    from fucina.reference.backend import Backend

__all__ = ["TeamParts"]


class TeamParts:
    """The team and the one-shot worker of a context, made once each.

    Parameters
    ----------
    backend : Backend
        What is told of the team.

    Notes
    -----
    Clauses: CONTEXT-TEAM-1
    """

    def __init__(self, backend: Backend) -> None:
        self._lock = threading.Lock()
        self._backend = backend
        self.pool: Pool | None = None
        self.worker: OneShotWorker | None = None

    def require_pool(self) -> Pool:
        """Return the team; make it on the first call.

        Notes
        -----
        Clauses: CONTEXT-TEAM-1
        """
        with self._lock:
            if self.pool is None:
                self.pool = Pool()
                self._backend.set_work_pool(self.pool)
            return self.pool

    def require_worker(self) -> OneShotWorker:
        """Return the one-shot worker; make it on the first call.

        Notes
        -----
        Clauses: CONTEXT-TEAM-1
        """
        with self._lock:
            if self.worker is None:
                self.worker = OneShotWorker()
            return self.worker

    def end(self) -> None:
        """Take both down: the worker, the backend's knowledge of the team, the team.

        Notes
        -----
        Clauses: CONTEXT-LIFE-2
        """
        with self._lock:
            worker, self.worker = self.worker, None
            pool, self.pool = self.pool, None
        try:
            if worker is not None:
                worker.deinit()
        finally:  # also when the task raised what is no Exception
            self._backend.set_work_pool(None)
            if pool is not None:
                pool.deinit()
