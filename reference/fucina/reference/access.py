"""Access: the elements of a tensor as arrays, and copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.allocation import address_of
from fucina.reference.element_buffers import carrier, destination
from fucina.reference.elements import write
from fucina.reference.handles import Handle, require_scalar_dtype
from fucina.reference.layouts import row_major
from fucina.reference.sizes import index_argument, length_argument, storage_shape
from fucina.reference.storage import BufferOf
from fucina.spec.errors import (
    IndexOutOfBounds,
    InvalidDataLength,
    InvalidShape,
    OverlappingMemory,
    ReadOnlyStorage,
    UnsupportedView,
)

if TYPE_CHECKING:
    from typing import Self

    from fucina.spec.interface import AnyArray, ScalarValue

__all__ = ["Access", "byte_layout"]


def byte_layout(handle: Handle) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return shape, strides and offset in bytes of a tensor's storage elements; a single element needs no stride."""
    size = handle.Element.itemsize
    shape = storage_shape(handle.dtype, handle.shape)
    steps = (step * size if n > 1 else 0 for n, step in zip(shape, handle.strides, strict=True))
    return shape, tuple(steps), handle.offset * size


class Access(Handle):
    """What a raw tensor does with its elements."""

    # -- arrays

    def data(self) -> AnyArray:
        """Return the elements of a contiguous tensor as an array to write to.

        Returns
        -------
        array
            One-dimensional, in storage form, over the tensor's own memory.

        Raises
        ------
        ReadOnlyStorage
            If the storage is read-only.
        UnsupportedView
            If it is not contiguous.

        Notes
        -----
        Clauses: TENSOR-DATA-1, STORAGE-GEN-1, STORAGE-PIN-1
        """
        storage = self.live()
        self.require_writable()
        self.require_contiguous("data")
        storage.open_for_writing()
        return self._window(writable=True)

    def data_const(self) -> AnyArray:
        """Return the elements of a contiguous tensor as an array to read.

        Raises
        ------
        UnsupportedView
            If it is not contiguous.

        Notes
        -----
        Clauses: TENSOR-DATA-1, STORAGE-PIN-1
        """
        self.live()
        self.require_contiguous("data_const")
        return self._window(writable=False)

    def data_checked(self) -> AnyArray:
        """Return what :meth:`data` does.

        Notes
        -----
        Clauses: TENSOR-DATA-1
        """
        return self.data()

    def data_const_checked(self) -> AnyArray:
        """Return what :meth:`data_const` does.

        Notes
        -----
        Clauses: TENSOR-DATA-1
        """
        return self.data_const()

    def _window(self, *, writable: bool) -> AnyArray:
        elements = self.live().pinned(writable=writable).view(self.Element)
        return elements[self._offset : self._offset + self.storage_len()]

    def require_writable(self) -> None:
        """Refuse to write to a read-only storage.

        Notes
        -----
        Clauses: STORAGE-READ-1
        """
        if self.live().read_only:
            raise ReadOnlyStorage(f"the storage of {self!r} is read-only", clause="STORAGE-READ-1")

    def require_contiguous(self, what: str, clause: str = "TENSOR-DATA-1") -> None:
        """Refuse a tensor that is not contiguous.

        Notes
        -----
        Clauses: TENSOR-DATA-1
        """
        if not self.is_contiguous():
            raise UnsupportedView(
                f"{what} needs a contiguous tensor, got {self!r}; clone makes one of it", clause=clause
            )

    def elements(self) -> AnyArray:
        """Return the elements as the carrier, in the tensor's shape and strides; no reference, not for callers."""
        shape, strides, offset = byte_layout(self)
        return np.ndarray(shape, carrier(self.dtype), buffer=self.live().memory(), offset=offset, strides=strides)

    def item(self) -> ScalarValue:
        """Return the only element, in scalar form.

        Raises
        ------
        InvalidDType
            If it is of blocks.
        InvalidShape
            If there are more.
        UnsupportedView
            If the tensor is not contiguous.

        Notes
        -----
        Clauses: TENSOR-DATA-2
        """
        self.live()
        require_scalar_dtype(self.dtype, "item", "TENSOR-DATA-2")
        if self.len() != 1:
            raise InvalidShape(f"item needs a single element, got {self!r}", clause="TENSOR-DATA-2")
        self.require_contiguous("item", "TENSOR-DATA-2")
        return write(self.dtype, int(self.elements().reshape(-1)[0]))

    # -- copies

    def copy_to(self, dst: Any) -> None:
        """Write all elements, in row-major order, to a buffer of exactly their number.

        Raises
        ------
        DTypeMismatch, UnsupportedView, ReadOnlyStorage
            If ``dst`` is no buffer for them.
        InvalidDataLength
            If it has another length.
        UnsupportedView
            If the tensor is of blocks and not contiguous.
        OverlappingMemory
            If it shares memory with the tensor.

        Notes
        -----
        Clauses: TENSOR-COPY-1
        """
        self.live()
        out = destination("dst", dst, self.dtype, "TENSOR-COPY-1")
        if out.size != self.storage_len():
            raise InvalidDataLength(
                f"dst must hold {self.storage_len()} elements, got {out.size}", clause="TENSOR-COPY-1"
            )
        self._require_movable()
        self._refuse_overlap(out, "TENSOR-COPY-1")
        out[:] = self.elements().reshape(-1)

    def copy_range_to(self, dst: Any, linear_start: int, count: int) -> None:
        """Write elements ``linear_start`` to ``linear_start + count - 1`` of the row-major order to a buffer.

        Raises
        ------
        InvalidDType
            If the tensor is of blocks.
        DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength, OverlappingMemory
            As :meth:`copy_to`; the buffer must hold ``count`` elements.
        IndexOutOfBounds
            If the range ends behind the last element.

        Notes
        -----
        Clauses: TENSOR-COPY-2
        """
        clause = "TENSOR-COPY-2"
        self.live()
        require_scalar_dtype(self.dtype, "copy_range_to", clause)
        start = index_argument("linear_start", linear_start, clause)
        number = length_argument("count", count, clause)
        out = destination("dst", dst, self.dtype, clause)
        if out.size != number:
            raise InvalidDataLength(f"dst must hold {number} elements, got {out.size}", clause=clause)
        if start + number > self.len():
            raise IndexOutOfBounds(f"[{start}, {start + number}) is not within [0, {self.len()})", clause=clause)
        self._refuse_overlap(out, clause)
        out[:] = self.elements().flat[start : start + number]

    def clone(self) -> Self:
        """Return a contiguous copy with a storage of its own.

        Raises
        ------
        UnsupportedView
            If the tensor is of blocks and not contiguous.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: TENSOR-COPY-3
        """
        self.live()
        self._require_movable()
        storage = BufferOf(self.dtype).create(self.storage_len())
        storage.patterns()[:] = self.elements().reshape(-1)
        return type(self).over(storage, self.shape, row_major(storage_shape(self.dtype, self.shape)), 0)

    def _require_movable(self) -> None:
        """Refuse to pick blocks one by one.

        Notes
        -----
        Clauses: TENSOR-BLOCK-2
        """
        if self.Element.names is not None:
            self.require_contiguous("a copy of blocks", "TENSOR-BLOCK-2")

    def span(self) -> tuple[int, int]:
        """Return the addresses between which the elements lie."""
        shape, strides, offset = byte_layout(self)
        first = self.live().address + offset
        last = first + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        return first, last + self.Element.itemsize

    def _refuse_overlap(self, out: AnyArray, clause: str) -> None:
        first, end = self.span()
        start = address_of(out)
        if out.size and start < end and first < start + out.nbytes:
            raise OverlappingMemory(f"dst must not share memory with the tensor, got bytes of {self!r}", clause=clause)
