"""Geometry and views of raw tensors: the complete checks behind what ``_handles`` does for plain arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fucina.fast._objects import handles
from fucina.fast._shown import tuple_shown
from fucina.fast._sizes import count_of, entries, index, rank_of, row_major
from fucina.fast.shape import broadcast_strides
from fucina.spec.errors import InvalidDataLength, InvalidDType, InvalidShape, Overflow, UnsupportedView
from fucina.spec.types import GEOMETRY, DType, DTypeKind

if TYPE_CHECKING:
    from typing import Self

    from fucina.fast.storage import Storage

__all__ = ["Views", "require_scalar", "storage_shape"]


def storage_shape(dtype: DType, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape in storage elements: of a block dtype the last axis in blocks.

    Clauses: TENSOR-BLOCK-1
    """
    block = GEOMETRY[dtype].block_size
    return tuple(shape) if block is None else (*shape[:-1], shape[-1] // block)


def require_scalar(dtype: DType, what: str, clause: str) -> None:
    """Refuse what needs single elements for a dtype of blocks.

    Clauses: TENSOR-BLOCK-2
    """
    if GEOMETRY[dtype].kind is not DTypeKind.scalar:
        raise InvalidDType(f"{what} takes scalar dtypes, got {dtype!r}", clause=clause)


class Views(handles.Tensor):
    """The geometry and the views of a raw tensor.

    Clauses: TENSOR-VIEW-1
    """

    __slots__ = ()

    dtype: ClassVar[DType]
    Element: ClassVar[np.dtype[Any]]

    if TYPE_CHECKING:

        @property
        def buffer(self) -> Storage: ...

    # -- geometry

    def _len(self) -> int:
        """Return the number of logical elements, or say that it is too large."""
        return count_of("the view's shape", self.shape, "TENSOR-GEOM-1")

    def _matrix(self) -> tuple[int, int]:
        shape = self.shape
        if len(shape) != 2:
            raise InvalidShape(f"rows and cols need rank 2, got shape {tuple_shown(shape)}", clause="TENSOR-GEOM-1")
        return shape[0], shape[1]

    def rows(self) -> int:
        """Return the first size of a tensor of rank 2.

        Raises
        ------
        InvalidShape
            Another rank.

        Clauses: TENSOR-GEOM-1
        """
        return self._matrix()[0]

    def cols(self) -> int:
        """Return the second size of a tensor of rank 2.

        Raises
        ------
        InvalidShape
            Another rank.

        Clauses: TENSOR-GEOM-1
        """
        return self._matrix()[1]

    def is_scalar(self) -> bool:
        """Return whether there is exactly one element.

        Clauses: TENSOR-GEOM-1
        """
        return self.len() == 1

    # -- views; C comes here with arguments that are not plain

    def _is_block(self) -> bool:
        return GEOMETRY[self.dtype].kind is DTypeKind.block_quantized

    def _identity(self, same: bool, given: str) -> Self:
        """Return the same view, if that is what was asked for.

        Clauses: TENSOR-BLOCK-2
        """
        if not same:
            raise UnsupportedView(
                f"a tensor of {self.dtype.name} can only be seen as it is, {self!r}; got {given}",
                clause="TENSOR-BLOCK-2",
            )
        return self.clone_view()

    def _reshape(self, new_shape: Any) -> Self:
        """Return a contiguous tensor in another shape.

        Raises
        ------
        UnsupportedView
            Not contiguous; of blocks, and another shape.
        InvalidInteger, InvalidShape, Overflow
            No shape; another number of elements.

        Clauses: TENSOR-VIEW-2, TENSOR-BLOCK-2
        """
        shape = entries("new_shape", new_shape, "TENSOR-VIEW-2")
        if self._is_block():
            return self._identity(shape == self.shape, f"shape {tuple_shown(shape)}")
        if not self.is_contiguous():
            raise UnsupportedView(f"reshape needs a contiguous tensor, got {self!r}", clause="TENSOR-VIEW-2")
        if count_of("new_shape", shape, "TENSOR-VIEW-2") != self.len():
            raise InvalidShape(
                f"new_shape must have {self.len()} elements, got {tuple_shown(shape)}", clause="TENSOR-VIEW-2"
            )
        return self._view(shape, row_major(shape), self.offset)

    def _view_with_strides(self, shape: Any, strides: Any) -> Self:
        """Return a view from the tensor's first element on.

        Clauses: TENSOR-VIEW-3, TENSOR-BLOCK-2
        """
        return self._view_with_strides_offset(shape, strides, 0)

    def _view_with_strides_offset(self, shape: Any, strides: Any, offset_delta: int) -> Self:
        """Return a view from ``offset_delta`` storage elements behind the tensor's first on.

        Raises
        ------
        InvalidInteger, InvalidShape, Overflow, IndexOutOfBounds
            The arguments are no view.
        InvalidDataLength
            It reaches behind the storage.
        UnsupportedView
            Of blocks, and not the tensor itself.

        Clauses: TENSOR-VIEW-3, TENSOR-BLOCK-2
        """
        clause = "TENSOR-VIEW-3"
        dims, steps = entries("shape", shape, clause), entries("strides", strides, clause)
        delta = index("offset_delta", offset_delta, clause)
        given = f"shape {tuple_shown(dims)}, strides {tuple_shown(steps)}, offset_delta {delta}"
        if self._is_block():
            return self._identity(dims == self.shape and steps == self.strides and delta == 0, given)
        count_of("shape", dims, clause)
        if len(steps) != len(dims):
            raise InvalidShape(f"strides must have {len(dims)} entries, got {tuple_shown(steps)}", clause=clause)
        last = self.offset + delta
        for size, step in zip(dims, steps, strict=True):
            last += (size - 1) * step
            if last >> 64:
                break
        if last >> 64:
            raise Overflow(f"the largest index must be below 2^64, got {given}", clause=clause)
        if last >= (capacity := self.buffer.capacity):
            raise InvalidDataLength(
                f"the largest index must be below the capacity {capacity}, got {last} from {given}", clause=clause
            )
        return self._view(dims, steps, self.offset + delta)

    def _broadcast_to(self, target_shape: Any) -> Self:
        """Return a view that repeats the tensor to a shape.

        Raises
        ------
        InvalidInteger, InvalidShape, Overflow
            No shape.
        ShapeMismatch
            The tensor does not fit it.

        Clauses: TENSOR-VIEW-4
        """
        target = entries("target_shape", target_shape, "TENSOR-VIEW-4")
        count_of("target_shape", target, "TENSOR-VIEW-4")
        strides = broadcast_strides(self.shape, self.strides, target, "TENSOR-VIEW-4")
        return self._view(target, strides, self.offset)

    def broadcast_to_rank(self, target_rank: int, target_shape: Any) -> Self:
        """Return a view that repeats the tensor to a shape of a given rank.

        Raises
        ------
        InvalidShape
            A shape of another rank.

        Clauses: TENSOR-VIEW-4
        """
        self.rank()
        rank = rank_of(target_rank, "TENSOR-VIEW-4")
        target = entries("target_shape", target_shape, "TENSOR-VIEW-4")
        if len(target) != rank:
            raise InvalidShape(
                f"target_shape must have {rank} entries, got {tuple_shown(target)}", clause="TENSOR-VIEW-4"
            )
        return self.broadcast_to(target)
