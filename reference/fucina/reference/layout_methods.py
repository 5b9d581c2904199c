"""Views and layouts: how a context sees tensors, prepares them, and puts one in the place of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from fucina.reference.arguments import scalar_dtype, shown
from fucina.reference.handles import require_scalar_dtype
from fucina.reference.lives import Replaceable
from fucina.reference.ops import movement
from fucina.reference.ops.operands import operands
from fucina.reference.prepared import PreparedTensor
from fucina.reference.substrate import Driven, driven
from fucina.reference.tensor import RawTensor
from fucina.spec.errors import DTypeMismatch, InvalidBounds, InvalidDType
from fucina.spec.runtime import LayoutClass, RhsLifetime
from fucina.spec.types import DType

if TYPE_CHECKING:
    from collections.abc import Callable

    from fucina.spec.memory import ShapeLike

__all__ = ["LayoutMethods"]

Value = TypeVar("Value")


class LayoutMethods(Driven):
    """The methods of a context that compute nothing."""

    # -- looking

    @driven
    def classify(self, x: Any) -> LayoutClass:
        """Return how the elements of a tensor lie.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If x is no tensor.

        Notes
        -----
        Clauses: CONTEXT-CLASSIFY-1
        """
        return movement.classify(x)

    @driven
    def check_rhs_lifetime(self, x: Any, lifetime: RhsLifetime) -> None:
        """Refuse a promise about the bytes of a tensor that cannot hold.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If x is no tensor.
        InvalidDType
            If ``lifetime`` is no RhsLifetime.
        InvalidBounds
            If pooled storage is called ``stable_process``.

        Notes
        -----
        Clauses: CONTEXT-LIFETIME-1, CONTEXT-LIFETIME-2
        """
        (x,) = operands("CONTEXT-LIFETIME-1", x=x)
        if type(lifetime) is not RhsLifetime:
            raise InvalidDType(f"a RhsLifetime is required, got {shown(lifetime)}", clause="CONTEXT-LIFETIME-1")
        if lifetime.is_cacheable() and x.live().is_pooled:
            raise InvalidBounds(
                f"the memory of {x!r} is used again under the same address, so lifetime is never {lifetime.name}",
                clause="CONTEXT-LIFETIME-2",
            )

    # -- views

    @driven
    def broadcast_to(self, x: Any, shape: ShapeLike) -> RawTensor:
        """Return a view that repeats a tensor to a shape.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If x is no tensor.
        InvalidInteger, InvalidShape, Overflow, ShapeMismatch
            If it is no shape, or does not fit.

        Notes
        -----
        Clauses: CONTEXT-VIEW-1, TENSOR-VIEW-4
        """
        (x,) = operands("CONTEXT-VIEW-1", x=x)
        return self._rt.traced(x.broadcast_to(shape))

    @driven
    def broadcast_to_rank(self, rank: int, x: Any, shape: ShapeLike) -> RawTensor:
        """Return a view that repeats a tensor to a shape of a given rank.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If x is no tensor.
        InvalidInteger, InvalidShape, Overflow, ShapeMismatch
            If it is no rank, no shape of that rank, or does not fit.

        Notes
        -----
        Clauses: CONTEXT-VIEW-1, TENSOR-VIEW-4
        """
        (x,) = operands("CONTEXT-VIEW-1", x=x)
        return self._rt.traced(x.broadcast_to_rank(rank, shape))

    @driven
    def narrow_axis(self, x: Any, axis: int, start: int, length: int) -> RawTensor:
        """Return a view of the indices ``start`` to ``start + length - 1`` of one axis.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, InvalidInteger, InvalidDataLength, Overflow, InvalidDType,
        EmptySelection, IndexOutOfBounds, UnsupportedView
            As :func:`fucina.reference.ops.movement.narrow_axis`.

        Notes
        -----
        Clauses: CONTEXT-NARROW-1
        """
        return self._rt.traced(movement.narrow_axis(x, axis, start, length))

    @driven
    def contiguous_for_reshape(self, x: Any) -> RawTensor:
        """Return a tensor that can be reshaped: a view if x is contiguous, else a copy.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, UnsupportedView, OutOfMemory
            As :meth:`materialize`.

        Notes
        -----
        Clauses: CONTEXT-COPY-1
        """
        (x,) = operands("CONTEXT-COPY-1", x=x)
        if x.is_contiguous():
            return self._rt.traced(x.clone_view())
        return movement.materialize(self._rt, x)

    # -- preparing and storing

    @driven
    def prepare_contiguous(self, x: Any) -> PreparedTensor:
        """Return a contiguous tensor: x itself, borrowed, or an owned copy.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch, UnsupportedView, OutOfMemory
            As :meth:`materialize`.

        Notes
        -----
        Clauses: CONTEXT-PREPARE-1
        """
        (x,) = operands("CONTEXT-PREPARE-1", x=x)
        if x.is_contiguous():
            return PreparedTensor(x, owned=False)
        return PreparedTensor(movement.materialize(self._rt, x), owned=True)

    @driven
    def prepare_as(self, compute_dtype: DType, x: Any) -> PreparedTensor:
        """Return a contiguous tensor of a dtype: x itself, borrowed, or an owned copy or conversion.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If x is no tensor.
        InvalidDType
            If one of the two dtypes is a block, or none.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: CONTEXT-PREPARE-1, CONTEXT-CAST-1
        """
        (x,) = operands("CONTEXT-PREPARE-1", x=x)
        target = scalar_dtype(compute_dtype, "CONTEXT-PREPARE-1")
        require_scalar_dtype(x.dtype, "prepare_as", "CONTEXT-PREPARE-1")
        if x.dtype is target and x.is_contiguous():
            return PreparedTensor(x, owned=False)
        return PreparedTensor(movement.cast(self._rt, x, target), owned=True)

    @driven
    def store_as(self, dtype: DType, value: Any) -> RawTensor:
        """Return a value in a dtype: itself, or a conversion that takes its place.

        Parameters
        ----------
        dtype : DType
            A scalar dtype.
        value : RawTensor
            Consumed; on error it stays as it is.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If ``value`` is no tensor.
        InvalidDType
            If one of the two dtypes is a block, or none.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: CONTEXT-STORE-1, CONTEXT-CAST-1
        """
        (found,) = operands("CONTEXT-STORE-1", value=value)
        target = scalar_dtype(dtype, "CONTEXT-STORE-1")
        require_scalar_dtype(found.dtype, "store_as", "CONTEXT-STORE-1")
        if found.dtype is target:
            return found
        stored = movement.cast(self._rt, found, target)
        found.deinit()
        return stored

    @driven
    def replace(self, old: Value, new_value: Value | Callable[[], Value]) -> Value:
        """Release a value and return the one that takes its place.

        Parameters
        ----------
        old : object with ``deinit``
            What is released, once ``new_value`` is there.
        new_value : object of the same type, or callable
            The new value, or what makes it.

        Raises
        ------
        UseAfterDeinit, UseAfterScope
            If ``old`` is a tensor that has ended.
        DTypeMismatch
            If ``old`` has no ``deinit``, or the new value is of another type.

        Notes
        -----
        Clauses: CONTEXT-REPLACE-1
        """
        clause = "CONTEXT-REPLACE-1"
        if isinstance(old, Replaceable):
            old.live(clause)
        elif not callable(getattr(old, "deinit", None)):
            raise DTypeMismatch(f"old must have a deinit, got {shown(old)}", clause=clause)
        held: Any = old
        new: Any = new_value
        if type(new) is not type(old) and callable(new):
            new = new()
        if type(new) is not type(old):
            raise DTypeMismatch(f"new_value must be of the type of old, got {shown(new)}", clause=clause)
        if isinstance(new, Replaceable):
            new.live(clause)
        if new is old:
            return old
        if isinstance(old, Replaceable):
            old.deinit_replaced()
        else:
            held.deinit()
        found: Value = new
        return found
