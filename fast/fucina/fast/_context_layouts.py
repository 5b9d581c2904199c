"""Layouts: how a context sees tensors, prepares them, and puts one in the place of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from fucina.fast._arguments import scalar_dtype
from fucina.fast._context_core import driven, operands
from fucina.fast._context_operations import Operations
from fucina.fast._objects import handles
from fucina.fast._prepared import PreparedTensor
from fucina.fast._shown import shown
from fucina.fast._sizes import axis_of, index, length
from fucina.fast._tensor_views import require_scalar, storage_shape
from fucina.fast.tensor import RawTensor
from fucina.spec.errors import (
    DTypeMismatch,
    EmptySelection,
    IndexOutOfBounds,
    InvalidBounds,
    InvalidDType,
)
from fucina.spec.runtime import LayoutClass, RhsLifetime
from fucina.spec.types import GEOMETRY, DType, DTypeKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from fucina.spec.memory import ShapeLike

__all__ = ["Layouts"]

Value = TypeVar("Value")

_POOLED = 2
"""The kind of a storage that came from a pool, as its ``_state`` has it."""


class Layouts(Operations):
    """The methods of a context that compute nothing."""

    # -- looking

    @driven
    def classify(self, x: Any) -> LayoutClass:
        """Return how the elements of a tensor lie.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            x is no tensor, or has ended.

        Clauses: CONTEXT-CLASSIFY-1
        """
        (found,) = operands("CONTEXT-CLASSIFY-1", x=x)
        sizes, steps = found.shape, found.strides
        if max(sizes) == 1:
            return LayoutClass.scalar
        if found.is_contiguous():
            return LayoutClass.contiguous
        leading = next((axis for axis, step in enumerate(steps) if step), len(steps))
        wanted = 1
        rest = storage_shape(found.dtype, sizes)[leading:]
        for size, step in zip(reversed(rest), reversed(steps[leading:]), strict=True):
            if step != wanted:
                return LayoutClass.arbitrary
            wanted *= size
        return LayoutClass.tail_broadcast if leading else LayoutClass.arbitrary

    @driven
    def check_rhs_lifetime(self, x: Any, lifetime: RhsLifetime) -> None:
        """Refuse a promise about the bytes of a tensor that cannot be kept.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            x is no tensor, or has ended.
        InvalidDType
            ``lifetime`` is no RhsLifetime.
        InvalidBounds
            Pooled storage is called ``stable_process``.

        Clauses: CONTEXT-LIFETIME-1, CONTEXT-LIFETIME-2
        """
        (found,) = operands("CONTEXT-LIFETIME-1", x=x)
        if type(lifetime) is not RhsLifetime:
            raise InvalidDType(f"lifetime must be a RhsLifetime, got {shown(lifetime)}", clause="CONTEXT-LIFETIME-1")
        if lifetime.is_cacheable() and found.buffer._state[0] == _POOLED:
            raise InvalidBounds(
                f"lifetime must be transient where an address is used again, got {lifetime.name} for pooled {found!r}",
                clause="CONTEXT-LIFETIME-2",
            )

    # -- views

    @driven
    def broadcast_to(self, x: Any, shape: ShapeLike) -> RawTensor:
        """Return a view that repeats a tensor to a shape.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            x is no tensor, or has ended.
        InvalidInteger, InvalidShape, Overflow, ShapeMismatch
            No shape, or none that x fits.

        Clauses: CONTEXT-VIEW-1, TENSOR-VIEW-4
        """
        (found,) = operands("CONTEXT-VIEW-1", x=x)
        return self._rt.traced(found.broadcast_to(shape))

    @driven
    def broadcast_to_rank(self, rank: int, x: Any, shape: ShapeLike) -> RawTensor:
        """Return a view that repeats a tensor to a shape of a rank; errors as of :meth:`broadcast_to`.

        Clauses: CONTEXT-VIEW-1, TENSOR-VIEW-4
        """
        (found,) = operands("CONTEXT-VIEW-1", x=x)
        return self._rt.traced(found.broadcast_to_rank(rank, shape))

    def _narrow_axis(self, x: Any, axis: int, start: int, length: int) -> RawTensor:
        """Return what ``narrow_axis`` returns, after every check in its turn; of plain tensors it is the C type's own.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            x is no tensor, or has ended.
        InvalidInteger, IndexOutOfBounds, InvalidDataLength, Overflow
            Axis, start or length is no such number.
        InvalidDType
            Of blocks, the axis along which they lie.
        EmptySelection
            The length is 0.
        IndexOutOfBounds
            The range ends behind the axis.
        UnsupportedView
            Of blocks, a part.

        Clauses: CONTEXT-NARROW-1
        """
        (found,) = operands("CONTEXT-NARROW-1", x=x)
        return self._rt.traced(_narrowed(found, axis, start, length))

    @driven
    def contiguous_for_reshape(self, x: Any) -> RawTensor:
        """Return a tensor that can be reshaped: a view where x is contiguous, else what :meth:`materialize` returns.

        Clauses: CONTEXT-COPY-1
        """
        (found,) = operands("CONTEXT-COPY-1", x=x)
        return self._rt.traced(found.clone_view()) if found.is_contiguous() else self._materialized(found)

    # -- preparing and storing

    @driven
    def prepare_contiguous(self, x: Any) -> PreparedTensor:
        """Return x itself where it is contiguous, borrowed, else a copy; errors as of :meth:`materialize`.

        Clauses: CONTEXT-PREPARE-1
        """
        (found,) = operands("CONTEXT-PREPARE-1", x=x)
        if found.is_contiguous():
            return PreparedTensor(found, owned=False)
        return PreparedTensor(self._materialized(found), owned=True)

    @driven
    def prepare_as(self, compute_dtype: DType, x: Any) -> PreparedTensor:
        """Return x itself where it is contiguous and of the dtype, borrowed, else what :meth:`cast` returns.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            x is no tensor, or has ended.
        InvalidDType
            One of the two dtypes is a block, or none.
        OutOfMemory
            There is no memory.

        Clauses: CONTEXT-PREPARE-1, CONTEXT-CAST-1
        """
        clause = "CONTEXT-PREPARE-1"
        (found,) = operands(clause, x=x)
        target = scalar_dtype(compute_dtype, clause, "compute_dtype")
        require_scalar(found.dtype, "prepare_as", clause)
        if found.dtype is target and found.is_contiguous():
            return PreparedTensor(found, owned=False)
        return PreparedTensor(self._converted(found, target), owned=True)

    @driven
    def store_as(self, dtype: DType, value: Any) -> RawTensor:
        """Return a value in a dtype: itself, or a conversion after which it is deinited.

        Parameters
        ----------
        dtype : DType
            A scalar dtype.
        value : RawTensor
            Consumed; on error it stays.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            ``value`` is no tensor, or has ended.
        InvalidDType
            One of the two dtypes is a block, or none.
        OutOfMemory
            There is no memory.

        Clauses: CONTEXT-STORE-1, CONTEXT-CAST-1
        """
        clause = "CONTEXT-STORE-1"
        (found,) = operands(clause, value=value)
        target = scalar_dtype(dtype, clause)
        require_scalar(found.dtype, "store_as", clause)
        if found.dtype is target:
            return found
        stored = self._converted(found, target)
        found.deinit()
        return stored

    @driven
    def replace(self, old: Value, new_value: Value | Callable[[], Value]) -> Value:
        """Release a value, and return the one that takes its place.

        Parameters
        ----------
        old : object with ``deinit``
            Released once the new value is there.
        new_value : object of the same type, or callable
            The new value, or what makes it.

        Raises
        ------
        UseAfterDeinit, UseAfterScope
            A tensor has ended.
        DTypeMismatch
            ``old`` has no ``deinit``, or the new value is of another type.

        Clauses: CONTEXT-REPLACE-1
        """
        clause = "CONTEXT-REPLACE-1"
        kind, held, replaced = type(old), cast("Any", old), getattr(type(old), "_deinit_replaced", None)
        is_tensor = isinstance(old, handles.Tensor | handles.Facade)
        if is_tensor:
            _require_usable(old)
        elif not callable(getattr(old, "deinit", None)):
            raise DTypeMismatch(f"old must have a deinit, got {shown(old)}", clause=clause)
        new: Any = new_value() if type(new_value) is not kind and callable(new_value) else new_value
        if type(new) is not kind:
            raise DTypeMismatch(f"new_value must be of the type of old, got {shown(new)}", clause=clause)
        if is_tensor:
            _require_usable(new)
        if new is not old:
            held.deinit() if replaced is None else replaced(held)
        found: Value = new
        return found


def _require_usable(tensor: Any) -> None:
    """Refuse a tensor that has ended.

    Clauses: TENSOR-LIFE-1, FACADE-OWN-1
    """
    if isinstance(tensor, handles.Facade):
        tensor._check()
    else:
        tensor.rank()


def _narrowed(x: RawTensor, axis: Any, start: Any, number: Any) -> RawTensor:
    """Return a view of a part of an axis.

    Clauses: CONTEXT-NARROW-1
    """
    clause = "CONTEXT-NARROW-1"
    shape = x.shape
    at = axis_of(axis, len(shape), clause)
    first, count = index("start", start, clause), length("length", number, clause)
    if GEOMETRY[x.dtype].kind is DTypeKind.block_quantized and at == len(shape) - 1:
        raise InvalidDType(f"axis must not be the last of {x.dtype.name}: blocks lie along it", clause=clause)
    if count == 0:
        raise EmptySelection(f"length must be at least 1, got {count}", clause=clause)
    if first + count > shape[at]:
        raise IndexOutOfBounds(
            f"the range must end within [0, {shape[at]}], got [{first}, {first + count})", clause=clause
        )
    steps = x.strides
    return x.view_with_strides_offset((*shape[:at], count, *shape[at + 1 :]), tuple(steps), first * steps[at])
