"""Construction: how a context makes tensors from nothing, from values, and over the caller's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fucina.fast._arguments import known_dtype
from fucina.fast._context_core import Core, contexts, driven, operands
from fucina.fast._element_buffers import copied, pattern_of
from fucina.fast._shown import tuple_shown
from fucina.fast._sizes import entries, storage_count_of
from fucina.fast._tensor_views import require_scalar
from fucina.fast.geometry import one, zero
from fucina.fast.tensor import RawTensor, TensorOf
from fucina.spec.errors import InvalidDataLength
from fucina.spec.types import DType

if TYPE_CHECKING:
    from fucina.spec.interface import ScalarValue
    from fucina.spec.memory import Memory, ShapeLike, Values

__all__ = ["Making"]


class Making(Core):
    """The constructors of a context; what they return is the caller's.

    Clauses: CONTEXT-OWNER-1
    """

    def empty(self, shape: ShapeLike, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor of unspecified content.

        Parameters
        ----------
        shape : sequence of int
            Its sizes.
        dtype : DType
            Any of the 40.

        Raises
        ------
        InvalidDType, InvalidInteger, InvalidShape, Overflow
            There is no such tensor.
        OutOfMemory
            There is no memory.

        Clauses: CONTEXT-NEW-1
        """
        made = self._plain(shape) if dtype is DType.f32 else None
        return self._empty(shape, dtype) if made is None else made

    @driven
    def _empty(self, shape: Any, dtype: Any) -> RawTensor:
        return self._rt.new(known_dtype(dtype), shape)

    @driven
    def zeros(self, shape: ShapeLike, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor of zeros.

        Raises
        ------
        InvalidDType
            Of blocks, and of what is no dtype.
        InvalidInteger, InvalidShape, Overflow, OutOfMemory
            As :meth:`empty`.

        Clauses: CONTEXT-NEW-1
        """
        return self._same("zeros", shape, dtype, zero)

    @driven
    def ones(self, shape: ShapeLike, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor of ones; errors as of :meth:`zeros`.

        Clauses: CONTEXT-NEW-1
        """
        return self._same("ones", shape, dtype, one)

    def _same(self, name: str, shape: Any, dtype: Any, value: Any) -> RawTensor:
        found = known_dtype(dtype)
        require_scalar(found, name, "CONTEXT-NEW-1")
        return self._filled(shape, found, pattern_of(found, value(found)))

    @driven
    def full(self, shape: ShapeLike, value: ScalarValue, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor all of whose elements are the same.

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
            Of blocks, and of what is no dtype.
        DTypeMismatch, Overflow
            ``value`` is no element.
        InvalidInteger, InvalidShape, Overflow, OutOfMemory
            As :meth:`empty`.

        Clauses: CONTEXT-NEW-1, BRIDGE-SCALAR-4
        """
        found = known_dtype(dtype)
        require_scalar(found, "full", "CONTEXT-NEW-1")
        return self._filled(shape, found, pattern_of(found, value))

    @driven
    def scalar(self, value: ScalarValue, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor of shape (1,); errors as of :meth:`full`.

        Clauses: CONTEXT-NEW-1, BRIDGE-SCALAR-4
        """
        found = known_dtype(dtype)
        require_scalar(found, "scalar", "CONTEXT-NEW-1")
        return self._filled((1,), found, pattern_of(found, value))

    def _filled(self, shape: Any, dtype: DType, bits: int) -> RawTensor:
        made = self._rt.new(dtype, shape)
        made._patterns().fill(bits)
        return made

    # -- from values

    @driven
    def from_slice(self, shape: ShapeLike, values: Values, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor that holds a copy of the values on pooled storage.

        Parameters
        ----------
        shape : sequence of int
            Its sizes.
        values : buffer, bytes, list, tuple or range
            As many elements as the shape has, in row-major order.
        dtype : DType
            A scalar dtype.

        Raises
        ------
        InvalidDType
            Of blocks, and of what is no dtype.
        InvalidInteger, InvalidShape, Overflow
            No shape.
        DTypeMismatch, Overflow, InvalidDataLength
            No elements of the dtype, or another number of them.
        OutOfMemory
            There is no memory.

        Clauses: CONTEXT-NEW-2
        """
        found = known_dtype(dtype)
        require_scalar(found, "from_slice", "CONTEXT-NEW-2")
        return self._holding(shape, values, found)

    @driven
    def from_storage_slice(self, shape: ShapeLike, values: Values, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor that holds a copy of storage elements, such as blocks; errors as of :meth:`from_slice`.

        Clauses: CONTEXT-NEW-2
        """
        return self._holding(shape, values, known_dtype(dtype))

    def _holding(self, shape: Any, values: Any, dtype: DType) -> RawTensor:
        dims = entries("shape", shape, "CONTEXT-NEW-2")
        count = storage_count_of(dtype, dims, "CONTEXT-NEW-2")
        elements = copied("values", values, dtype, "STORAGE-COPY-1")
        if elements.size != count:
            raise InvalidDataLength(
                f"values must hold {count} elements for shape {tuple_shown(dims)}, got {elements.size}",
                clause="CONTEXT-NEW-2",
            )
        made = self._rt.new(dtype, dims)
        made._patterns()[:] = elements
        return made

    @driven
    def from_borrowed_slice(self, shape: ShapeLike, values: Memory, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor over the caller's writable memory.

        Raises
        ------
        InvalidDType
            Of blocks, and of what is no dtype.
        InvalidInteger, InvalidShape, Overflow
            No shape.
        DTypeMismatch, InvalidDataLength, UnsupportedView, ReadOnlyStorage
            The memory cannot be borrowed, or holds another number of elements.

        Clauses: CONTEXT-NEW-3
        """
        kind = TensorOf(known_dtype(dtype))
        return self._rt.traced(kind.from_borrowed_slice(shape, values))

    @driven
    def from_borrowed_storage_slice(self, shape: ShapeLike, values: Memory, dtype: DType = DType.f32) -> RawTensor:
        """Return a tensor over storage elements of the caller, such as blocks.

        Errors are those of :meth:`from_borrowed_slice`.

        Clauses: CONTEXT-NEW-3
        """
        kind = TensorOf(known_dtype(dtype))
        return self._rt.traced(kind.from_borrowed_storage_slice(shape, values))

    # -- from tensors

    @driven
    def materialize(self, x: Any) -> RawTensor:
        """Return a contiguous copy on pooled storage.

        Raises
        ------
        UseAfterDeinit, UseAfterScope, DTypeMismatch
            x is no tensor, or has ended.
        UnsupportedView
            Of blocks, and not contiguous.
        OutOfMemory
            There is no memory.

        Clauses: CONTEXT-COPY-1
        """
        return self._materialized(x)

    @driven
    def clone(self, x: Any) -> RawTensor:
        """Return what :meth:`materialize` returns.

        Clauses: CONTEXT-COPY-1
        """
        return self._materialized(x)

    def _materialized(self, x: Any) -> RawTensor:
        (found,) = operands("CONTEXT-COPY-1", x=x)
        found._require_movable()
        made = self._rt.new(found.dtype, found.shape)
        contexts.copy(found, made)
        return made
