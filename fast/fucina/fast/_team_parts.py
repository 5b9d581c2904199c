"""The team of a context and its one-shot worker: made when first asked for, ended with the context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.fast.thread_mod import OneShotWorker, Pool

if TYPE_CHECKING:
    from fucina.fast.backend import Backend

__all__ = ["TeamParts"]


class TeamParts:
    """What a context has of threads; whoever drives the context is the only one here.

    Clauses: CONTEXT-TEAM-1
    """

    __slots__ = ("_backend", "pool", "worker")

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.pool: Any = None
        self.worker: Any = None

    def require_pool(self) -> Any:
        """Return the team; the first call makes it.

        Clauses: CONTEXT-TEAM-1
        """
        if self.pool is None:
            self.pool = Pool()
            self._backend.set_work_pool(self.pool)
        return self.pool

    def require_worker(self) -> Any:
        """Return the worker; the first call makes it.

        Clauses: CONTEXT-TEAM-1
        """
        if self.worker is None:
            self.worker = OneShotWorker()
        return self.worker

    def end(self) -> None:
        """End the worker; take the team from the backend and end it.

        Clauses: CONTEXT-LIFE-2
        """
        worker, self.worker = self.worker, None
        pool, self.pool = self.pool, None
        try:
            if worker is not None:
                worker.deinit()
        finally:  # also when the task raised what is no Exception
            self._backend.set_work_pool(None)
            if pool is not None:
                pool.deinit()
