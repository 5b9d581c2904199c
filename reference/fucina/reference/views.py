"""Views: other ways to see the elements of a tensor, with a reference of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.reference.handles import Handle
from fucina.reference.layouts import broadcast_strides, row_major, strides_argument
from fucina.reference.sizes import counted, entries_of, index_argument, rank_argument
from fucina.spec.errors import InvalidDataLength, InvalidShape, Overflow, UnsupportedView
from fucina.spec.types import GEOMETRY, DTypeKind

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Views"]


class Views(Handle):
    """The views of a raw tensor.

    Notes
    -----
    Clauses: TENSOR-VIEW-1
    """

    def _view(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Self:
        """Return a view that has been checked.

        Notes
        -----
        Clauses: TENSOR-VIEW-1
        """
        storage = self.live()
        storage.retain()
        return type(self).over(storage, shape, strides, offset)

    def clone_view(self) -> Self:
        """Return the same view once more.

        Notes
        -----
        Clauses: TENSOR-VIEW-1
        """
        return self._view(self.shape, self.strides, self.offset)

    def reshape(self, new_shape: Any) -> Self:
        """Return a contiguous tensor in another shape.

        Raises
        ------
        UnsupportedView
            If it is not contiguous, or of blocks and the shape is another one.
        InvalidShape, Overflow
            If it is no shape, or of another number of elements.

        Notes
        -----
        Clauses: TENSOR-VIEW-2, TENSOR-BLOCK-2
        """
        self.live()
        shape = entries_of("new_shape", new_shape, "TENSOR-VIEW-2")
        if self._is_block():
            self._require_identity(shape == self.shape, f"shape {shape}")
            return self.clone_view()
        if not self.is_contiguous():
            raise UnsupportedView(f"reshape needs a contiguous tensor, got {self!r}", clause="TENSOR-VIEW-2")
        if counted("new_shape", shape, "TENSOR-VIEW-2") != self.len():
            raise InvalidShape(f"{self.len()} elements do not fill {shape}", clause="TENSOR-VIEW-2")
        return self._view(shape, row_major(shape), self.offset)

    def view_with_strides(self, shape: Any, strides: Any) -> Self:
        """Return a view from the tensor's first element on.

        Notes
        -----
        Clauses: TENSOR-VIEW-3, TENSOR-BLOCK-2
        """
        return self.view_with_strides_offset(shape, strides, 0)

    def view_with_strides_offset(self, shape: Any, strides: Any, offset_delta: int) -> Self:
        """Return a view from ``offset_delta`` storage elements after the tensor's first on.

        Parameters
        ----------
        shape : sequence of int
            Its sizes.
        strides : sequence of int
            Its steps in storage elements, one for each axis; 0 repeats.
        offset_delta : int
            How far it starts behind the tensor's first element.

        Raises
        ------
        InvalidInteger, InvalidShape, Overflow, IndexOutOfBounds
            If the arguments are no view.
        InvalidDataLength
            If it reaches beyond the storage.
        UnsupportedView
            If it is of blocks and not the tensor itself.

        Notes
        -----
        Clauses: TENSOR-VIEW-3, TENSOR-BLOCK-2
        """
        clause = "TENSOR-VIEW-3"
        storage = self.live()
        dims = entries_of("shape", shape, clause)
        steps = strides_argument(strides, clause)
        delta = index_argument("offset_delta", offset_delta, clause)
        if self._is_block():
            same = dims == self.shape and steps == self.strides and delta == 0
            self._require_identity(same, f"shape {dims}, strides {steps}, offset_delta {delta}")
            return self.clone_view()

        counted("shape", dims, clause)
        if len(steps) != len(dims):
            raise InvalidShape(f"{len(dims)} strides are required for {dims}, got {steps}", clause=clause)
        last = self.offset + delta
        for size, step in zip(dims, steps, strict=True):
            last += (size - 1) * step
            if last >> 64:
                break
        if last >> 64:
            raise Overflow(f"the last index of shape {dims} with strides {steps} must be below 2^64", clause=clause)
        if last >= storage.capacity:
            raise InvalidDataLength(
                f"shape {dims} with strides {steps} from {self.offset + delta} reaches index {last} of "
                f"{storage.capacity} elements",
                clause=clause,
            )
        return self._view(dims, steps, self.offset + delta)

    def broadcast_to(self, target_shape: Any) -> Self:
        """Return a view that repeats the tensor to a shape.

        Raises
        ------
        InvalidInteger, InvalidShape, Overflow
            If it is no shape.
        ShapeMismatch
            If the tensor does not fit it.

        Notes
        -----
        Clauses: TENSOR-VIEW-4
        """
        self.live()
        target = entries_of("target_shape", target_shape, "TENSOR-VIEW-4")
        counted("target_shape", target, "TENSOR-VIEW-4")
        strides = broadcast_strides(self.shape, self.strides, target, "TENSOR-VIEW-4")
        return self._view(target, strides, self.offset)

    def broadcast_to_rank(self, target_rank: int, target_shape: Any) -> Self:
        """Return a view that repeats the tensor to a shape of a given rank.

        Raises
        ------
        InvalidShape
            If the shape has another rank.

        Notes
        -----
        Clauses: TENSOR-VIEW-4
        """
        self.live()
        rank = rank_argument(target_rank, "TENSOR-VIEW-4")
        target = entries_of("target_shape", target_shape, "TENSOR-VIEW-4")
        if len(target) != rank:
            raise InvalidShape(f"a shape of rank {rank} is required, got {target}", clause="TENSOR-VIEW-4")
        return self.broadcast_to(target)

    def _is_block(self) -> bool:
        return GEOMETRY[self.dtype].kind is DTypeKind.block_quantized

    def _require_identity(self, same: bool, given: str) -> None:
        if not same:
            raise UnsupportedView(
                f"a tensor of {self.dtype.name} can be seen only as it is, {self!r}, got {given}",
                clause="TENSOR-BLOCK-2",
            )
