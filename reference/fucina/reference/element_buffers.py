"""Values: the elements that storage is made of, wherever a caller has them.

A buffer in storage form, plain bytes, or (where elements are copied) a sequence of elements in scalar form.  Elements
travel as patterns or as whole structs, so no float is ever touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fucina.reference.allocation import Bytes, address_of
from fucina.reference.arguments import is_a
from fucina.reference.buffers import array_dtype, numpy_format, require_contiguous, struct_format, viewed
from fucina.reference.elements import read
from fucina.reference.geometry import storage
from fucina.spec.errors import DTypeMismatch, InvalidDataLength, ReadOnlyStorage, UnsupportedView
from fucina.spec.types import GEOMETRY, DType, DTypeKind

if TYPE_CHECKING:
    from fucina.spec.interface import AnyArray

__all__ = ["alignment", "borrowed", "carrier", "copied", "destination"]


def carrier(dtype: DType) -> np.dtype[Any]:
    """Return the dtype in which elements are moved: unsigned integers, or bare bytes for a block."""
    size = GEOMETRY[dtype].byte_size
    return np.dtype(f"V{size}") if GEOMETRY[dtype].kind is DTypeKind.block_quantized else np.dtype(f"u{size}")


def alignment(dtype: DType) -> int:
    """Return what an address of elements must be a multiple of; a block's fields are read byte by byte."""
    geometry = GEOMETRY[dtype]
    return 1 if geometry.kind is DTypeKind.block_quantized else geometry.byte_size


def _elements(name: str, values: object, dtype: DType, clause: str) -> AnyArray:
    """Return the elements of a buffer as an array of the carrier, with the buffer's own shape and strides.

    Notes
    -----
    Clauses: STORAGE-COPY-1
    """
    form = storage(dtype)
    view = viewed(name, values, f"a buffer of {form} elements, or bytes", clause)
    size = form.itemsize
    # ctypes calls its packed structs bytes before Python 3.12; their length gives them away
    plain = view.format in ("B", "b", "c") and view.itemsize == view.ndim == 1 and dtype is not DType.bool
    if form.names is None:
        matches = numpy_format(view.format, view.itemsize) == f"{form.kind}{size}"
        plain = plain and not is_a(values, np.ndarray)
    else:
        matches = array_dtype(values, view) == form if is_a(values, np.ndarray) else struct_format(view, form)
    if matches:
        held: AnyArray = np.ndarray.view(values, np.ndarray) if is_a(values, np.ndarray) else np.asarray(view)
        return held.view(carrier(dtype))
    if not plain:
        raise DTypeMismatch(
            f"{name} must hold {dtype.name} as {form} in native byte order, got buffer format {view.format!r} "
            f"of {view.itemsize} bytes",
            clause=clause,
        )
    require_contiguous(name, view, clause)
    if view.nbytes % size:
        raise InvalidDataLength(
            f"{name} must be whole elements of {size} bytes, got {view.nbytes} bytes", clause=clause
        )
    return _bytes_of(view).view(carrier(dtype))


def _bytes_of(view: memoryview) -> Bytes:
    """Return contiguous memory as bytes; the array keeps its exporter from moving or closing it."""
    if not view.nbytes:
        return np.empty(0, np.uint8)
    return np.frombuffer(view, np.uint8)


def copied(name: str, values: Any, dtype: DType, clause: str) -> AnyArray:
    """Return the elements in row-major order, one-dimensional, of the carrier.

    Parameters
    ----------
    name : str
        The parameter's name, for messages.
    values : buffer, list, tuple or range
        Elements in storage form, of any shape, strides and alignment; or a sequence of elements in scalar form.
    dtype : DType
        What they are.
    clause : str
        The clause that asks for them.

    Raises
    ------
    DTypeMismatch, Overflow
        If they are no elements of ``dtype``.
    InvalidDataLength
        If bytes end within an element.

    Notes
    -----
    Clauses: STORAGE-COPY-1, BRIDGE-SCALAR-4
    """
    if isinstance(values, list | tuple | range) and GEOMETRY[dtype].kind is DTypeKind.scalar:
        return np.array([read(dtype, value) for value in values], dtype=carrier(dtype))
    return np.ascontiguousarray(_elements(name, values, dtype, clause)).reshape(-1)


def borrowed(name: str, values: object, dtype: DType, clause: str, *, writable: bool) -> Bytes:
    """Return the memory of a buffer as bytes; it stays exported as long as the array lives.

    Raises
    ------
    DTypeMismatch
        If it does not hold ``dtype``.
    UnsupportedView
        If it is not C-contiguous, or misaligned.
    ReadOnlyStorage
        If it has to be writable and is not.

    Notes
    -----
    Clauses: STORAGE-BORROW-1, STORAGE-BORROW-2
    """
    elements = _elements(name, values, dtype, clause)
    view = viewed(name, values, "a buffer", clause)
    require_contiguous(name, view, clause)
    memory = _bytes_of(view)
    _require_aligned(name, elements, dtype, clause)
    if writable and view.readonly:
        raise ReadOnlyStorage(
            f"{name} must be writable, got read-only memory; from_borrowed_const_slice takes it", clause=clause
        )
    return memory


def _require_aligned(name: str, elements: AnyArray, dtype: DType, clause: str) -> None:
    if elements.size and address_of(elements) % alignment(dtype):
        raise UnsupportedView(
            f"{name} must be aligned to its elements of {alignment(dtype)} bytes, got an address "
            f"{address_of(elements) % alignment(dtype)} past one",
            clause=clause,
        )


def destination(name: str, buffer: object, dtype: DType, clause: str) -> AnyArray:
    """Return the elements of a buffer that elements are written to, one-dimensional, of the carrier.

    Raises
    ------
    DTypeMismatch, UnsupportedView, ReadOnlyStorage
        In this order, as :func:`borrowed`.

    Notes
    -----
    Clauses: TENSOR-COPY-1
    """
    elements = _elements(name, buffer, dtype, clause)
    require_contiguous(name, viewed(name, buffer, "a buffer", clause), clause)
    _require_aligned(name, elements, dtype, clause)
    if not elements.flags.writeable:
        raise ReadOnlyStorage(f"{name} must be writable, got a read-only buffer", clause=clause)
    return elements.reshape(-1)
