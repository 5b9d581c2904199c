"""The switch of gradients as methods of a context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from fucina.reference.substrate import Driven, driven

__all__ = ["GradientMethods"]


class GradientMethods(Driven):
    """Whether operations track gradients."""

    @driven
    def grad_enabled(self) -> bool:
        """Return whether operations on tensors that track gradients track them too.

        Notes
        -----
        Clauses: AUTOGRAD-NOGRAD-1
        """
        return self._rt.without_gradients == 0

    def no_grad(self) -> AbstractContextManager[None]:
        """Return a ``with`` block in which all results are constants.

        Notes
        -----
        Clauses: AUTOGRAD-NOGRAD-1
        """
        with self._rt.driving():
            return self._without_gradients()

    @contextmanager
    def _without_gradients(self) -> Iterator[None]:
        rt = self._rt
        with rt.driving():
            rt.without_gradients += 1
        try:
            yield
        finally:
            # the block may end after its context, which nobody drives any more
            if rt.closed:
                rt.without_gradients -= 1
            else:
                with rt.driving():
                    rt.without_gradients -= 1
