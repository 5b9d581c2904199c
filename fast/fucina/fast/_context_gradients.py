"""What a context does for the facade: adopting results, and whether gradients are tracked (chapter ``autograd``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from fucina.fast._context_core import driven
from fucina.fast._context_scopes import Scopes

__all__ = ["Gradients"]


class Gradients(Scopes):
    """What a context knows of gradients."""

    @driven
    def grad_enabled(self) -> bool:
        """Return whether operations track gradients: whether no ``no_grad`` is open.

        Clauses: AUTOGRAD-NOGRAD-1
        """
        return not self._tracking(0)

    @driven
    def no_grad(self) -> AbstractContextManager[None]:
        """Return what makes results constants within a ``with`` block; it nests.

        Clauses: AUTOGRAD-NOGRAD-1
        """
        return self._no_grad()

    @contextmanager
    def _no_grad(self) -> Iterator[None]:
        self._tracking(1)
        try:
            yield
        finally:
            self._tracking(-1)
