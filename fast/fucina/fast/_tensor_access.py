"""The elements of raw tensors: as arrays, copied, and changed in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.fast._element_buffers import carrier, destination, factor_of, pattern_of, value_of
from fucina.fast._objects import handles
from fucina.fast._shown import shown
from fucina.fast._sizes import index, length
from fucina.fast._tensor_views import Views, require_scalar, storage_shape
from fucina.fast.shape import require_same_shape
from fucina.spec.errors import (
    DTypeMismatch,
    IndexOutOfBounds,
    InvalidDataLength,
    InvalidDType,
    InvalidShape,
    OverlappingMemory,
    ReadOnlyStorage,
    UnsupportedView,
)
from fucina.spec.types import DType

if TYPE_CHECKING:
    from typing import Self

    from fucina.spec.interface import AnyArray, ScalarValue

__all__ = ["Access"]

_SCALED = frozenset({DType.f16, DType.bf16, DType.f32, DType.f64})
_ADDED = _SCALED | {DType.u8, DType.u16, DType.i8, DType.i16, DType.i32, DType.i64}


class Access(Views):
    """What a raw tensor does with its elements."""

    __slots__ = ()

    # -- checks

    def _require_writable(self) -> None:
        """Refuse to write to a read-only storage.

        Clauses: STORAGE-READ-1
        """
        if self.buffer.read_only:
            raise ReadOnlyStorage(f"the storage of {self!r} is read-only", clause="STORAGE-READ-1")

    def _require_contiguous(self, what: str, clause: str) -> None:
        """Refuse a tensor that is not contiguous.

        Clauses: TENSOR-DATA-1
        """
        if not self.is_contiguous():
            raise UnsupportedView(
                f"{what} needs a contiguous tensor, got {self!r} (clone makes one of it)", clause=clause
            )

    def _span(self) -> tuple[int, int]:
        """Return the addresses between which the elements lie."""
        shape, size = storage_shape(self.dtype, self.shape), self.Element.itemsize
        last = self.offset + sum((n - 1) * step for n, step in zip(shape, self.strides, strict=True))
        start = self.buffer.address
        return start + self.offset * size, start + (last + 1) * size

    # -- arrays; C comes here with what has none

    def _data(self) -> AnyArray:
        """Say why there is no array of the elements to write to.

        Raises
        ------
        ReadOnlyStorage
            The storage is read-only.
        UnsupportedView
            Not contiguous.

        Clauses: TENSOR-DATA-1
        """
        self._require_writable()
        self._require_contiguous("data", "TENSOR-DATA-1")
        return self.data()

    def _data_const(self) -> AnyArray:
        """Say why there is no array of the elements to read.

        Raises
        ------
        UnsupportedView
            Not contiguous.

        Clauses: TENSOR-DATA-1
        """
        self._require_contiguous("data_const", "TENSOR-DATA-1")
        return self.data_const()

    def item(self) -> ScalarValue:
        """Return the only element, in scalar form.

        Raises
        ------
        InvalidDType
            Of blocks.
        InvalidShape
            More elements.
        UnsupportedView
            Not contiguous.

        Clauses: TENSOR-DATA-2
        """
        self.rank()
        require_scalar(self.dtype, "item", "TENSOR-DATA-2")
        if self.len() != 1:
            raise InvalidShape(f"item needs a single element, got {self!r}", clause="TENSOR-DATA-2")
        self._require_contiguous("item", "TENSOR-DATA-2")
        found = np.ndarray((1,), carrier(self.dtype), self._pin(self.offset, 1, False))
        return value_of(self.dtype, int(found[0]))

    # -- copies

    def copy_to(self, dst: Any) -> None:
        """Write all elements, in row-major order, to a buffer of exactly their number.

        Parameters
        ----------
        dst : buffer of the dtype in storage form
            Writable, aligned, C-contiguous, of any shape.

        Raises
        ------
        DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength
            ``dst`` cannot take them.
        UnsupportedView
            Of blocks, and not contiguous.
        OverlappingMemory
            ``dst`` shares memory with the tensor.

        Clauses: TENSOR-COPY-1
        """
        self.rank()
        view, address, count = destination("dst", dst, self.dtype, "TENSOR-COPY-1")
        if count != self.storage_len():
            raise InvalidDataLength(f"dst must hold {self.storage_len()} elements, got {count}", clause="TENSOR-COPY-1")
        self._require_movable()
        self._refuse_overlap(address, view.nbytes, "TENSOR-COPY-1")
        self._copy(address, 0, count)

    def copy_range_to(self, dst: Any, linear_start: int, count: int) -> None:
        """Write elements ``linear_start`` to ``linear_start + count - 1`` of the row-major order to a buffer.

        Raises
        ------
        InvalidDType
            Of blocks.
        InvalidInteger, IndexOutOfBounds, InvalidDataLength, Overflow
            The numbers are no range.
        DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength
            ``dst`` does not hold exactly ``count`` elements.
        IndexOutOfBounds
            The range ends behind the last element.
        OverlappingMemory
            ``dst`` shares memory with the tensor.

        Clauses: TENSOR-COPY-2
        """
        clause = "TENSOR-COPY-2"
        self.rank()
        require_scalar(self.dtype, "copy_range_to", clause)
        start, number = index("linear_start", linear_start, clause), length("count", count, clause)
        view, address, held = destination("dst", dst, self.dtype, clause)
        if held != number:
            raise InvalidDataLength(f"dst must hold {number} elements, got {held}", clause=clause)
        if start + number > self.len():
            raise IndexOutOfBounds(
                f"the range must end within [0, {self.len()}], got [{start}, {start + number})", clause=clause
            )
        self._refuse_overlap(address, view.nbytes, clause)
        self._copy(address, start, number)

    def clone(self) -> Self:
        """Return a contiguous copy with a storage of its own.

        Raises
        ------
        UnsupportedView
            Of blocks, and not contiguous.
        OutOfMemory
            There is no memory.

        Clauses: TENSOR-COPY-3
        """
        self.rank()
        self._require_movable()
        storage = type(self.buffer)
        made = storage._owned(self.storage_len())
        twin: Self = handles.tensor_over(made, tuple(self.shape))
        self._copy(made.address, 0, self.storage_len())
        return twin

    def _require_movable(self) -> None:
        """Refuse to pick blocks one by one.

        Clauses: TENSOR-BLOCK-2
        """
        if self._is_block():
            self._require_contiguous("a copy of blocks", "TENSOR-BLOCK-2")

    def _refuse_overlap(self, address: int, size: int, clause: str) -> None:
        first, end = self._span()
        if size and address < end and first < address + size:
            raise OverlappingMemory(
                f"dst must not share memory with the tensor, got {min(end, address + size) - max(first, address)} "
                f"bytes in common",
                clause=clause,
            )

    # -- in place

    def add_in_place(self, other: Any) -> None:
        """Add another tensor of the same dtype and shape.

        Parameters
        ----------
        other : RawTensor
            Contiguous, apart from this one in memory, or exactly this one's elements.

        Raises
        ------
        DTypeMismatch, InvalidDType, ShapeMismatch, ReadOnlyStorage, UnsupportedView, OverlappingMemory
            In this order.

        Clauses: TENSOR-ADD-1, STORAGE-GEN-1
        """
        clause = "TENSOR-ADD-1"
        self.rank()
        if not isinstance(other, handles.Tensor) or type(other) is not type(self):
            raise DTypeMismatch(f"other must be a TensorOf({self.dtype.name}), got {shown(other)}", clause=clause)
        other.rank()
        if self.dtype not in _ADDED:
            raise InvalidDType(f"add_in_place takes floats and integers, got {self.dtype!r}", clause=clause)
        require_same_shape(self.shape, other.shape)
        self._require_writable()
        self._require_contiguous("add_in_place", clause)
        other._require_contiguous("add_in_place", clause)
        mine, its = self._span(), other._span()
        if mine != its and mine[0] < its[1] and its[0] < mine[1]:
            raise OverlappingMemory(
                f"other must be apart from the tensor or the same, got {min(mine[1], its[1]) - max(mine[0], its[0])} "
                f"bytes in common",
                clause=clause,
            )
        self._add(other)

    def scale_in_place(self, scalar_value: ScalarValue) -> None:
        """Multiply by a number.

        Parameters
        ----------
        scalar_value : float or int
            Rounded to f32; for f64 to f64.

        Raises
        ------
        InvalidDType
            Not f16, bf16, f32 or f64.
        DTypeMismatch
            No real number.
        ReadOnlyStorage, UnsupportedView
            The tensor cannot be written.

        Clauses: TENSOR-SCALE-1, STORAGE-GEN-1
        """
        self.rank()
        if self.dtype not in _SCALED:
            raise InvalidDType(
                f"scale_in_place takes f16, bf16, f32 and f64, got {self.dtype!r}", clause="TENSOR-SCALE-1"
            )
        factor = factor_of(scalar_value)
        self._require_writable()
        self._require_contiguous("scale_in_place", "TENSOR-SCALE-1")
        self._scale(factor)

    def fill(self, value: ScalarValue) -> None:
        """Set every element.

        Parameters
        ----------
        value : bool, int or float
            An element in scalar form.

        Raises
        ------
        InvalidDType
            Of blocks.
        DTypeMismatch, Overflow
            No element.
        ReadOnlyStorage, UnsupportedView
            The tensor cannot be written.

        Clauses: TENSOR-FILL-1, STORAGE-GEN-1
        """
        self.rank()
        require_scalar(self.dtype, "fill", "TENSOR-FILL-1")
        bits = pattern_of(self.dtype, value)
        self._require_writable()
        self._require_contiguous("fill", "TENSOR-FILL-1")
        self.buffer._open()
        self._patterns().fill(bits)

    def _patterns(self) -> AnyArray:
        """Return the elements of a contiguous tensor as the carrier, to be written; counts as nothing."""
        count = self.storage_len()
        return np.ndarray((count,), carrier(self.dtype), self._pin(self.offset, count, True))
