"""Tensors: all parts of a tensor together, with Python's operators and copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fucina.reference.arguments import is_a, is_whole
from fucina.reference.facade.axes import Axes
from fucina.reference.facade.composed import Composed
from fucina.reference.facade.conversions import Conversions
from fucina.reference.facade.gradients import Gradients
from fucina.reference.facade.kinds import Kind
from fucina.reference.facade.looking import Looking
from fucina.reference.facade.order import Order
from fucina.reference.facade.products import Products
from fucina.reference.facade.reductions import Reductions
from fucina.reference.facade.results import raw_shape
from fucina.reference.facade.seeded import Seeded
from fucina.reference.facade.taking import Taking
from fucina.reference.geometry import storage
from fucina.reference.runtime import ExecContext
from fucina.reference.tensor import TensorOf
from fucina.spec.errors import DTypeMismatch, NotCopyable

if TYPE_CHECKING:
    from fucina.reference.facade.kinds import Tags
    from fucina.spec.types import DType

__all__ = ["Tensor"]


def is_number(value: object) -> bool:
    """Return whether an operand of an operator is a number; a bool is none."""
    return is_whole(value) or issubclass(type(value), float | np.floating)


def negative(number: Any) -> Any:
    """Return the negative of a number; an integer of numpy's might have none of its own type, and wrap."""
    return -int(number) if is_whole(number) else -number


class Tensor(Seeded, Looking, Axes, Conversions, Taking, Reductions, Order, Products, Composed, Gradients):
    """Tensors whose axes have tags; ``Tensor(*tags, dtype=...)`` and ``Tensor(rank, dtype=...)`` are its types.

    Notes
    -----
    Clauses: FACADE-TYPE-1
    """

    leaves: ClassVar[dict[tuple[Tags, DType], Kind]] = {}

    if TYPE_CHECKING:
        # what a checker sees of the metaclass's call: it looks at __new__ only, and takes a type from it
        def __new__(cls, *spec: str | int, dtype: DType = ...) -> type[Tensor]:  # type: ignore[misc]
            """Return the type."""

    # -- operators

    def _maker(self) -> ExecContext:
        """Return the context that operators use.

        Notes
        -----
        Clauses: FACADE-PYTHON-1
        """
        if self.context is None:
            raise DTypeMismatch(
                f"no context made {self!r}, so an operator has none to use; the method takes one",
                clause="FACADE-PYTHON-1",
            )
        return self.context

    def _common_maker(self, other: Tensor) -> ExecContext:
        found = self._maker()
        if other._maker() is not found:
            raise DTypeMismatch(
                f"{self!r} and {other!r} are of two contexts, which an operator does not join; the method takes both",
                clause="FACADE-PYTHON-1",
            )
        return found

    def __add__(self, other: Any) -> Tensor:
        if is_a(other, Tensor):
            return self.add(self._common_maker(other), other)
        return self.add_scalar(self._maker(), other) if is_number(other) else NotImplemented

    def __radd__(self, other: Any) -> Tensor:
        return self.add_scalar(self._maker(), other) if is_number(other) else NotImplemented

    def __sub__(self, other: Any) -> Tensor:
        if is_a(other, Tensor):
            return self.sub(self._common_maker(other), other)
        return self.add_scalar(self._maker(), negative(other)) if is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Tensor:
        if is_a(other, Tensor):
            return self.mul(self._common_maker(other), other)
        return self.scale(self._maker(), other) if is_number(other) else NotImplemented

    def __rmul__(self, other: Any) -> Tensor:
        return self.scale(self._maker(), other) if is_number(other) else NotImplemented

    def __truediv__(self, other: Any) -> Tensor:
        return self.div(self._common_maker(other), other) if is_a(other, Tensor) else NotImplemented

    def __matmul__(self, other: Any) -> Tensor:
        return self.dot(self._common_maker(other), other) if is_a(other, Tensor) else NotImplemented

    def __neg__(self) -> Tensor:
        return self.scale(self._maker(), -1)

    # -- copies

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        raw = self.live()
        if self.node is not None:
            raise NotCopyable(f"a tensor that tracks gradients cannot be copied: {self!r}", clause="FACADE-COPY-1")
        return _copied, (type(self), self.shape, raw.elements().tobytes())


def _copied(kind: Any, shape: tuple[int, ...], data: bytes) -> Any:
    """Return a constant with storage of its own.

    Notes
    -----
    Clauses: FACADE-COPY-1
    """
    values = np.frombuffer(data, storage(kind.dtype))
    raw = TensorOf(kind.dtype).from_storage_slice(raw_shape(shape), values)
    return kind.holding(None, raw)
