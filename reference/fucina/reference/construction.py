"""Construction: how a context makes tensors from nothing, from values, and from other tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.reference.arguments import dtype_argument
from fucina.reference.element_buffers import copied
from fucina.reference.elements import read
from fucina.reference.geometry import one, zero
from fucina.reference.handles import require_scalar_dtype
from fucina.reference.ops import movement
from fucina.reference.sizes import entries_of, storage_element_count
from fucina.reference.substrate import Driven, driven
from fucina.reference.tensor import RawTensor, TensorOf
from fucina.spec.errors import InvalidDataLength
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.spec.interface import ScalarValue
    from fucina.spec.memory import Memory, ShapeLike, Values

__all__ = ["Construction"]


class Construction(Driven):
    """The constructors of a context; what they return is always the caller's.

    Notes
    -----
    Clauses: CONTEXT-OWNER-1
    """

    # -- from nothing

    @driven
    def empty(self, shape: ShapeLike, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor of unspecified content.

        Parameters
        ----------
        shape : sequence of int
            Its sizes.
        dtype : DType
            Any.

        Raises
        ------
        InvalidDType, InvalidInteger, InvalidShape, Overflow
            If there is no such tensor.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: CONTEXT-NEW-1
        """
        return self._rt.new(dtype_argument(dtype), shape)

    @driven
    def zeros(self, shape: ShapeLike, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor of zeros.

        Raises
        ------
        InvalidDType
            If the dtype is a block, or none.
        InvalidInteger, InvalidShape, Overflow, OutOfMemory
            As :meth:`empty`.

        Notes
        -----
        Clauses: CONTEXT-NEW-1
        """
        found = dtype_argument(dtype)
        require_scalar_dtype(found, "zeros", "CONTEXT-NEW-1")
        return self._filled(shape, found, read(found, zero(found)))

    @driven
    def ones(self, shape: ShapeLike, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor of ones.

        Raises
        ------
        InvalidDType, InvalidInteger, InvalidShape, Overflow, OutOfMemory
            As :meth:`zeros`.

        Notes
        -----
        Clauses: CONTEXT-NEW-1
        """
        found = dtype_argument(dtype)
        require_scalar_dtype(found, "ones", "CONTEXT-NEW-1")
        return self._filled(shape, found, read(found, one(found)))

    @driven
    def full(self, shape: ShapeLike, value: ScalarValue, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor whose elements are all the same.

        Parameters
        ----------
        shape : sequence of int
            Its sizes.
        value : bool, int or float
            An element in scalar form.
        dtype : DType
            A scalar dtype.

        Raises
        ------
        InvalidDType
            If the dtype is a block, or none.
        DTypeMismatch, Overflow
            If ``value`` is no element of it.
        InvalidInteger, InvalidShape, Overflow, OutOfMemory
            As :meth:`empty`.

        Notes
        -----
        Clauses: CONTEXT-NEW-1, BRIDGE-SCALAR-4
        """
        found = dtype_argument(dtype)
        require_scalar_dtype(found, "full", "CONTEXT-NEW-1")
        return self._filled(shape, found, read(found, value))

    @driven
    def scalar(self, value: ScalarValue, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor of shape (1,).

        Raises
        ------
        InvalidDType, DTypeMismatch, Overflow, OutOfMemory
            As :meth:`full`.

        Notes
        -----
        Clauses: CONTEXT-NEW-1, BRIDGE-SCALAR-4
        """
        found = dtype_argument(dtype)
        require_scalar_dtype(found, "scalar", "CONTEXT-NEW-1")
        return self._filled((1,), found, read(found, value))

    def _filled(self, shape: Any, dtype: DType, bits: int) -> RawTensor:
        made = self._rt.new(dtype, shape)
        made.elements()[...] = bits
        return made

    # -- from values

    @driven
    def from_slice(self, shape: ShapeLike, values: Values, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor with a pooled copy of the values.

        Parameters
        ----------
        shape : sequence of int
            Its sizes.
        values : buffer or sequence
            Exactly as many elements, in row-major order.
        dtype : DType
            A scalar dtype.

        Raises
        ------
        InvalidDType
            If the dtype is a block, or none.
        InvalidInteger, InvalidShape, Overflow
            If it is no shape.
        DTypeMismatch, InvalidDataLength
            If the values are no elements of the dtype, or of another number.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: CONTEXT-NEW-2
        """
        found = dtype_argument(dtype)
        require_scalar_dtype(found, "from_slice", "CONTEXT-NEW-2")
        return self._copied(shape, values, found)

    @driven
    def from_storage_slice(self, shape: ShapeLike, values: Values, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor with a pooled copy of storage elements, such as blocks.

        Raises
        ------
        InvalidDType
            If the dtype is none.
        InvalidInteger, InvalidShape, Overflow, DTypeMismatch, InvalidDataLength, OutOfMemory
            As :meth:`from_slice`.

        Notes
        -----
        Clauses: CONTEXT-NEW-2
        """
        return self._copied(shape, values, dtype_argument(dtype))

    def _copied(self, shape: Any, values: Any, dtype: DType) -> RawTensor:
        dims = entries_of("shape", shape, "CONTEXT-NEW-2")
        count = storage_element_count(dtype, dims)
        elements = copied("values", values, dtype, "CONTEXT-NEW-2")
        if elements.size != count:
            raise InvalidDataLength(f"shape {dims} takes {count} elements, got {elements.size}", clause="CONTEXT-NEW-2")
        made = self._rt.new(dtype, dims)
        made.elements().reshape(-1)[:] = elements
        return made

    @driven
    def from_borrowed_slice(self, shape: ShapeLike, values: Memory, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor over the caller's memory.

        Parameters
        ----------
        shape : sequence of int
            Its sizes.
        values : buffer
            Writable, in storage form, in row-major order; of exactly as many elements.
        dtype : DType
            A scalar dtype.

        Raises
        ------
        InvalidDType
            If the dtype is a block, or none.
        InvalidInteger, InvalidShape, Overflow
            If it is no shape.
        DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength
            If the memory cannot be borrowed, or holds another number of elements.

        Notes
        -----
        Clauses: CONTEXT-NEW-3
        """
        kind = TensorOf(dtype_argument(dtype))
        return self._rt.traced(kind.from_borrowed_slice(shape, values))

    @driven
    def from_borrowed_storage_slice(self, shape: ShapeLike, values: Memory, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor over storage elements of the caller, such as blocks.

        Raises
        ------
        InvalidDType
            If the dtype is none.
        InvalidInteger, InvalidShape, Overflow, DTypeMismatch, UnsupportedView, ReadOnlyStorage, InvalidDataLength
            As :meth:`from_borrowed_slice`.

        Notes
        -----
        Clauses: CONTEXT-NEW-3
        """
        kind = TensorOf(dtype_argument(dtype))
        return self._rt.traced(kind.from_borrowed_storage_slice(shape, values))

    # -- from tensors

    @driven
    def materialize(self, x: Any) -> RawTensor:
        """Return a contiguous copy with pooled storage.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            If x is no tensor.
        UnsupportedView
            If it is of blocks and not contiguous.
        OutOfMemory
            If there is no memory.

        Notes
        -----
        Clauses: CONTEXT-COPY-1
        """
        return movement.materialize(self._rt, x)

    @driven
    def clone(self, x: Any) -> RawTensor:
        """Return what :meth:`materialize` does.

        Notes
        -----
        Clauses: CONTEXT-COPY-1
        """
        return movement.materialize(self._rt, x)
