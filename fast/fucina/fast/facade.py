"""Tensors whose axes have names (chapters ``facade``, ``policy`` and ``autograd``).

``Tensor(*tags, dtype=...)`` is the type of the tensors of a dtype whose axes have these tags.  What they all have is
put together from parts: looking (:mod:`~fucina.fast._facade_looking`), constructors
(:mod:`~fucina.fast._facade_making`, :mod:`~fucina.fast._facade_filling`), gradients
(:mod:`~fucina.fast._facade_gradients`), views (:mod:`~fucina.fast._facade_views`), operations
(:mod:`~fucina.fast._facade_operations`, :mod:`~fucina.fast._facade_reductions`,
:mod:`~fucina.fast._facade_products`, :mod:`~fucina.fast._facade_composed`), and here the operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast import _formulas as formulas
from fucina.fast._arguments import is_whole
from fucina.fast._facade_composed import Composed
from fucina.fast._facade_types import TensorType, kind_of, root
from fucina.fast._objects import handles, install
from fucina.spec.errors import DTypeMismatch
from fucina.spec.types import DType

__all__ = ["Tensor"]


def _is_number(value: object) -> bool:
    return issubclass(type(value), float | np.float16 | np.float32) or is_whole(value)


def _negative(number: Any) -> Any:
    """Return the negative of a number; an integer of numpy's might have none of its own type, and wrap."""
    return -int(number) if is_whole(number) else -number


class Parts(Composed):
    """The operators of a tensor, on the context that made it.

    Clauses: FACADE-PYTHON-1
    """

    __slots__ = ()

    def _shares_context(self, other: Any) -> bool:
        """Whether another object is a tensor of the same context; one that has ended says so itself."""
        if not issubclass(type(other), handles.Facade):
            return False
        self._check()
        other._check()
        return self._context is not None and self._context is other._context

    def _has_number(self, value: object) -> bool:
        if not _is_number(value):
            return False
        self._check()
        return self._context is not None

    def __add__(self, other: Any) -> Tensor:
        if self._shares_context(other):
            return self.add(self._context, other)
        return self.add_scalar(self._context, other) if self._has_number(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Tensor:
        if self._shares_context(other):
            return self.sub(self._context, other)
        return self.add_scalar(self._context, _negative(other)) if self._has_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Tensor:
        if self._shares_context(other):
            return self.mul(self._context, other)
        return self.scale(self._context, other) if self._has_number(other) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Tensor:
        return self.div(self._context, other) if self._shares_context(other) else NotImplemented

    def __matmul__(self, other: Any) -> Tensor:
        return self.dot(self._context, other) if self._shares_context(other) else NotImplemented

    def __neg__(self) -> Tensor:
        if not self._has_number(1):
            raise DTypeMismatch(
                f"an operator needs a tensor that a context made, got {self!r}", clause="FACADE-PYTHON-1"
            )
        return self.scale(self._context, -1.0)


if TYPE_CHECKING:

    class Tensor(Parts, metaclass=TensorType):
        """A tensor whose axes have tags; ``Tensor(*tags, dtype=...)`` are the types.

        Clauses: FACADE-TYPE-1
        """

        # what a checker sees of the metaclass's call: it looks at __new__ only, and takes a type from it
        def __new__(cls, *spec: str | int, dtype: DType = ...) -> type[Tensor]:  # type: ignore[misc]
            """Return the type."""

else:
    _text = "A tensor whose axes have tags; ``Tensor(*tags, dtype=...)`` are the types.\n\nClauses: FACADE-TYPE-1"
    _members = {"__slots__": (), "__module__": __name__, "__doc__": _text}
    Tensor = TensorType("Tensor", (handles.Facade,), _members, made=True)
    install(Tensor, Parts)
    root.append(Tensor)

handles.facade_knows(
    (
        formulas.ADD,
        formulas.SUB,
        formulas.MUL,
        formulas.DIV,
        formulas.SCALE,
        formulas.SUM,
        formulas.DOT,
        formulas.ADD_SCALAR,
        formulas.TO,
        formulas.NARROW,
    ),
    kind_of((), 0, DType.f32),
)
